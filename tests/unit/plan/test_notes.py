"""What is run, and perhaps not what its writer means: said by `plan` and by a run, each once."""

from pathlib import Path

import pytest

from joinlib.plan import pipeline_of
from joinlib.plan.explain import cautions, explain
from joinlib.spec import parse

SPEC = """\
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: noted}
spec:
  sql: |
    SQL
  inputs:
    a: {schema: "id INT, x INT", files: {path: a}}
    b: {schema: "id INT, y INT", files: {path: b}}
  output: {mode: changelog, files: {path: out}}
  checkpoint: {path: checkpoint}
"""
CROSSED = "a and b are joined without an equality"


def said(sql: str) -> list[str]:
    """The warnings of a query, besides those of state without bound."""
    plan = pipeline_of(parse(SPEC.replace("SQL", sql), "t.yaml", Path("/j")))
    found = [c for c in cautions(plan) if "forever" not in c]
    assert all(c in explain(plan) for c in found)
    return found


@pytest.mark.parametrize(
    ("sql", "beginnings"),
    [
        ("SELECT x, y FROM a JOIN b ON a.id = b.id", []),
        ("SELECT * FROM a NATURAL JOIN b", ["NATURAL JOIN b: its keys are"]),
        ("SELECT x FROM a ORDER BY x", ["ORDER BY without LIMIT changes nothing"]),
        ("SELECT x FROM a ORDER BY x LIMIT 3", []),
        ("SELECT x, rank() OVER (ORDER BY x) AS r FROM a", []),
        ("SELECT x, y FROM a CROSS JOIN b", [CROSSED]),
        ("SELECT x, y FROM a LEFT JOIN b ON a.x < b.y", [CROSSED]),
    ],
)
def test_what_is_said(sql: str, beginnings: list[str]) -> None:
    """Nothing of a query that says what it means."""
    found = said(sql)
    assert len(found) == len(beginnings)
    assert all(text.startswith(beginning) for text, beginning in zip(found, beginnings, strict=True))


@pytest.mark.parametrize(
    ("output", "upsert", "said"),
    [
        ("files: {path: out}", "", "rows are spread over the 8 units"),
        (
            "mode: changelog, files: {path: out}",
            ", upsert: {key: [id]}",
            "all rows of a key meet in one of the 8 units, which keeps the last of them",
        ),
        (
            "mode: changelog, files: {path: out}",
            ", changes: {op: op}",
            "rows go to units by their values, so one unit sees all changes of a row",
        ),
        (
            "mode: changelog, key: [id], files: {path: out}",
            ", changes: {op: op}",
            "rows go to units by the result's key, so one unit sees all changes of a row",
        ),
    ],
)
def test_where_rows_go_that_nothing_stores(output: str, upsert: str, said: str) -> None:
    """By what they go: rows that only come have no changes, which one unit had to see."""
    text = SPEC.replace("SQL", "SELECT a.id, a.x FROM a").replace(
        "mode: changelog, files: {path: out}", output
    )
    text = text.replace('"id INT, x INT"', f'"id INT, x INT, op STRING"{upsert}')
    assert said in explain(pipeline_of(parse(text, "t.yaml", Path("/j"))))
