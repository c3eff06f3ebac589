"""What a spec declares and nobody uses is said, since its writer means it to do something."""

from pathlib import Path

import pytest

from joinlib.plan.unused import unused
from joinlib.spec import parse

SPEC = """\
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: unused}
spec:
  sql: SELECT X FROM Late JOIN B ON Late.id = B.id WHERE y > ${least}
  views:
    late: SELECT id, twice(x) AS x FROM TUMBLE(a, at, INTERVAL 1 HOUR)
  parameters: {least: 3}
  functions: {twice: {python: "f:twice", returns: INT}}
  inputs:
    a: {schema: "id INT, x INT, at TIMESTAMP", eventTime: {column: at}, files: {path: a}}
    b: {schema: "id INT, y INT", files: {path: b}}
  output: {mode: changelog, files: {path: out}}
  checkpoint: {path: checkpoint}
"""


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("", "", []),
        ("  inputs:\n", "  inputs:\n    c: {schema: 'id INT', files: {path: c}}\n", ["inputs.c: no query reads it"]),
        ("views:\n", "views:\n    old: SELECT 1 FROM b\n", ["views.old: no query reads it, so it is not checked"]),
        ("{least: 3}", "{least: 3, most: 5}", ["parameters.most: no query names it as ${most}"]),
        (" twice(x)", " x", ["functions.twice: no query calls it"]),
        ("Late JOIN", "(SELECT 1 AS id, 2 AS x FROM b) AS Late JOIN",
         ["inputs.a: no query reads it", "views.late: no query reads it, so it is not checked",
          "functions.twice: no query calls it"]),
    ],
)  # fmt: skip
def test_what_is_said(was: str, now: str, said: list[str]) -> None:
    """Names are compared as SQL compares them."""
    assert list(unused(parse(SPEC.replace(was, now, 1), "t.yaml", Path("/j")).spec)) == said


def test_several_outputs() -> None:
    """What one of them uses is used."""
    two = SPEC.replace(
        "  sql: ",
        "  outputs:\n    one: {files: {path: one}, sql: 'SELECT id FROM b'}\n    two:\n      files: {path: two}\n      sql: ",
    )
    two = two.replace("  output: {mode: changelog, files: {path: out}}\n", "")
    assert list(unused(parse(two, "t.yaml", Path("/j")).spec)) == []
    assert (
        next(iter(unused(parse(two.replace("Late", "b"), "t.yaml", Path("/j")).spec)))
        == "inputs.a: no query reads it"
    )
