"""A slice that is more than a task's share is read by several tasks, each of which knows what lies before its own part."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib.compiled import Compiled, compiled
from joinlib.engine import receipt
from joinlib.engine.reading import read
from joinlib.engine.sources import MapInput
from joinlib.inprocess import InProcess
from joinlib.model.tuning import Tuning
from joinlib.sink.publish import publish
from joinlib.spec import parse

ROWS, TASKS, WINDOW = 1000, 8, 70


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiled:
    """Rows that match if their numbers are near each other: two files of `a`, a row group each, and one of `b`."""
    monkeypatch.setenv("STREAMJOIN_LOCAL_DIR", str(tmp_path / "local"))
    for name, rows in (("a", (ROWS, ROWS // 3)), ("b", (ROWS,))):
        (tmp_path / name).mkdir()
        for file, count in enumerate(rows):
            numbers = np.arange(count) + file * ROWS
            pq.write_table(pa.table({"k": numbers % 5, "v": numbers}), tmp_path / name / f"{file}.parquet")
    spec: dict[str, Any] = {
        "sql": "SELECT a.v AS x, b.v AS y FROM a JOIN b ON a.k = b.k",
        "inputs": {
            n: {"schema": "k BIGINT, v BIGINT", "files": {"path": n, "orderBy": "name"}} for n in "ab"
        },
        "join": {"window": {"rows": WINDOW}, "units": 4},
        "output": {"files": {"path": "out"}},
        "checkpoint": {"path": "checkpoint"},
    }
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "pieces"}}
    return compiled(
        parse(orjson.dumps({**head, "spec": spec}).decode(), "spec.yaml", tmp_path),
        TASKS,
        Tuning(share_rows=1),
    )


def parts_of(plan: Compiled) -> list[MapInput]:
    job = InProcess(plan)
    end = job.next()
    assert end is not None
    return job.composer.parts(job.offset, end)


def test_tasks_read_similar_amounts(plan: Compiled) -> None:
    """Each row once, in order."""
    parts = parts_of(plan)
    rows = [sum(s.stop - s.start for _, slices in part.reads for s in slices) for part in parts]
    assert len(rows) == TASKS
    assert sum(rows) == 2 * ROWS + ROWS // 3
    assert max(rows) < 1.5 * min(rows)
    read = [(name, s.index, s.start, s.stop) for part in parts for name, slices in part.reads for s in slices]
    assert read == sorted(read)


def test_blocks_of_all_tasks_have_numbers_of_their_own(plan: Compiled) -> None:
    """They are in the order of the rows."""
    firsts: dict[int, list[int]] = {0: [], 1: []}
    for part in parts_of(plan):
        sent = [row for some in read(plan.source, part, 0) for row in some.to_pylist()]
        for number in firsts:
            firsts[number] += sorted(
                {row["sequence"] for row in sent if row["input"] == number and row["block"]}
            )
    for found in firsts.values():
        assert found == sorted(set(found))
        assert len(found) > TASKS // 3


def test_few_rows_are_not_cut(plan: Compiled) -> None:
    """Nor is a slice that is less than a share: its group would be decoded by two tasks."""
    few = replace(plan, source=replace(plan.source, tuning=Tuning(share_rows=ROWS)))
    assert [len(part.before) for part in parts_of(few)] == [0, 0, 0]


@pytest.mark.parametrize("tasks", [1, 3, TASKS])
def test_rows_keep_their_numbers(plan: Compiled, tmp_path: Path, tasks: int) -> None:
    """DuckDB's answer, for any number of tasks."""
    job = InProcess(replace(plan, source=replace(plan.source, tasks=tasks)))
    end = job.next()
    assert end is not None
    told = [receipt.decode(t.receipt.encode()) for t in job.join(end, 2)]
    publish(tmp_path / "out", 0, [name for r in told for name in r.files], "")
    files = (tmp_path / "out").rglob("*.parquet")
    found = Counter((row["x"], row["y"]) for f in files for row in pq.read_table(f).to_pylist())
    values = range(ROWS + ROWS // 3), range(ROWS)
    sql = "SELECT x, y FROM range(?) a(x) JOIN range(?) b(y) ON x % 5 = y % 5 AND abs(x - y) < ?"
    wanted = duckdb.execute(sql, [*map(len, values), WINDOW]).fetchall()
    assert found == Counter(wanted) != Counter()
