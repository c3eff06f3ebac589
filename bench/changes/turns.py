"""Is append-only work as fast in one checkout as in another? Both run the same task in turns, on the same data.

    .venv/bin/python bench/changes/turns.py --before ../old --after . --rounds 5
    .venv/bin/python bench/changes/turns.py --before ../old --after . --task nway

Each round runs both, and the next starts with the other one; what counts is the median of the rounds' ratios,
since a slow minute of the machine falls on neighbours alike. Both use this interpreter and its libraries.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[1] / "nway"))
import data
import task
from machine import facts
from measure import Terms, measure, warm_page_cache
from outcome import Failure

HERE = Path(__file__).parent
RESULTS = HERE / "results"


def given(name: str, quick: bool) -> tuple[Path, list[str]]:
    """Data, and further options of streamjoin_join.py."""
    if name == "two-inputs":
        return data.ensure(data.QUICK if quick else data.FULL), []
    import tpcds

    return tpcds.ensure(tpcds.Shape(1 if quick else 10)), ["--query", str(HERE.parent / "nway" / "query.sql")]


def rate(checkout: Path, name: str, folder: Path, options: list[str]) -> float:
    """Rows a second of one run."""
    work = task.CACHE / "work" / f"turns-{name}"
    work.parent.mkdir(parents=True, exist_ok=True)
    os.environ["PYTHONPATH"] = f"{checkout}:{checkout / 'operator'}"
    os.chdir(checkout)  # `python -m` looks here first
    command = [sys.executable, str(checkout / "bench" / "streamjoin_join.py"), *options]
    full = [*command, "--data", str(folder), "--work", str(work)]
    one = measure(name, full, work.with_suffix(".log"), Terms(task.read(folder), 1200.0))
    if isinstance(one, Failure):
        raise SystemExit(f"{name}: {one.reason}")
    return one.rate


def prepare(checkout: Path) -> None:
    """The class archive that an installation has made."""
    paths = {**os.environ, "PYTHONPATH": f"{checkout}:{checkout / 'operator'}"}
    command = [sys.executable, "-m", "joinlib.spark.train"]
    subprocess.run(command, env=paths, capture_output=True, check=False, cwd=checkout)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--before", type=Path, required=True, help="a checkout")
    asked.add_argument("--after", type=Path, required=True, help="another one")
    asked.add_argument("--task", choices=("two-inputs", "nway"), default="two-inputs")
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--quick", action="store_true", help="small data")
    args = asked.parse_args()
    sides = {"before": args.before.resolve(), "after": args.after.resolve()}
    folder, options = given(args.task, args.quick)
    warm_page_cache(folder)
    for checkout in sides.values():
        prepare(checkout)
    rounds: list[dict[str, float]] = []
    kept: dict[str, Any] = {"task": args.task, "machine": facts(), "rounds": rounds}
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"turns-{args.task}{'-quick' * args.quick}.json"
    for number in range(args.rounds):
        order = list(sides) if number % 2 == 0 else list(sides)[::-1]
        rounds.append({name: rate(sides[name], name, folder, options) for name in order})
        kept["ratio"] = median(one["after"] / one["before"] for one in rounds)
        path.write_text(json.dumps(kept, indent=1) + "\n")
        sys.stderr.write(f"{number + 1}: {rounds[-1]}, median of ratios {kept['ratio']:.3f}\n")


if __name__ == "__main__":
    main()
