"""What does it cost that every batch is on the disk before it counts?

A job of small batches and one of large ones, each with `checkpoint.sync` and without, in turn.

    python bench/sync.py [PAIRS [FOLDER]]      FOLDER: on the disk to measure, the system's temporary folder unless told

The join of two inputs from Parquet files into Parquet files, a file of each a batch. Prints, for each size,
the median batch without and with, and the median of what a pair differs by: batches of one number have the
same rows and the same state.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {{name: sync}}
spec:
  sql: SELECT a.k, a.v AS a, b.v AS b FROM a JOIN b ON a.k = b.k
  inputs:
    a: {{schema: "k BIGINT, v BIGINT", files: {{path: {inputs}/a, format: parquet, orderBy: name, maxFilesPerBatch: 1}}}}
    b: {{schema: "k BIGINT, v BIGINT", files: {{path: {inputs}/b, format: parquet, orderBy: name, maxFilesPerBatch: 1}}}}
  output: {{files: {{path: out, format: parquet}}}}
  batch: {{maxRows: 100000000}}
  checkpoint: {{path: checkpoint, sync: {sync}}}
"""
WARM = 3  # batches that are left out: Python compiles, Java too


@dataclass(frozen=True)
class Size:
    rows: int  # of a batch, both inputs together
    batches: int

    def draw(self, folder: Path) -> None:
        """The inputs' files. A row finds a partner or two by the end."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.parquet as pq

        random = np.random.default_rng(1)
        each = self.rows // 2
        for name in ("a", "b"):
            (folder / name).mkdir(parents=True)
            for at in range(self.batches):
                keys = random.integers(0, each * self.batches, each)
                rows = pa.table({"k": keys, "v": np.arange(each)})
                pq.write_table(rows, folder / name / f"{at:05d}.parquet")


SIZES = (Size(1_000, 40), Size(1_000_000, 9))


def measured(inputs: Path, place: Path, sync: bool) -> list[float]:
    """Spark's own seconds for each batch, of a run in a process of its own."""
    with tempfile.TemporaryDirectory(dir=place) as folder:
        spec = Path(folder) / "sync.yaml"
        spec.write_text(SPEC.format(inputs=inputs, sync=str(sync).lower()))
        done = subprocess.run(
            [sys.executable, __file__, "--run", spec], check=True, stdout=subprocess.PIPE, text=True
        )
    found = json.loads(done.stdout.splitlines()[-1])
    return [float(seconds) for _, seconds in found][WARM:]


def run(spec: Path) -> None:
    """One run, in this process."""
    from bench.timed import run_to_end

    print(json.dumps(sorted(run_to_end(spec).seconds.items())))


def main(pairs: int, place: Path) -> None:
    print("| rows of a batch | batches | without, ms | with, ms | more, ms |\n|---|---|---|---|---|")
    for size in SIZES:
        with tempfile.TemporaryDirectory(dir=place) as folder:
            size.draw(Path(folder))
            without: list[float] = []
            synced: list[float] = []
            for at in range(pairs):
                for sync in (False, True) if at % 2 else (True, False):
                    (synced if sync else without).extend(measured(Path(folder), place, sync))
        more = statistics.median(b - a for a, b in zip(without, synced, strict=True))
        medians = f"{statistics.median(without) * 1e3:.0f} | {statistics.median(synced) * 1e3:.0f}"
        print(f"| {size.rows:,} | {len(without)} | {medians} | {more * 1e3:+.0f} |", flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    if sys.argv[1:2] == ["--run"]:
        run(Path(sys.argv[2]))
    else:
        main(
            int(sys.argv[1]) if sys.argv[1:] else 3,
            Path(sys.argv[2] if sys.argv[2:] else tempfile.gettempdir()),
        )
