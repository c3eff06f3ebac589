"""Dead letters through Spark: a task and the driver are killed around them, and each is there once."""

import json
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from tests.spark.command import run
from tests.spark.faults.drawn import drawn

SPEC = """\
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: kept}
spec:
  sql: SELECT o.id, 10 / p.n AS each FROM orders o JOIN payments p ON o.id = p.id WHERE CAST(o.q AS INT) > 0
  inputs:
    orders: {schema: "id BIGINT, q STRING", onError: deadLetter, files: {path: orders, format: jsonl}}
    payments: {schema: "id BIGINT, n BIGINT", files: {path: payments, format: csv}}
  output: {files: {path: out}, onError: deadLetter}
  deadLetters: {path: dead}
  join: {units: 2}
  checkpoint: {path: checkpoint, sync: false}
"""
LINES = ['{"id":1,"q":"1"}', '{"id":2,"q":"two"}', '{"id":3,"q":', '{"id":4,"q":"4"}']


@pytest.mark.spark
@pytest.mark.parametrize("point", drawn("letters", ["lettered", "published"], 1))
def test_killed_around_dead_letters(tmp_path: Path, point: str) -> None:
    """lettered: a task, before its state is saved. published: the driver, when letters can be seen and results cannot."""
    (tmp_path / "kept.yaml").write_text(SPEC)
    for name, text in (
        ("orders/1.jsonl", "\n".join([*LINES, ""])),
        ("payments/1.csv", "id,n\n1,2\n2,2\n3,2\n4,0\n"),
    ):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    (tmp_path / "faults").mkdir()
    (tmp_path / "faults" / f"{point}:0").touch()
    go = ("run", "kept.yaml", "--until-done", "--plain")
    code, said = run(tmp_path, *go, STREAMJOIN_FAULTS=str(tmp_path / "faults"))
    assert not list((tmp_path / "faults").iterdir()), "nothing was killed"
    if point == "published":
        assert code != 0
        assert list((tmp_path / "dead").glob("batch=0/*.jsonl"))
        assert not list((tmp_path / "out").glob("batch=*"))
    if code != 0:
        code, said = run(tmp_path, *go)
    assert code == 0, said
    assert "3 letters to dead" in said
    rows = duckdb.sql(f"SELECT id, each FROM read_parquet('{tmp_path}/out/batch=*/*.parquet')").fetchall()
    assert rows == [(1, 5.0)]
    found = [
        json.loads(line) for f in tmp_path.glob("dead/batch=*/*.jsonl") for line in f.read_text().splitlines()
    ]
    assert Counter((one["input"], one["reason"], one["at"], one["text"]) for one in found) == Counter(
        [
            ("orders", "expression", 2, None),
            ("orders", "unreadable", 3, LINES[2]),
            (None, "result", None, None),
        ]
    )
    code, said = run(tmp_path, "whynot", "kept.yaml", "id = 2")
    assert "fails: " in said and "it is a dead letter in dead" in said, said
