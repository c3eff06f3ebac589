"""A query that reads fewer columns goes on from the state of one that read more."""

import json
from pathlib import Path

import orjson
import pytest

from joinlib.checkpoint.identity import identify
from joinlib.checkpoint.planned import plan_of
from joinlib.model.fingerprint import as_json, compare
from joinlib.model.stage import Pipeline
from joinlib.plan.explain import explain
from joinlib.spec import StreamJoin, parse

KEPT = "kept, as the checkpoint has it"
SCHEMA = "id BIGINT, k BIGINT, j BIGINT, note STRING"
ONE = "FROM a JOIN b ON a.k = b.k"
JOINED = "FROM a JOIN b ON a.k = b.k AND a.j <> b.j LEFT JOIN c ON c.k = a.k"
TWO = "FROM a JOIN b ON a.k = b.k LEFT JOIN c ON c.j = b.j"
THREE = "FROM a JOIN b ON a.k = b.k JOIN c ON c.j = b.j"
EXISTS = "FROM a JOIN b ON a.k = b.k WHERE EXISTS (SELECT 1 FROM c WHERE c.k = a.k AND c.note <> b.note)"


def job(folder: Path, sql: str, checkpoint: str = "checkpoint", **join: str) -> StreamJoin:
    spec = {
        "sql": sql,
        "inputs": {name: {"schema": SCHEMA, "files": {"path": name}} for name in "abc"},
        "output": {"mode": "changelog", "noop": {}},
        "checkpoint": {"path": checkpoint},
        "join": join,
    }
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "follow"}}
    return parse(orjson.dumps({**head, "spec": spec}).decode(), "follow.yaml", folder)


def begin(folder: Path, plan: Pipeline) -> None:
    (folder / "checkpoint").mkdir()
    identify(folder / "checkpoint", "follow", plan)


@pytest.mark.parametrize(
    ("source", "strategy"), [*((s, "auto") for s in (ONE, JOINED, TWO, THREE, EXISTS)), (THREE, "paths")]
)
def test_columns_that_are_read_no_more_are_kept(tmp_path: Path, source: str, strategy: str) -> None:
    """Also of joined rows and between stages. They come back as they went, and others are refused."""
    wide, narrow = (f"SELECT {columns} {source}" for columns in ("a.id, b.note, a.note AS an", "a.id"))
    before = plan_of(job(tmp_path, wide, strategy=strategy))
    assert compare(as_json(before), as_json(plan_of(job(tmp_path, narrow, strategy=strategy))))
    begin(tmp_path, before)

    after = plan_of(job(tmp_path, narrow, strategy=strategy))
    assert as_json(after) == as_json(before)
    assert f"a.note, STRING: {KEPT}" in explain(after)
    assert [c.name for c in after.last.select if not c.name.startswith("_")] == ["id"]
    again = plan_of(job(tmp_path, wide, strategy=strategy))
    assert as_json(again) == as_json(before)
    assert KEPT not in explain(again)
    other = plan_of(job(tmp_path, f"SELECT a.id, b.id AS other {source}", strategy=strategy))
    assert any(
        "b.id is not among the stored columns of b" in why for why in compare(as_json(before), as_json(other))
    )
    assert KEPT not in explain(other), "what does not fit is planned as it would begin"


def test_a_plan_that_fits_is_left_as_it_is(tmp_path: Path) -> None:
    """The same alias in two branches stores other columns in each: none is added to the other's."""
    text = "SELECT a.id FROM a JOIN b ON a.k = b.k UNION ALL SELECT a.j FROM a JOIN b ON a.j = b.j"
    before = plan_of(job(tmp_path, text))
    begin(tmp_path, before)
    assert as_json(plan_of(job(tmp_path, text))) == as_json(before)


def test_without_a_checkpoint(tmp_path: Path) -> None:
    """A plan that would go on from another one's state is compared with that."""
    before = plan_of(job(tmp_path, f"SELECT a.id, b.note {ONE}"))
    after = plan_of(job(tmp_path, f"SELECT a.id {ONE}"), after=before)
    assert compare(as_json(before), as_json(after)) == []


def test_of_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """The plain plan; the run says what is wrong with the file."""
    (tmp_path / "checkpoint").mkdir()
    for text in ("", "{}", '{"plan": 3}', json.dumps({"plan": {"inputs": [{}]}})):
        (tmp_path / "checkpoint" / "streamjoin.json").write_text(text)
        assert KEPT not in explain(plan_of(job(tmp_path, f"SELECT a.id {ONE}")))
