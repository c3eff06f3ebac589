"""What do more cores bring? Joins on 1, 2, 4, … of this machine's processors: of two inputs, in batches of two sizes, and of
four.

    python bench/cores.py                          # up to all processors, three runs of each in turn
    python bench/cores.py --cores 2 4 --repetitions 1 --units 16

Rows of all inputs a second over the batches from the third on, median (and range) of the runs. "n cores" is the whole
command on n processors: on machines that show two processors for a core, these may be its halves. The data of two inputs
are those of `data.py`: keys uniform over half as many as rows, about one match a row; those of four are `nway/tpcds.py`'s,
with 16 results a row. Results are counted and dropped.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
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


def rate(name: str, cores: int, units: int, work: Path) -> float:
    """Rows a second of one run."""
    folder = DATA[name]()
    processors = ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))
    run = [
        sys.executable,
        str(HERE / JOIN),
        "--units",
        str(units),
        "--data",
        str(folder),
        "--work",
        str(work / "job"),
        *(["--query", str(QUERIES[name])] if name in QUERIES else []),
    ]
    terms = Terms(task.read(folder), LIMIT_S)
    made = measure(f"{cores} cores", ["taskset", "-c", processors, *run], work / "log", terms)
    if isinstance(made, Failure):
        raise SystemExit(f"{made.system}: {made.reason}")
    return made.rate


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    most = len(os.sched_getaffinity(0))
    asked.add_argument("--cores", nargs="*", type=int, default=[n for n in (1, 2, 4, 8, 16, 32) if n <= most])
    asked.add_argument("--units", type=int, default=16)
    asked.add_argument("--repetitions", type=int, default=3)
    args = asked.parse_args()
    prepare()
    print(f"| batches of | {' | '.join(map(str, args.cores))} |\n|---|{'---:|' * len(args.cores)}")
    for name, folder in DATA.items():
        warm_page_cache(folder())
        found: dict[int, list[float]] = {n: [] for n in args.cores}
        with tempfile.TemporaryDirectory() as work:
            for _ in range(args.repetitions):
                for cores, rates in found.items():
                    rates.append(rate(name, cores, args.units, Path(work)) / 1e6)
        cells = [f"{statistics.median(r):.2f} ({min(r):.2f} to {max(r):.2f})" for r in found.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
