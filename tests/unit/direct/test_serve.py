"""Which batches the process composes that runs small ones: while Spark waits for others, and while it would have to start."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib.compiled import compiled
from joinlib.direct import serve
from joinlib.direct.allowance import Allowance
from joinlib.direct.serve import Server
from joinlib.spec import parse

SMALL = 10  # rows of a small batch at most
SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: few}
spec:
  sql: SELECT a.k AS k FROM a JOIN b ON a.k = b.k
  inputs:
    a: {schema: k BIGINT, files: {path: a}}
    b: {schema: k BIGINT, files: {path: b}}
  output: {files: {path: out}}
  checkpoint: {path: checkpoint}
  join: {units: 2}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two empty inputs, and a place for indexes."""
    monkeypatch.setenv("STREAMJOIN_LOCAL_DIR", str(tmp_path / "local"))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    return tmp_path


def pour(folder: Path, file: int, rows: int, each: int = 5) -> None:
    """One file of input a, which is read in slices of `each` rows."""
    table = pa.table({"k": pa.array(range(rows), pa.int64())})
    pq.write_table(table, folder / "a" / f"{file}.parquet", row_group_size=each)


def server(folder: Path, until_done: bool = False) -> Server:
    """One that has run nothing yet."""
    plan = compiled(parse(SPEC, "few.yaml", folder), 2)
    return Server(replace(plan.source, small_rows=SMALL), plan.join, until_done=until_done)


def batches(serving: Server, waits: bool) -> Iterator[tuple[int, bool]]:
    """The rows of each batch that follows, and whether it is small; the last one is not, if any is not. Small ones are run."""
    start, batch = serving.initial(), 0
    while (end := serving.next(start, waits)) is not None:
        composed = json.loads(end)
        yield serving._composer.rows_between(json.loads(start), composed), composed["small"]
        if not composed["small"]:
            return
        serving.run(start, end, batch)
        start, batch = end, batch + 1


@pytest.mark.slow
def test_while_spark_waits_few_rows_are_small_batches(folder: Path) -> None:
    """A few batches of what is small in any case; where more waits, one that is for Spark."""
    pour(folder, 0, 80)
    assert list(batches(server(folder), waits=True)) == [(10, True)] * 8
    pour(folder, 1, 5)
    assert list(batches(server(folder), waits=True)) == [(85, False)]


@pytest.mark.slow
def test_while_spark_would_have_to_start_batches_grow(folder: Path) -> None:
    """They double, since they are quick. A slice that cannot be divided may be larger, up to what any batch may have."""
    pour(folder, 0, 85)
    assert list(batches(server(folder), waits=False)) == [(10, True), (20, True), (40, True), (15, True)]
    pour(folder, 1, 80, each=80)
    assert list(batches(server(folder), waits=False))[-1] == (80, True)
    pour(folder, 2, 81, each=81)
    *small, last = batches(server(folder), waits=False)
    assert all(is_small for _, is_small in small)
    assert last == (81, False)


@pytest.mark.slow
def test_where_more_waits_than_is_done_before_spark_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch is one for Spark, of all that it may have."""
    pour(folder, 0, 85)
    monkeypatch.setattr(Allowance, "waiting", property(lambda _: 84.0))
    assert list(batches(server(folder), waits=False)) == [(85, False)]


@pytest.mark.slow
def test_an_end(folder: Path) -> None:
    """What comes later than the first look is not read."""
    pour(folder, 0, 5)
    serving = server(folder, until_done=True)
    pour(folder, 1, 5)
    assert list(batches(serving, waits=False)) == [(5, True)]
    assert serve._left(json.loads(serving.initial())) == 0
