"""How the script of each system begins and ends: it is told where data and work lie, and prints one line of JSON."""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

QUERY = Path(__file__).parent / "query.sql"


def parser(description: str | None) -> argparse.ArgumentParser:
    """With the options that all of them have."""
    asked = argparse.ArgumentParser(description=description)
    asked.add_argument("--data", type=Path, required=True, help="a folder as bench/task.py describes it")
    asked.add_argument("--query", type=Path, default=QUERY)
    asked.add_argument("--inputs", nargs="*", help="those that the query reads; default: all")
    asked.add_argument("--out", type=Path, help="write the outcome here as well")
    asked.add_argument(
        "--work", type=Path, required=True, help="a folder of its own, removed before and after"
    )
    return asked


def launched() -> float:
    """When the command was launched, in seconds since the epoch."""
    return float(os.environ.get("BENCH_LAUNCHED", time.time()))


def tell(args: argparse.Namespace, run: Callable[[argparse.Namespace], dict[str, Any]]) -> None:
    """Run from nothing, print the outcome as one line, leave nothing behind but what is in a cache."""
    # A run that was killed has left a checkpoint, from which this one would go on.
    shutil.rmtree(args.work, ignore_errors=True)
    args.work.mkdir(parents=True, exist_ok=True)
    try:
        line = json.dumps(run(args))
    finally:
        shutil.rmtree(args.work, ignore_errors=True)
    if args.out:
        args.out.write_text(line + "\n")
    sys.stdout.write(line + "\n")
