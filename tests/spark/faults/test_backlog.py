"""A run that is behind is killed at random moments, with several batches read ahead as a whole: files to files, exact.

STREAMJOIN_FAULT_SEED: when.
"""

import json
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib.model.tuning import Tuning
from tests.spark.faults.backlog import Backlog
from tests.spark.faults.drawn import SEED

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
BATCH = Tuning.small_rows + 2000  # rows of a file: one row group, of which each process would decode all
FILES = 24
FAR = 3  # a row meets the one whose number is so many times its own
CORES = 4  # as if there were so many: fewer read each row group all together


PROGRAM = f"import os; os.sched_getaffinity = lambda _: range({CORES}); {Backlog.program}"
SPEC = {
    "apiVersion": "streamjoin.dev/v1alpha1",
    "kind": "StreamJoin",
    "metadata": {"name": "backlog"},
    "spec": {
        "sql": "SELECT a.k AS a, b.k AS b FROM rows a JOIN rows b ON a.met = b.k",
        "inputs": {
            "rows": {"schema": "k BIGINT, met BIGINT", "files": {"path": "rows", "maxFilesPerBatch": 1}}
        },
        "output": {"files": {"path": "out"}},
        "checkpoint": {"path": "checkpoint"},
        "join": {"units": 4},
    },
}


def test_each_result_once_while_several_batches_are_read(tmp_path: Path) -> None:
    """The driver dies, at last the newest of those that read, whom Spark replaces; the files are the join of all rows."""
    print(f"STREAMJOIN_FAULT_SEED={SEED}")
    draw = random.Random(SEED)
    (tmp_path / "rows").mkdir()
    for number in range(FILES):
        keys = range(number * BATCH, (number + 1) * BATCH)
        table = pa.table({"k": keys, "met": [k * FAR for k in keys]})
        pq.write_table(table, tmp_path / "rows" / f"{number:04}.parquet")
    (tmp_path / "spec.yaml").write_text(json.dumps(SPEC))
    most = Backlog(tmp_path, program=PROGRAM).suffer(draw)
    assert most > CORES, "some processes only read"
    table, rows = pq.read_table(tmp_path / "out", columns=["a", "b"]), FILES * BATCH
    found = Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert found == Counter((k, k * FAR) for k in range(-(-rows // FAR)))
