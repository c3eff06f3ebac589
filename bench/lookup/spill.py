"""A table larger than its budget: how long does it take to load, in how much memory, and how fast is it then?

    PYTHONPATH=. .venv/bin/python bench/lookup/spill.py [--rows 20000000] [--budget 64Mi]

Each load is a process of its own: within a budget that holds the table, and within the one that is given. Rows have a
number, and a text of 14 letters. Then batches of 100 000 random keys are looked up, warm.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from joinlib.lookup.load import decided, loaded
from joinlib.lookup.version import Version, write_parts
from joinlib.spec import parse

BATCH, BATCHES = 100_000, 40


def written(folder: Path, rows: int, files: int = 20) -> None:
    """Write the table: shuffled keys, in files."""
    (folder / "t").mkdir()
    keys = np.random.default_rng(1).permutation(rows)
    for number, some in enumerate(np.array_split(keys, files)):
        texts = pa.array([f"text{n:010d}" for n in some.tolist()])
        pq.write_table(pa.table({"k": some, "s": texts}), folder / "t" / f"{number:03d}.parquet")


def measured(folder: Path, budget: str, rows: int) -> dict[str, float]:
    """Load the table in this process, and look rows up."""
    from joinlib.compiled import compiled

    spec = {
        "sql": "SELECT a.k, t.s FROM a JOIN t ON a.k = t.k",
        "inputs": {
            "a": {"schema": "k BIGINT", "files": {"path": "a"}},
            "t": {"schema": "k BIGINT, s STRING", "role": "table", "files": {"path": "t", "budget": budget}},
        },
        "output": {"noop": {}},
        "checkpoint": {"path": f"checkpoint-{budget}"},
    }
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "spill"}}
    (task,) = compiled(parse(json.dumps({**head, "spec": spec}), "spill.yaml", folder), 1).source.tables
    task = decided(task)
    began = time.perf_counter()
    with loaded(task, task.folder / ".aside") as found:
        write_parts(task.version(1), found.parts, whole=found.whole)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    version, draw = Version(task.version(1), task.lookup.table.keys), np.random.default_rng(2)
    batches = [[pa.array(draw.integers(0, rows, BATCH))] for _ in range(BATCHES)]
    took = []
    for keys in batches:
        began = time.perf_counter()
        assert sum(len(rows.column("t.s")) for _, rows in version.find(keys)) == BATCH
        took.append(time.perf_counter() - began)
    rate = BATCH / float(np.median(took[BATCHES // 2 :]))
    return {
        "parts": 1 if found.whole else len(found.parts),
        "load, s": seconds,
        "peak, MB": peak,
        "lookups/s": rate,
    }


def main() -> None:
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("--rows", type=int, default=20_000_000)
    said.add_argument("--budget", default="64Mi")
    said.add_argument("--of", help=argparse.SUPPRESS)
    given = said.parse_args()
    if given.of:
        print(json.dumps(measured(Path(given.of), given.budget, given.rows)))
        return
    with TemporaryDirectory() as name:
        written(Path(name), given.rows)
        for budget in ("64Gi", given.budget):
            command = [sys.executable, __file__, "--of", name, "--rows", str(given.rows), "--budget", budget]
            print(
                budget, subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
            )


if __name__ == "__main__":
    main()
