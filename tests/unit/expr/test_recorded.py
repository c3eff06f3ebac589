"""Every function has the values that Spark gave for edge values, NULLs and errors (see spark/record.py)."""

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from joinlib.errors import SpecError
from joinlib.expr import types as t
from tests.unit.expr.aggregates import aggregate
from tests.unit.expr.evaluate import expression
from tests.unit.expr.spark.edges import ROWS, SCHEMA, table
from tests.unit.expr.spark.values import plain_values

CASES = Path(__file__).parent / "spark" / "cases"
RECORDED = {
    text: found
    for path in sorted(CASES.glob("*.json"))
    if path.stem in ("strings", "numbers", "times", "nested")
    for text, found in json.loads(path.read_text()).items()
}
ERROR = {"error": True}
# expressions that are refused or differ, and why
KNOWN: dict[str, str] = (
    json.loads((CASES / "known.json").read_text()) if (CASES / "known.json").exists() else {}
)


def outcome(text: str, recorded: dict[str, Any]) -> tuple[str, list[Any]]:
    """Evaluate an expression for the edges, all at once where no row fails; else row by row."""
    try:
        found = expression(text, SCHEMA)
    except SpecError:  # a constant is computed at once
        if any(value != ERROR for value in recorded["values"]):
            raise
        return recorded["type"], [ERROR] * len(ROWS)
    whole = ERROR not in recorded["values"]
    if whole:
        return t.spelled(found.type), _of(found, table())
    values: list[Any] = []
    for row in ROWS:
        try:
            values += _of(found, table([row]))
        except SpecError:
            values.append(ERROR)
    return t.spelled(found.type), values


def _of(found: Any, rows: pa.Table) -> list[Any]:
    column = found.evaluate(lambda name: rows[name.removeprefix("o.")], rows.num_rows)
    assert column.type == found.type
    return plain_values(column)


def alike(ours: Any, spark: Any) -> bool:
    """Return whether two values are equal; doubles may differ in their last bits, as libraries do."""
    if isinstance(ours, float) and isinstance(spark, float):
        return ours == spark or math.isclose(ours, spark, rel_tol=4e-15) or (ours != ours and spark != spark)
    if isinstance(ours, list) and isinstance(spark, list):
        return len(ours) == len(spark) and all(map(alike, ours, spark))
    if isinstance(ours, dict) and isinstance(spark, dict):
        return list(ours) == list(spark) and all(map(alike, ours.values(), spark.values()))
    return type(ours) is type(spark) and ours == spark


@pytest.mark.parametrize("text", sorted(set(RECORDED) - set(KNOWN)))
def test_as_spark(text: str) -> None:
    """Type, values and errors are Spark's."""
    recorded = RECORDED[text]

    kind, values = outcome(text, recorded)

    assert kind.split(" ")[0] == recorded["type"].split(" ")[0]
    different = [
        (n, ours, spark)
        for n, (ours, spark) in enumerate(zip(values, recorded["values"]))
        if not alike(ours, spark)
    ]
    assert not different


@pytest.mark.parametrize("text", sorted(KNOWN))
def test_what_is_known_to_differ_differs(text: str) -> None:
    """The list of differences is not longer than it must be."""
    recorded = RECORDED[text]
    try:
        kind, values = outcome(text, recorded)
    except SpecError:
        return
    assert (
        len(values) != len(recorded["values"])
        or kind.split(" ")[0] != recorded["type"].split(" ")[0]
        or not all(map(alike, values, recorded["values"]))
    )


AGGREGATED: dict[str, Any] = json.loads((CASES / "aggregates.json").read_text())
ORDERED = {"max(named_struct('a', h, 'b', s)).b": "a STRUCT is not ordered"}


@pytest.mark.parametrize("text", sorted(set(AGGREGATED) - set(ORDERED)))
def test_aggregates_as_spark(text: str) -> None:
    """Type and value over all rows are Spark's."""
    kind, column = aggregate(text, table())

    assert t.spelled(kind) == AGGREGATED[text]["type"]
    (ours,), (spark,) = plain_values(column), AGGREGATED[text]["values"]
    assert alike(ours, spark) or (isinstance(spark, float) and math.isclose(ours, spark, rel_tol=1e-12)), (
        ours,
        spark,
    )


EXAMPLES: dict[str, dict[str, Any]] = json.loads((CASES / "examples.json").read_text())
UNSUPPORTED: dict[str, list[str]] = json.loads((CASES / "unsupported.json").read_text())
SUPPORTED = [(n, text) for n, of in EXAMPLES.items() for text in of if text not in UNSUPPORTED.get(n, [])]


@pytest.mark.parametrize(("name", "text"), SUPPORTED, ids=[f"{n}: {text}" for n, text in SUPPORTED])
def test_examples_of_the_reference(name: str, text: str) -> None:
    """What Spark's own reference shows of a function."""
    recorded = EXAMPLES[name][text]
    try:
        found = expression(text, SCHEMA)
        values = _of(found, table([ROWS[0]]))
    except SpecError:
        assert recorded["values"] == [ERROR]
        return
    assert t.spelled(found.type).split(" ")[0] == recorded["type"].split(" ")[0]
    assert alike(values, recorded["values"])


def test_what_is_unsupported_is_refused() -> None:
    """The list of what is missing is not longer than it must be."""
    taken = [
        text for name, texts in UNSUPPORTED.items() for text in texts if _taken(text, EXAMPLES[name][text])
    ]
    assert taken == []


def _taken(text: str, recorded: Any) -> bool:
    try:
        found = expression(text, SCHEMA)
        return alike(_of(found, table([ROWS[0]])), recorded["values"])
    except SpecError:
        return False
