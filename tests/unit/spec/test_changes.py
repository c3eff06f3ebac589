"""What a spec says of inputs whose rows change: mistakes are named at their place, with the mend."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from joinlib.errors import SpecError
from joinlib.plan import JoinOptions, pipeline
from joinlib.plan.spec import source
from joinlib.spec import parse
from joinlib.spec.inputs import Input

SCHEMA = "id BIGINT, part STRING, n INT, at TIMESTAMP, tags ARRAY<STRING>, op STRING"
FILES = {"files": {"path": "orders"}}
KAFKA = {"kafka": {"bootstrapServers": "k:1", "topic": "orders"}}
DEBEZIUM = {"kafka": {"bootstrapServers": "k:1", "topic": "orders", "format": "debezium"}}


def given(sourced: dict[str, Any], schema: str = SCHEMA, **parts: Any) -> Input:
    spec = {
        "sql": "SELECT id FROM orders",
        "inputs": {"orders": {"schema": schema, **sourced, **parts}},
        "output": {"noop": {}},
        "checkpoint": {"path": "checkpoint"},
    }
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "t"}}
    return parse(yaml.safe_dump({**head, "spec": spec}), "t.yaml", Path("/base")).spec.inputs["orders"]


@pytest.mark.parametrize(
    ("sourced", "parts", "said"),
    [
        (FILES, {"changes": {"op": "opp"}}, "changes.op: no column 'opp' in the schema; did you mean 'op'?"),
        (FILES, {"changes": {"op": "at"}}, "changes.op: column 'at' is timestamp[us, tz=UTC]; declare it as STRING"),
        (FILES, {"changes": {}}, "changes.op: "),
        (FILES, {"changes": {"op": "op"}, "schema": "op STRING"}, "changes.op: column 'op' is the only one; add"),
        (FILES, {"changes": {"op": "op", "onUnknownDelete": "no"}}, "onUnknownDelete: 'no' is not one of fail, skip"),
        (FILES, {"upsert": {}}, "upsert.key: "),
        (FILES, {"upsert": {"key": []}}, "upsert.key: names no column; write the columns that name a row"),
        (FILES, {"upsert": {"key": ["idd"]}}, "upsert.key: no column 'idd' in the schema; did you mean 'id'?"),
        (FILES, {"upsert": {"key": ["id", "id"]}}, "upsert.key: names a column twice"),
        (FILES, {"upsert": {"key": ["tags"]}}, "upsert.key: column 'tags' is list<element: string>; a key needs"),
        (FILES, {"upsert": {"key": ["op"]}, "changes": {"op": "op"}}, "upsert.key: column 'op' holds the operation"),
        ({"generator": {}}, {"changes": {"op": "op"}}, "changes: generated rows only come; remove it, or use files"),
        ({"generator": {}}, {"upsert": {"key": ["id"]}}, "upsert: generated rows only come"),
        (FILES, {"role": "table", "changes": {"op": "op"}}, "changes: is for streams: a table is read as it is"),
        (FILES, {"role": "table", "upsert": {"key": ["id"]}}, "upsert: is for streams: a table is read as it is"),
        (DEBEZIUM, {}, "upsert: is missing; kafka.format: debezium needs it: add the columns of the table's key"),
        (DEBEZIUM, {"upsert": {"key": ["id"]}, "changes": {"op": "op"}}, "changes: is not needed: messages of"),
        ({"kafka": {**KAFKA["kafka"], "debezium": {"timestamps": "millis"}}}, {}, "debezium: is for format debezium"),
        ({"kafka": {**DEBEZIUM["kafka"], "debezium": {"timestamps": "ms"}}}, {"upsert": {"key": ["id"]}},
         "timestamps: 'ms' is not one of millis, micros, nanos"),
    ],
)  # fmt: skip
def test_refused(sourced: dict[str, Any], parts: dict[str, Any], said: str) -> None:
    """One sentence for each mistake."""
    with pytest.raises(SpecError) as error:
        given(sourced, **parts)
    assert said in str(error.value)


def test_what_the_planner_sees() -> None:
    """No operation in SQL, and no number of a row: those before it may be left out."""
    plain, op, upsert, both, envelopes = (
        source(given(sourced, eventTime={"column": "at"}, **parts))
        for sourced, parts in (
            (FILES, {}),
            (FILES, {"changes": {"op": "op", "onUnknownDelete": "skip"}}),
            (KAFKA, {"upsert": {"key": ["part", "id"]}}),
            (FILES, {"upsert": {"key": ["id"]}, "changes": {"op": "n"}}),
            (DEBEZIUM, {"upsert": {"key": ["id"]}}),
        )
    )
    assert (plain.changes, plain.upsert, plain.numbered, plain.partial) == (False, (), True, False)
    assert "op" in plain.schema.names
    assert (op.changes, op.upsert, op.skip_unknown, op.numbered) == (True, (), True, False)
    assert "op" not in op.schema.names
    assert (upsert.changes, upsert.upsert, upsert.partial) == (True, ("part", "id"), False)
    assert (both.upsert, both.schema.names) == (("id",), ["id", "part", "at", "tags", "op"])
    assert (envelopes.upsert, envelopes.partial) == (("id",), True)


def test_an_unknown_deletion_is_an_error_unless_said_otherwise() -> None:
    """Of an upsert it never gets as far as the joins, which therefore may be of any kind."""
    skip = {"op": "op", "onUnknownDelete": "skip"}
    assert not source(given(FILES, changes={"op": "op"})).skip_unknown
    assert not source(given(FILES, upsert={"key": ["id"]})).skip_unknown
    upserts = source(given(FILES, upsert={"key": ["id"]}, changes=skip))
    sql = "SELECT a.id AS id, b.n AS n FROM a JOIN b ON a.n < b.n"
    assert pipeline(sql, dict.fromkeys("ab", upserts), JoinOptions(units=4), mode="changelog").changes
    counted = source(given(FILES, changes=skip))
    with pytest.raises(SpecError, match="onUnknownDelete: skip is for joins by the hash of a key"):
        pipeline(sql, dict.fromkeys("ab", counted), JoinOptions(units=4), mode="changelog")
