"""How long does a fork take of a checkpoint that holds millions of rows, and what of it is copied?

    PYTHONPATH=. .venv/bin/python bench/fork.py [--rows 10000000] [--repetitions 5]

A job over two generated streams, full history, is run to its end. Then `streamjoin fork` is run, as a user does, with
`checkpoint.sync` and without: seconds of the whole command, and how many of the checkpoint's bytes are in files that both
jobs name, and how many in files that were copied.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

STREAMJOIN = [sys.executable, "-c", "from jobs.cli.commands import main; main()"]


def main() -> None:
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("--rows", type=int, default=10_000_000)
    said.add_argument("--repetitions", type=int, default=5)
    given = said.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        first = written(folder, "first", given.rows, sync=False)
        subprocess.run([*STREAMJOIN, "run", str(first), "--until-done"], check=True, capture_output=True)
        stored = sum(1 for _ in (folder / "first" / "state").rglob("*.arrow"))
        for sync in (False, True):
            took = []
            for turn in range(given.repetitions):
                new = written(folder, f"fork-{sync}-{turn}", given.rows, sync=sync)
                began = time.perf_counter()
                subprocess.run(
                    [*STREAMJOIN, "fork", str(first), "--as", str(new)], check=True, capture_output=True
                )
                took.append(time.perf_counter() - began)
                shared, copied = sizes(folder / f"fork-{sync}-{turn}")
            figures = {"seconds": median(took), "all": took, "shared bytes": shared, "copied bytes": copied}
            print(json.dumps({"rows": given.rows, "sync": sync, "segments": stored, **figures}))


def written(folder: Path, name: str, rows: int, *, sync: bool) -> Path:
    """Write a spec whose checkpoint is the folder `name`."""
    inputs: dict[str, Any] = {
        alias: {
            "schema": "k BIGINT, v STRING",
            "generator": {"rows": rows // 2, "keys": rows // 4, "seed": seed},
        }
        for seed, alias in enumerate(("a", "b"))
    }
    spec = {
        "sql": "SELECT a.k, a.v AS a, b.v AS b FROM a JOIN b ON a.k = b.k",
        "inputs": inputs,
        "output": {"noop": {}},
        "checkpoint": {"path": name, "sync": sync},
    }
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": name.lower()}}
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps({**head, "spec": spec}))
    return path


def sizes(checkpoint: Path) -> tuple[int, int]:
    """Return the bytes in files that have another name elsewhere, and in files that have none."""
    found = [path.stat() for path in checkpoint.rglob("*") if path.is_file()]
    shared = sum(one.st_size for one in found if one.st_nlink > 1)
    return shared, sum(one.st_size for one in found) - shared


if __name__ == "__main__":
    main()
