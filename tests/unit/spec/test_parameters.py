"""Parameters: each is a literal of its type, and what is none is refused with what to write."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from joinlib.errors import SpecError
from joinlib.spec import parse

HEAD = """\
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: late}
spec:
  sql: SELECT a.id FROM a JOIN b ON a.id = b.id
  inputs:
    a: {schema: id INT, files: {path: a}}
    b: {schema: id INT, files: {path: b}}
  output: {files: {path: out}}
  checkpoint: {path: checkpoint}
"""


def literal(written: str) -> str:
    """The SQL of a parameter, as it stands in YAML."""
    job = parse(f"{HEAD}  parameters:\n    x: {written}\n", "late.yaml", Path("/jobs"))
    again = parse(yaml.safe_dump(job.model_dump(mode="json", by_alias=True)), "again.yaml", Path("/jobs"))
    assert again.spec.parameters == job.spec.parameters
    return job.spec.parameters["x"].sql


@pytest.mark.parametrize(
    ("written", "sql"),
    [
        ("5", "5"),
        ("-5", "(-5)"),
        ("0.25", "0.25"),
        ("true", "TRUE"),
        ("Berlin", "'Berlin'"),
        ("'it''s; DROP TABLE x --'", r"'it\'s; DROP TABLE x --'"),
        (r"'a\'", r"'a\\'"),
        ("[1, 2]", "1, 2"),
        ("[a, b]", "'a', 'b'"),
        ("{type: DATE, value: 2026-01-01}", "CAST('2026-01-01' AS DATE)"),
        ("{type: date, value: '2026-01-01'}", "CAST('2026-01-01' AS DATE)"),
        ("{type: TIMESTAMP, value: 2026-01-01 10:00:00}", "CAST('2026-01-01 10:00:00' AS TIMESTAMP)"),
        ("{type: 'DECIMAL(10, 2)', value: 1.5}", "CAST('1.5' AS DECIMAL(10, 2))"),
        ("{type: BOOLEAN, value: true}", "CAST('true' AS BOOLEAN)"),
        ("{type: STRING, value: null}", "CAST(NULL AS STRING)"),
        ("{type: INTERVAL, value: 90 minutes}", "INTERVAL '90 minutes'"),
        ("{type: BIGINT, value: [1, 2]}", "CAST('1' AS BIGINT), CAST('2' AS BIGINT)"),
    ],
)
def test_a_value_becomes_a_literal(written: str, sql: str) -> None:
    """Of the type that it is written with; quotes cannot end it. The model's own form means the same."""
    assert literal(written) == sql


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("2026-01-01", "is a date of YAML, which says no type of SQL; write {type: DATE, value: 2026-01-01}"),
        ("null", "is empty; write a value, or {type: STRING, value: null}"),
        ("[]", "is an empty list, and IN () is no SQL; add a value"),
        (".nan", "nan is no number of SQL; write {type: DOUBLE, value: 'NaN'}, or Infinity"),
        ("{type: DATE}", "needs type and value, as in {type: DATE, value: 2026-01-01}"),
        ("{a: 1, type: DATE}", "has a; write a value, or {type: DATE, value: 2026-01-01}"),
        (
            "{type: 'DATE) OR (1=1', value: 1}",
            (
                "'DATE) OR (1=1' is not the type of a single value; write DATE, DECIMAL(10, 2), INTERVAL or the"
                " like"
            ),
        ),
        ("{type: DAT, value: 1}", "column 'value': unknown type 'DAT'; did you mean 'DATE'?"),
        ("{type: INTERVAL, value: 90}", "90 is no INTERVAL; write 90 minutes, or 1 hour 30 minutes"),
        ("[[1]]", "is neither text, number nor truth value; write one, or a list of them"),
    ],
)
def test_what_is_no_value(written: str, said: str) -> None:
    """Named at its line."""
    with pytest.raises(SpecError) as error:
        literal(written)
    assert str(error.value) == f"late.yaml:12: spec.parameters.x: {said}"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("parameters: {a-b: 1}", "spec.parameters.a-b: 'a-b' is not a name for a parameter"),
        ("views: {A: SELECT 1}", "spec.views.A: is the name of an input in SQL, 'a'; rename one"),
        ("views: {v: SELECT 1, V: SELECT 2}", "spec.views.V: is the name of another view in SQL, 'v'"),
        ("views: {v: ''}", "spec.views.v: '' does not fit; write a SELECT"),
    ],
)
def test_names_of_views_and_parameters(more: str, said: str) -> None:
    """They are names in SQL."""
    with pytest.raises(SpecError) as error:
        _: Any = parse(f"{HEAD}  {more}\n", "late.yaml", Path("/jobs"))
    assert str(error.value).startswith(f"late.yaml:11: {said}")
