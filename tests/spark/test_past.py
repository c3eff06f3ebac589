"""The driver keeps what its logs forget: killed in between, `whynot` stays certain of all batches."""

import json
from pathlib import Path

import pytest

from joinlib.checkpoint import timeline
from joinlib.spec import load
from joinlib.why import answer
from joinlib.why.verdict import Late
from tests.spark.command import run

pytestmark = pytest.mark.spark
COUNT = 50  # batches: each is a minute, whose watermark is that of its rows
SPEC = {
    "apiVersion": "streamjoin.dev/v1alpha1",
    "kind": "StreamJoin",
    "metadata": {"name": "past"},
    "spec": {
        "sql": "SELECT a.k FROM a JOIN b ON a.k = b.k AND b.at BETWEEN a.at AND a.at + INTERVAL 1 MINUTE",
        "inputs": {
            name: {
                "schema": "k BIGINT, at TIMESTAMP",
                "eventTime": {"column": "at", "delay": "0s"},
                "files": {"path": name, "format": "csv", "orderBy": "name", "maxFilesPerBatch": 1},
            }
            for name in "ab"
        },
        "output": {"files": {"path": "out"}},
        "join": {"units": 2},
        "checkpoint": {"path": "checkpoint"},
    },
}


def test_killed_and_still_certain(tmp_path: Path) -> None:
    """Of each row that came a minute late, and of the batches of early rows of the result."""
    (tmp_path / "past.yaml").write_text(json.dumps(SPEC))
    for name in "ab":
        (tmp_path / name).mkdir()
        for n in range(COUNT):
            late = f"{1000 + n},2026-01-01T12:{n - 2:02}:00Z\n" if n > 1 and name == "a" else ""
            text = f"k,at\n{n},2026-01-01T12:{n:02}:00Z\n{late}"
            (tmp_path / name / f"{n:03}.csv").write_text(text)
    (tmp_path / "faults").mkdir()
    for point in ("published_directly:16", "collected:23", "published_directly:37"):
        (tmp_path / "faults" / point).touch()
        go = ("run", "past.yaml", "--until-done", "--plain", "--cores", "1")
        code, said = run(tmp_path, *go, STREAMJOIN_FAULTS=str(tmp_path / "faults"))
        assert code != 0, said
    code, said = run(tmp_path, *go)
    assert code == 0, said
    assert not list((tmp_path / "faults").iterdir())
    job = load(tmp_path / "past.yaml")
    orders, *_ = answer.whynot(job, "k >= 1000")
    found = {int(Path(f.row.file).stem): (f.row.batch, f.row.exact, f.verdicts) for f in orders.fates}
    start = 1_767_268_800_000_000
    assert found == {n: (n, True, (Late(60_000_000, start + (n - 1) * 60_000_000),)) for n in range(2, COUNT)}
    rows, _ = answer.why(job, "k = 3")
    assert [(row.batch, row.exact) for row in rows[0].rows] == [(3, True), (3, True)]
    assert len(timeline.files(tmp_path / "checkpoint")) == 1
