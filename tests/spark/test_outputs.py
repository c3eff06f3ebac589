"""Several outputs of one query: a failure is that of all, and what is killed between two outputs is repeated for both."""

from pathlib import Path

import duckdb
import pytest

from tests.spark.command import run
from tests.spark.faults.drawn import drawn

SPEC = """\
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: two}
spec:
  functions:
    twice: {python: "own:twice", returns: BIGINT}
  views:
    paid: SELECT o.id, p.amount FROM orders o JOIN payments p ON o.id = p.id
  outputs:
    rows: {sql: "SELECT id, amount FROM paid", files: {path: out/rows}}
    scored: {sql: "SELECT id, twice(amount) AS amount FROM paid", files: {path: out/scored}}
  inputs:
    orders: {schema: id BIGINT, files: {path: orders, format: csv}}
    payments: {schema: "id BIGINT, amount BIGINT", files: {path: payments, format: csv}}
  join: {units: 2}
  checkpoint: {path: checkpoint, sync: false}
"""
GO = ("run", "two.yaml", "--until-done", "--plain")
MODULE = """\
import pyarrow.compute as pc
from joinlib.functions import deterministic

@deterministic
def twice(x):
    BODY
"""


def made(folder: Path) -> None:
    """The spec and its inputs."""
    (folder / "two.yaml").write_text(SPEC)
    for name, text in (("orders", "id\n1\n2\n"), ("payments", "id,amount\n1,10\n2,20\n")):
        (folder / name).mkdir()
        (folder / name / "1.csv").write_text(text)


def rows(folder: Path, name: str) -> list[tuple[int, int]]:
    """What an output holds."""
    files = str(folder / "out" / name / "batch=*" / "*.parquet")
    found = duckdb.connect().execute(f"SELECT id, amount FROM read_parquet('{files}') ORDER BY ALL")
    return found.fetchall()  # type: ignore[no-any-return]


@pytest.mark.spark
def test_one_that_fails_stops_all_and_the_next_run_goes_on(tmp_path: Path) -> None:
    """Each row is in each output once, as if nothing had failed."""
    made(tmp_path)
    (tmp_path / "own.py").write_text(MODULE.replace("BODY", "raise RuntimeError('no')"))
    code, said = run(tmp_path, *GO)
    assert code == 2, said
    assert "function twice (own:twice) failed: RuntimeError" in said
    (tmp_path / "own.py").write_text(MODULE.replace("BODY", "return pc.multiply(x, 2)"))
    code, said = run(tmp_path, *GO)
    assert code == 0, said
    assert (rows(tmp_path, "rows"), rows(tmp_path, "scored")) == ([(1, 10), (2, 20)], [(1, 20), (2, 40)])


@pytest.mark.spark
@pytest.mark.parametrize("point", drawn("outputs", ["written", "taken"], 1))
def test_killed_between_two_outputs(tmp_path: Path, point: str) -> None:
    """The first has the batch, the second does not, the commit was not made: it is repeated, and is in each once.

    written: in a task, whose sinks are ended one after the other. taken: in the driver.
    """
    made(tmp_path)
    (tmp_path / "own.py").write_text(MODULE.replace("BODY", "return pc.multiply(x, 2)"))
    (tmp_path / "faults").mkdir()
    (tmp_path / "faults" / f"{point}:0").touch()
    code, said = run(tmp_path, *GO, STREAMJOIN_FAULTS=str(tmp_path / "faults"))
    assert not list((tmp_path / "faults").iterdir()), "nothing was killed"
    if point == "taken":
        assert code != 0
        assert (rows(tmp_path, "rows"), list((tmp_path / "out" / "scored").glob("batch=*"))) == (
            [(1, 10), (2, 20)],
            [],
        )
    if code != 0:
        code, said = run(tmp_path, *GO)
        assert code == 0, said
    assert (rows(tmp_path, "rows"), rows(tmp_path, "scored")) == ([(1, 10), (2, 20)], [(1, 20), (2, 40)])
