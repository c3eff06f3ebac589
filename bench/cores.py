"""What do more cores bring? The join of two inputs on 1, 2, 4, … of this machine's processors, in batches of two sizes.

    python bench/cores.py                          # up to all processors, three runs of each in turn
    python bench/cores.py --cores 2 4 --repetitions 1 --units 16

Rows of both inputs a second over the batches from the third on, median (and range) of the runs. "n cores" is the whole
command on n processors: on machines that show two processors for a core, these may be its halves. The data are those of
`data.py`: keys uniform over half as many as rows, about one match a row, results counted and dropped.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping
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
LIMIT_S = 300.0


def rate(shape: Shape, cores: int, units: int, work: Path) -> float:
    """Rows a second of one run."""
    folder = data.ensure(shape)
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
    for name, shape in SHAPES.items():
        warm_page_cache(data.ensure(shape))
        found: dict[int, list[float]] = {n: [] for n in args.cores}
        with tempfile.TemporaryDirectory() as work:
            for _ in range(args.repetitions):
                for cores, rates in found.items():
                    rates.append(rate(shape, cores, args.units, Path(work)) / 1e6)
        cells = [f"{statistics.median(r):.2f} ({min(r):.2f} to {max(r):.2f})" for r in found.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
