"""Which batches the process composes that runs small ones: while Spark waits for others, and while it would have to start."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib.compiled import compiled
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


def server(folder: Path, spec: str = SPEC, until_done: bool = False) -> Server:
    """One that has run nothing yet."""
    plan = compiled(parse(spec, "few.yaml", folder), 2)
    return Server(replace(plan.source, small_rows=SMALL), plan.join, until_done=until_done)


def batches(serving: Server, spark: bool) -> Iterator[tuple[int, bool]]:
    """The rows of each batch that follows, and whether Spark is wanted. Those that are small are run."""
    start, batch = serving.initial(), 0
    while (answer := serving.next(start, spark))[0] is not None:
        end = answer[0]
        composed = json.loads(end)
        yield serving._composer.rows_between(json.loads(start), composed), answer[1]
        if not composed["small"]:
            return
        serving.run(start, end, batch)
        start, batch = end, batch + 1


@pytest.mark.slow
def test_while_spark_is_there_few_rows_are_small_batches(folder: Path) -> None:
    """A few batches of what is small in any case; where more waits, one that is for Spark."""
    pour(folder, 0, 80)
    assert list(batches(server(folder), spark=True)) == [(10, False)] * 8
    pour(folder, 1, 5)
    assert list(batches(server(folder), spark=True)) == [(85, True)]


@pytest.mark.slow
def test_while_spark_would_have_to_start_batches_grow(folder: Path) -> None:
    """They double, since they are quick. A slice that cannot be divided may be larger; Spark must come for a larger one."""
    pour(folder, 0, 85)
    grown = [(10, False), (20, False), (40, False), (15, False)]
    assert list(batches(server(folder), spark=False)) == grown
    pour(folder, 1, 320, each=320)
    assert list(batches(server(folder), spark=False))[-1] == (320, False)
    pour(folder, 2, 321, each=321)
    *small, last = batches(server(folder), spark=False)
    assert not any(wanted for _, wanted in small)
    assert last == (321, True)


@pytest.mark.slow
def test_a_batch_of_several_levels_is_smaller(folder: Path) -> None:
    """What goes from one to the next is held in memory."""
    pour(folder, 0, 81, each=81)
    groups = SPEC.replace("a.k = b.k", "a.k = b.k GROUP BY a.k").replace(
        "a.k AS k", "a.k AS k, count(*) AS n"
    )
    changelog = groups.replace("output: {", "output: {mode: changelog, ")
    assert list(batches(server(folder, changelog), spark=False)) == [(81, True)]


@pytest.mark.slow
def test_where_much_waits_batches_go_on_until_spark_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than is done before: it is wanted with each."""
    pour(folder, 0, 85)
    monkeypatch.setattr(Allowance, "_worth_s", 5.0)
    monkeypatch.setattr(Allowance, "after", lambda self, *_, **__: self)
    serving = server(folder)
    serving._allowed = replace(serving._allowed, per_s=14.0)  # for 5 s
    assert list(batches(serving, spark=False)) == [(10, True), (10, True), *[(10, False)] * 6, (5, False)]


@pytest.mark.slow
def test_an_end(folder: Path) -> None:
    """What comes later than the first look is not read."""
    pour(folder, 0, 5)
    serving = server(folder, until_done=True)
    pour(folder, 1, 5)
    assert list(batches(serving, spark=False)) == [(5, False)]
