"""What do more cores bring? Joins on 1, 2, 4, … of this machine's processors: of two inputs, in batches of two sizes, and of
four.

    python bench/cores.py                          # up to all processors, three runs of each in turn
    python bench/cores.py --cores 2 4 --repetitions 1 --units 16
    python bench/cores.py --cores 2 --processes 16 # what it costs to cut a batch for 16 processors, on two

Rows of all inputs a second over the batches from the third on, median (and range) of the runs. "n cores" is the whole
command on n processors: on machines that show two processors for a core, these may be its halves. The data of two inputs
are those of `data.py`: keys uniform over half as many as rows, about one match a row; those of four are `nway/tpcds.py`'s,
with 16 results a row. Results are counted and dropped. The last column is what the machine can do: as many jobs of one
processor as there are processors, at the same time, together.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import data
import task
from data import Shape
from measure import Terms, measure, prepare, warm_page_cache
from outcome import Failure
from systems import HERE, JOIN

SHAPES: Mapping[str, Shape] = {  # of an input
    "1 M rows, row groups of 250 000": Shape(rows=8_000_000, keys=4_000_000, files=16, row_groups=2),
    "1 M rows, 64 of them": Shape(rows=32_000_000, keys=16_000_000, files=64, row_groups=2),
    "4 M rows, row groups of 125 000": Shape(rows=16_000_000, keys=8_000_000, files=8, row_groups=16),
}
FOUR = "four inputs, 336 K rows"
LIMIT_S = 300.0


def four() -> Path:
    """The folder of the four inputs."""
    sys.path.append(str(HERE / "nway"))
    import tpcds

    return tpcds.ensure(tpcds.Shape())


DATA: Mapping[str, Callable[[], Path]] = {
    **{name: partial(data.ensure, shape) for name, shape in SHAPES.items()},
    FOUR: four,
}
QUERIES: Mapping[str, Path] = {FOUR: HERE / "nway" / "query.sql"}


def rate(name: str, processors: Sequence[int], args: argparse.Namespace, work: Path) -> float:
    """M rows a second of one run on some processors."""
    folder = DATA[name]()
    run = [
        sys.executable,
        str(HERE / JOIN),
        "--units",
        str(args.units),
        "--data",
        str(folder),
        "--work",
        str(work / "job"),
        *(["--cores", str(args.processes)] if args.processes else []),
        *(["--query", str(QUERIES[name])] if name in QUERIES else []),
    ]
    terms = Terms(task.read(folder), LIMIT_S)
    on = ["taskset", "-c", ",".join(map(str, processors))]
    made = measure(f"{len(processors)} cores", [*on, *run], work / "log", terms)
    if isinstance(made, Failure):
        raise SystemExit(f"{made.system}: {made.reason}")
    return made.rate / 1e6


def together(name: str, processors: Sequence[int], args: argparse.Namespace, work: Path) -> float:
    """M rows a second of as many runs at the same time, each on one processor."""

    def one(processor: int) -> float:
        own = work / str(processor)
        own.mkdir(exist_ok=True)
        return rate(name, [processor], args, own)

    with ThreadPoolExecutor(len(processors)) as pool:
        return sum(pool.map(one, processors))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = sorted(os.sched_getaffinity(0))
    asked.add_argument(
        "--cores", nargs="*", type=int, default=[n for n in (1, 2, 4, 8, 16, 32) if n <= len(every)]
    )
    asked.add_argument("--processes", type=int, help="as if there were so many cores")
    asked.add_argument(
        "--shapes", nargs="*", choices=[*DATA], default=[*DATA], metavar="SHAPE", help=f"of {[*DATA]}"
    )
    asked.add_argument("--units", type=int, default=16)
    asked.add_argument("--repetitions", type=int, default=3)
    args = asked.parse_args()
    prepare()
    columns: dict[str, Callable[[str, Path], float]] = {
        str(n): lambda name, work, n=n: rate(name, every[:n], args, work) for n in args.cores
    }
    columns["each its own job"] = lambda name, work: together(name, every, args, work)
    print(f"| batches of | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for name in args.shapes:
        warm_page_cache(DATA[name]())
        found: dict[str, list[float]] = {column: [] for column in columns}
        with tempfile.TemporaryDirectory() as work:
            for _ in range(args.repetitions):
                for column, run in columns.items():
                    found[column].append(run(name, Path(work)))
        cells = [f"{statistics.median(r):.2f} ({min(r):.2f} to {max(r):.2f})" for r in found.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
