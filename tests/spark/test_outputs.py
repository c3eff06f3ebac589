"""Several outputs of one file: if one fails, the others stop whole, and the next run goes on with all of them."""

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

ROOT = Path(__file__).resolve().parents[2]
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
MODULE = """\
import pyarrow.compute as pc
from joinlib.functions import deterministic

@deterministic
def twice(x):
    BODY
"""


def run(folder: Path) -> tuple[int, str]:
    """The exit code and the words of a run until the inputs are read."""
    done = subprocess.run(
        [sys.executable, "-m", "jobs.cli", "run", "two.yaml", "--until-done", "--plain"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def rows(folder: Path, name: str) -> list[tuple[int, int]]:
    """What an output holds."""
    files = str(folder / "out" / name / "batch=*" / "*.parquet")
    found = duckdb.connect().execute(f"SELECT id, amount FROM read_parquet('{files}') ORDER BY ALL")
    return found.fetchall()  # type: ignore[no-any-return]


@pytest.mark.spark
def test_one_that_fails_is_named_and_the_next_run_goes_on(tmp_path: Path) -> None:
    """Each row is in each output once, as if nothing had failed."""
    (tmp_path / "two.yaml").write_text(SPEC)
    for name, text in (("orders", "id\n1\n2\n"), ("payments", "id,amount\n1,10\n2,20\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.csv").write_text(text)
    (tmp_path / "own.py").write_text(MODULE.replace("BODY", "raise RuntimeError('no')"))
    code, said = run(tmp_path)
    assert code == 2, said
    assert "outputs.scored: " in said
    assert "function twice (own:twice) failed: RuntimeError" in said
    (tmp_path / "own.py").write_text(MODULE.replace("BODY", "return pc.multiply(x, 2)"))
    code, said = run(tmp_path)
    assert code == 0, said
    assert (rows(tmp_path, "rows"), rows(tmp_path, "scored")) == ([(1, 10), (2, 20)], [(1, 20), (2, 40)])
