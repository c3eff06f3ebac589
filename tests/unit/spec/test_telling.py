"""Mistakes of the SQL and of the plan are told at their line of the file, however the SQL is written in YAML."""

from pathlib import Path

import pytest

from joinlib.errors import SpecError, SqlError
from joinlib.plan import pipeline_of
from joinlib.spec import load, telling_of

HEAD = """\
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: late}
spec:
"""
TAIL = """
  inputs:
    orders:
      schema: id BIGINT, item STRING
      files: {path: data/orders}
    payments:
      schema: id BIGINT, how STRING
      files: {path: data/payments}
  output:
    files: {path: out}
  checkpoint: {path: checkpoint}
"""
JOIN = "FROM orders o JOIN payments p ON o.id = p.id"


def told(folder: Path, text: str) -> str:
    """What is said of a file that cannot be planned, behind its name."""
    path = folder / "late.yaml"
    path.write_text(text)
    with pytest.raises(SpecError) as error, telling_of(path):
        pipeline_of(load(path))
    return str(error.value).removeprefix(str(path))


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        (f"  sql: SELECT o.idd {JOIN}", ":5:15:"),
        (f"  sql: 'SELECT ''x'' AS x, o.idd {JOIN}'", ":5:28:"),
        (f'  sql: "SELECT o.idd {JOIN}"', ":5:16:"),
        (f"  sql: |\n    SELECT\n      o.idd\n    {JOIN}", ":7:7:"),
        (f"  sql: |-\n\n    SELECT 'a b' AS x,\n      o.idd\n    {JOIN}", ":8:7:"),
        (f"  sql: >\n    SELECT 'a b' AS x,\n      o.item AS y,\n    o.idd {JOIN}", ":8:5:"),
        (f"  sql: >-\n    SELECT\n\n    o.idd\n    {JOIN}", ":8:5:"),
        (f"  sql: SELECT o.item,\n    o.idd\n    {JOIN}", ":6:5:"),
        (f"  sql: 'SELECT o.item,\n\n    o.idd\n    {JOIN}'", ":7:5:"),
    ],
)
def test_sql_is_told_at_its_line_and_column_of_the_file(tmp_path: Path, sql: str, place: str) -> None:
    """In any of the forms in which YAML writes a text."""
    assert told(tmp_path, HEAD + sql + TAIL) == f"{place} spec.sql: o has no column idd; did you mean 'id'?"


def test_escapes_leave_the_place_in_the_sql(tmp_path: Path) -> None:
    """A tab that is written as an escape is one sign of the text and two of the file."""
    found = told(tmp_path, f'{HEAD}  sql: "SELECT\\to.idd {JOIN}"{TAIL}')
    assert found.startswith(":5: spec.sql: line 1, column 8: o has no column idd")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "    files: {path: out}",
            "    mode: changelog\n    key: [idd]\n    files: {path: out}",
            ":15: spec.output.key: the result has no column 'idd'; did you mean 'id'?",
        ),
        (
            "  checkpoint:",
            "  join:\n    window: {rows: 3}\n  checkpoint:",
            ":16: join.window.rows needs inputs whose rows have numbers",
        ),
    ],
)
def test_a_field_that_does_not_fit_the_plan_is_told_at_its_line(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    """The planner names the field, and the file says where it is."""
    text = f"{HEAD}  sql: SELECT o.id {JOIN}{TAIL}".replace(old, new, 1).replace(
        "schema: id BIGINT, how STRING\n      files: {path: data/payments}",
        "schema: id BIGINT, how STRING\n      files: {path: data/payments, format: csv}",
    )
    assert told(tmp_path, text).startswith(said)


def test_a_view_is_told_at_its_own_line(tmp_path: Path) -> None:
    """`SqlError.view` names the text that the line and the column are of."""
    path = tmp_path / "late.yaml"
    path.write_text(f"{HEAD}  sql: SELECT o.id {JOIN}\n  views:\n    v: |\n      SELECT\n        x{TAIL}")
    with pytest.raises(SpecError, match=r":9:9: spec\.views\.v: no") as error, telling_of(path):
        raise SqlError("no", 2, 3, "v")
    assert str(error.value).startswith(str(path))


def test_all_unknown_names_are_told_at_their_lines(tmp_path: Path) -> None:
    """Of the query and its views; functions too."""
    sql = "SELECT o.idd, nope(o.id) AS n, uppr(v.how) AS u\n    FROM orders o JOIN v ON o.id = v.idx"
    text = f"{HEAD}  sql: |\n    {sql}\n  views:\n    v: |\n      SELECT id, how,\n        hoow FROM payments{TAIL}"
    assert told(tmp_path, text).replace(str(tmp_path / "late.yaml"), "").splitlines() == [
        ":11:9: spec.views.v: column hoow is in no input; did you mean 'how'?",
        ":6:12: spec.sql: o has no column idd; did you mean 'id'?",
        ":6:19: spec.sql: function nope is not supported",
        ":6:36: spec.sql: function uppr is not supported; did you mean upper?",
        ":7:36: spec.sql: v has no column idx; did you mean 'id'?",
    ]


def test_the_file_is_read_once(tmp_path: Path) -> None:
    """A run may end days later, when the file is another one or gone."""
    path = tmp_path / "late.yaml"
    path.write_text(HEAD + f"  sql: SELECT o.id {JOIN}" + TAIL)

    def late() -> None:
        path.write_text("another: one")
        raise SqlError("no", 1, 8)

    with pytest.raises(SpecError, match=r":5:15: spec\.sql: no"), telling_of(path):
        late()
