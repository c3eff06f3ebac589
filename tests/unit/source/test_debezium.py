"""Debezium's envelopes become rows with weights, with a schema or without; values are read exactly or not at all."""

import base64
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.model.inputs import UNCHANGED, WEIGHT
from joinlib.source import RowChanges
from joinlib.source.kafka import debezium
from joinlib.source.kafka.decode import Decoder
from joinlib.source.kafka.messages import Message
from joinlib.spec import ddl
from joinlib.spec.inputs import Debezium, KafkaMetadata
from tests.configs import topics
from tests.messages import decoded, sent

SCHEMA = ddl.parse("id BIGINT, name STRING")
SOURCE = {
    "version": "3.6.3.Final",
    "connector": "postgresql",
    "snapshot": "false",
    "lsn": 24023128,
    "table": "t",
}
GONE = "__debezium_unavailable_value"
ID: dict[str, Any] = {"type": "int64", "optional": False, "field": "id"}


def envelope(op: str | None, before: Any = None, after: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "before": before,
        "after": after,
        "source": SOURCE,
        "transaction": None,
        "op": op,
        "ts_ms": 1,
        **more,
    }


def message(op: str, before: Any = None, after: Any = None, key: Any = None, **more: Any) -> Message:
    return sent(orjson.dumps(envelope(op, before, after, **more)), key=orjson.dumps(key) if key else None)


def told(fields: list[dict[str, Any]], payload: Any) -> bytes:
    """With a schema, as Connect's JSON converter writes it."""
    row = {"type": "struct", "optional": True, "fields": fields}
    inner = [{**row, "name": "t.Value", "field": n} for n in ("before", "after")]
    schema = {"type": "struct", "fields": [*inner, {"type": "string", "optional": False, "field": "op"}]}
    return orjson.dumps({"schema": {**schema, "optional": False, "name": "t.Envelope"}, "payload": payload})


def decoder(
    *columns: str, schema: pa.Schema = SCHEMA, key: tuple[str, ...] = ("id",), **more: Any
) -> Decoder:
    config = topics("i", "k:1", "orders", format="debezium", changes=RowChanges(None, key), **more)
    return Decoder(config, schema, columns or tuple(schema.names))


def rows(found: Any) -> list[tuple[Any, ...]]:
    batch, bad = found
    assert not bad, bad[0].reason
    assert batch is None or batch.schema.names[-2:] == [UNCHANGED, WEIGHT]
    return [tuple(r.values()) for r in batch.to_pylist()] if batch else []


def why(found: Any) -> str:
    assert found[0] is None or not found[0].num_rows
    ((_, reason),) = found[1]
    return str(reason)


HISTORY = [
    (message("r", None, {"id": 1, "name": "a"}), [(1, "a", 0, 1)]),
    (message("r", None, {"id": 1, "name": "a"}), [(1, "a", 0, 1)]),
    (message("c", None, {"id": 2, "name": "b"}), [(2, "b", 0, 1)]),
    (message("m", message={"prefix": "p", "content": "eA=="}), []),
    (message("u", None, {"id": 2, "name": "c"}), [(2, "c", 0, 1)]),
    (message("u", {"id": 2, "name": "c"}, {"id": 2, "name": "d"}), [(2, "d", 0, 1)]),
    (message("u", {"id": 2, "name": "d"}, {"id": 3, "name": "d"}), [(2, None, 0, -1), (3, "d", 0, 1)]),
    (message("d", {"id": 3, "name": None}, None, {"id": 3}), [(3, None, 0, -1)]),
    (sent(None, key=b'{"id":3}'), []),
    (message("d", None, None, {"id": 1}), [(1, None, 0, -1)]),
    (sent(orjson.dumps({"status": "BEGIN", "id": "571", "event_count": None, "data_collections": None})), []),
    (sent(None, key=b'{"id":1}'), []),
    (sent(None, key=b'{"id":4}'), [(4, None, 0, -1)]),
    (sent(None, key=b"no JSON"), []),
    (sent(None), []),
    (message("c", None, {"id": 1, "name": None, "more": 1.5}, transaction={"id": "571", "total_order": 1}),
     [(1, None, 0, 1)]),
]  # fmt: skip


def with_schema(one: Message) -> Message:
    """The same message from a connector that writes schemas."""
    fields = [ID, {"type": "string", "optional": True, "field": "name"}]
    value = None if one.value is None else told(fields, orjson.loads(one.value))
    if one.key is None or one.key[:1] != b"{":
        return sent(value, key=one.key)
    key = {"schema": {"type": "struct", "fields": [ID], "optional": False}, "payload": orjson.loads(one.key)}
    return sent(value, key=orjson.dumps(key))


@pytest.mark.parametrize("schemas", [False, True])
def test_what_each_op_means(schemas: bool) -> None:
    """A snapshot's row that comes twice is the same; a tombstone says what the deletion before it has said."""
    messages = [with_schema(m) if schemas else m for m, _ in HISTORY]
    assert rows(decoded(decoder(), messages)) == [row for _, found in HISTORY for row in found]


@given(st.lists(st.sampled_from(HISTORY), max_size=12), st.lists(st.booleans(), min_size=12, max_size=12))
def test_schemas_may_come_and_go(drawn: list[Any], schemas: list[bool]) -> None:
    """Whatever stands beside a message, it means the same: as one that is decoded alone."""
    messages = [with_schema(m) if s else m for (m, _), s in zip(drawn, schemas, strict=False)]
    together = rows(decoded(decoder(), messages))
    alone = [row for m in messages for row in rows(decoded(decoder(), [m]))]
    state: list[dict[int, Any]] = [{}, {}]
    for at, found in enumerate((together, alone)):
        for id, name, _, weight in found:
            state[at][id] = name if weight > 0 else None
    assert state[0] == state[1]
    assert len(together) <= len(alone)


def test_metadata_of_a_message_with_two_rows() -> None:
    """Each of them has it."""
    schema = ddl.parse("id BIGINT, n BIGINT, name STRING")
    one = decoder(schema=schema, metadata=KafkaMetadata(offset="n"))
    moved = sent(HISTORY[6][0].value, 7)
    assert rows(decoded(one, [moved])) == [(2, 7, None, 0, -1), (3, 7, "d", 0, 1)]


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (message("t"), "has op t: the table was truncated, which does not say the rows that are gone; begin again"),
        (message("x", None, {"id": 1}), "has an unknown op; Debezium's are c, u, d, r, t, m"),
        (sent(b'{"id":1}'), "is no envelope of Debezium: it has no op; for messages of rows alone"),
        (sent(b'{"payload":{"id":1},"schema":null}'), "is no envelope of Debezium: it has no op"),
        (sent(b"[1]"), "is not one JSON object"),
        (sent(b'{"op":"c"'), "is not one JSON object"),
        (sent(b"\xff"), "is not one JSON object"),
        (message("c"), "has op c, but no row in `after`"),
        (message("c", None, {"name": "a"}), "column 'id' is NULL, but belongs to upsert.key"),
        (message("d", {"name": "a"}), "neither `before` nor the message's key has column 'id' of upsert.key; name"),
        (message("d"), "neither `before` nor the message's key has column 'id'"),
        (message("c", None, {"id": 1, "name": 5}), "the value of column 'name' does not fit string"),
        (message("c", None, {"id": 1.5}), "the value of column 'id' does not fit int64"),
        (message("c", None, {"id": 2**63}), "the value of column 'id' does not fit int64"),
        (message("c", None, {"id": True}), "the value of column 'id' does not fit int64"),
        (message("c", None, {"id": GONE}), "lacks the value of column 'id' of upsert.key"),
    ],
)  # fmt: skip
def test_bad_messages(one: Message, said: str) -> None:
    """Each is named, and its neighbours come."""
    good = message("c", None, {"id": 9, "name": "z"})
    found, bad = decoded(decoder(), [good, one, good])
    assert [m for m, _ in bad] == [one]
    assert said in bad[0].reason
    assert found.column("id").to_pylist() == [9, 9]


def test_not_null() -> None:
    """A row that came has its values; one that went has its key."""
    strict = ddl.parse("id BIGINT NOT NULL, name STRING NOT NULL")
    one = decoder(schema=strict)
    assert rows(decoded(one, [message("d", {"id": 1})])) == [(1, None, 0, -1)]
    assert rows(decoded(one, [message("u", None, {"id": 1, "name": GONE})])) == [(1, None, 2, 1)]
    assert "'name' is declared NOT NULL" in why(decoded(one, [message("c", None, {"id": 1})]))


ZONED = "2026-01-31T23:59:59.000001Z"
MICROS = 1769903999000001
TIMES = [
    ("io.debezium.time.MicroTimestamp", "int64", MICROS, MICROS),
    ("io.debezium.time.Timestamp", "int64", 1769903999001, 1769903999001000),
    ("io.debezium.time.NanoTimestamp", "int64", MICROS * 1000, MICROS),
    ("io.debezium.time.ZonedTimestamp", "string", ZONED, MICROS),
    ("org.apache.kafka.connect.data.Timestamp", "int64", 1769903999001, 1769903999001000),
    ("io.debezium.time.Date", "int32", 20484, 20484 * 86_400_000_000),
]


def typed(kind: str, field: dict[str, Any] | None, value: Any, **more: Any) -> Any:
    """What is read of one value of a column `v`: the value itself, or the reason why not."""
    schema = ddl.parse(f"id BIGINT, v {kind}")
    payload = envelope("c", None, {"id": 1, "v": value})
    body = orjson.dumps(payload) if field is None else told([ID, {"field": "v", **field}], payload)
    found, bad = decoded(decoder("v", schema=schema, **more), [sent(body)])
    if bad:
        return bad[0].reason
    column = found.column("v")
    return column.cast(pa.int64())[0].as_py() if pa.types.is_timestamp(column.type) else column[0].as_py()


@pytest.mark.parametrize(("name", "kind", "value", "expected"), TIMES)
def test_timestamps_by_their_schema(name: str, kind: str, value: Any, expected: int) -> None:
    """The schema's unit counts, not the spec's."""
    field = {"type": kind, "name": name, "version": 1}
    for unit in ("millis", "micros", "nanos"):
        assert typed("TIMESTAMP", field, value, debezium=Debezium(timestamps=unit)) == expected
        if kind != "string":
            assert typed("TIMESTAMP_NTZ", field, value, debezium=Debezium(timestamps=unit)) == expected


def test_timestamps_without_a_schema() -> None:
    """Numbers have the spec's unit, micros unless it says otherwise; texts say all themselves."""
    assert typed("TIMESTAMP", None, MICROS) == MICROS
    assert typed("TIMESTAMP", None, 1769903999001, debezium=Debezium(timestamps="millis")) == 1769903999001000
    assert typed("TIMESTAMP", None, ZONED) == MICROS
    assert typed("TIMESTAMP", None, "2026-02-01T01:59:59.000001+02:00") == MICROS
    assert typed("TIMESTAMP_NTZ", None, "2026-01-31T23:59:59.000001") == MICROS
    assert typed("TIMESTAMP", None, None) is None
    for value in (1.5, True, "soon", [], 2**62):
        said = typed("TIMESTAMP", None, value, debezium=Debezium(timestamps="millis"))
        assert "does not fit timestamp" in str(said), value
    assert "does not fit" in typed(
        "TIMESTAMP", None, MICROS * 1000 + 1, debezium=Debezium(timestamps="nanos")
    )
    assert "does not fit" in typed("TIMESTAMP", {"type": "int64", "name": "io.debezium.time.MicroTime"}, 5)


def test_dates() -> None:
    """Days, or text; no other number."""
    day = pa.array([20484], pa.int32()).cast(pa.date32())[0].as_py()
    date = {"type": "int32", "name": "io.debezium.time.Date"}
    assert (
        typed("DATE", date, 20484) == typed("DATE", None, 20484) == typed("DATE", None, "2026-01-31") == day
    )
    assert "does not fit date32" in typed(
        "DATE", {"type": "int64", "name": "io.debezium.time.Timestamp"}, 20484
    )
    assert "does not fit date32" in typed("DATE", None, 2**40)


def base64_of(number: int) -> str:
    return base64.b64encode(number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)).decode()


@given(st.integers(-(10**17), 10**17))
def test_decimals_are_exact(number: int) -> None:
    """As text, as unscaled bytes with the scale in the schema, or beside them."""
    value = Decimal(f"{number}E-3")
    precise = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "3"}}
    variable = {"scale": 3, "value": base64_of(number)}
    for field, written in ((None, f"{value:f}"), (precise, base64_of(number)), (None, variable)):
        assert typed("DECIMAL(20, 3)", field, written) == value


def test_decimals_that_do_not_fit() -> None:
    """A digit is never lost; bytes without their scale are no number."""
    assert typed("DECIMAL(10, 2)", None, 0.1) == Decimal("0.10")
    assert typed("DECIMAL(10, 2)", None, 7) == Decimal(7)
    for value in ("1.234", 1.234, "NaN", "AO8=", {"scale": 2}, True, 10**12, [1]):
        said = typed("DECIMAL(10, 2)", None, value)
        assert (
            "does not fit decimal128(10, 2); let the connector write decimal.handling.mode: string" in said
        ), value


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("BOOLEAN", True, True),
        ("INT", 7, 7),
        ("SMALLINT", 7.0, 7),
        ("DOUBLE", 1, 1.0),
        ("DOUBLE", 1.5, 1.5),
        ("DOUBLE", "Infinity", float("inf")),
        ("BINARY", base64.b64encode(b"\x00\xff").decode(), b"\x00\xff"),
        ("STRING", '{"a": 1}', '{"a": 1}'),
        ("ARRAY<STRING>", ["a", None], ["a", None]),
        ("MAP<STRING, STRING>", {"a": "b"}, [("a", "b")]),
        ("STRUCT<x: DOUBLE, y: DOUBLE>", {"x": 1.0, "y": 2.0, "srid": None}, {"x": 1.0, "y": 2.0}),
    ],
)
def test_other_types(kind: str, value: Any, expected: Any) -> None:
    """As JSON has them."""
    assert typed(kind, None, value) == expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [("INT", 2**31), ("INT", "7"), ("BOOLEAN", 1), ("DOUBLE", "1.5"), ("BINARY", "no base64"), ("STRING", {"a": 1}),
     ("ARRAY<TIMESTAMP>", [1]), ("ARRAY<DECIMAL(10,2)>", ["1"]), ("ARRAY<INT>", {}), ("MAP<STRING, STRING>", [])],
)  # fmt: skip
def test_types_that_do_not_fit(kind: str, value: Any) -> None:
    """Nothing is guessed: a number in an array of times, for example, has no unit."""
    assert "the value of column 'v' does not fit" in str(typed(kind, None, value))


def test_values_that_were_not_sent() -> None:
    """A bit for each, by its place in the declared schema, whatever columns are asked for."""
    schema = ddl.parse("a STRING, id BIGINT, b BINARY, c ARRAY<STRING>, d ARRAY<INT>, e MAP<STRING, STRING>")
    after = {
        "id": 1, "a": GONE, "b": base64.b64encode(GONE.encode()).decode(), "c": [GONE], "d": list(GONE.encode()),
        "e": {GONE: GONE},
    }  # fmt: skip
    given = {"id": 1, "a": "x", "b": "eA==", "c": ["x"], "d": [1], "e": {"x": "y"}}
    found = rows(decoded(decoder("id", "e", "d", "c", "b", "a", schema=schema), [message("u", None, after)]))
    assert found == [(1, None, None, None, None, None, 0b111101, 1)]
    two = rows(decoded(decoder("c", schema=schema), [message("u", None, after), message("u", None, given)]))
    assert two == [(None, 0b1000, 1), (["x"], 0, 1)]
    other = decoder("a", schema=schema, debezium=Debezium(unavailable="-"))
    assert rows(
        decoded(other, [message("u", None, {**given, "a": GONE}), message("u", None, {**given, "a": "-"})])
    ) == [
        (GONE, 0, 1),
        (None, 1, 1),
    ]


def test_masks_behind_a_message_of_another_schema() -> None:
    """Each row keeps its own."""
    fields = [ID, {"type": "string", "field": "name"}]
    bodies = [envelope("u", None, {"id": i, "name": name}) for i, name in enumerate(("a", GONE, GONE, "b"))]
    messages = [sent(orjson.dumps(b)) for b in bodies[:2]] + [sent(told(fields, b)) for b in bodies[2:]]
    assert [row[2] for row in rows(decoded(decoder(), messages))] == [0, 2, 2, 0]


def test_a_mask_has_an_end() -> None:
    """What it cannot say is an error."""
    schema = pa.schema([("id", pa.int64()), *((f"c{i}", pa.string()) for i in range(1, 65))])
    one = decoder(schema=schema)
    assert rows(decoded(one, [message("u", None, {"id": 1, "c62": GONE})]))[0][-2] == 1 << 62
    assert "column 'c63', which can be said of the first 63 columns only" in why(
        decoded(one, [message("u", None, {"id": 1, "c63": GONE})])
    )


def test_a_schema_that_was_seen_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stands in it, also a field of the name of what is behind it; and one that differs is."""
    parsed: list[int] = []
    loads = orjson.loads
    monkeypatch.setattr(debezium.orjson, "loads", lambda text: parsed.append(len(text)) or loads(text))
    fields = [ID, {"type": "string", "field": '"payload":'}, {"type": "string", "field": "name"}]
    bodies = [told(fields, envelope("c", None, {"id": i, "name": "a"})) for i in range(5)]
    other = told(
        [ID, {"type": "string", "field": "name", "doc": "x"}], envelope("c", None, {"id": 5, "name": "a"})
    )
    found = decoded(decoder(), [sent(b) for b in (*bodies, other, bodies[0])])
    assert [r[0] for r in rows(found)] == [0, 1, 2, 3, 4, 5, 0]
    assert sum(size > 500 for size in parsed) <= 6
    assert parsed.count(len(bodies[1])) <= 2


DEEP = b"[" * 1000 + b"]" * 1000


@pytest.mark.parametrize(
    "value",
    [
        b'{"op":"u","before":{"id":' + DEEP + b'},"after":{"id":' + DEEP + b"}}",
        b'{"op":"d","before":"x"}',
        b'{"op":"c","after":{"id":{"scale":99999999,"value":"AQ=="}}}',
        b'{"op":"c","after":{"id":{"scale":-99999999,"value":"AQ=="}}}',
        b'{"op":"c","after":{"id":{"scale":1,"value":[]}}}',
    ],
)
def test_what_no_connector_writes_is_a_bad_message(value: bytes) -> None:
    """It neither stops the job nor, as a number of 100 million places in Arrow does, its process."""
    good = message("c", None, {"id": 1})
    found, bad = decoded(decoder("id", schema=ddl.parse("id DECIMAL(9, 2)")), [good, sent(value), good])
    assert found is not None and found.num_rows == 2
    assert [m.value for m, _ in bad] == [value]


def test_schemas_that_are_nested_without_end() -> None:
    """They are compared with each other, which has an end."""
    deep = sent(b'{"schema":' + DEEP + b',"payload":{"op":"c","after":{"id":1}}}')
    found, bad = decoded(decoder("id"), [deep, message("c", None, {"id": 2}), sent(deep.value + b" ")])
    assert rows((found, [])) == [(2, 0, 1)] and [why for _, why in bad] == ["is nested too deeply"] * 2


@pytest.mark.parametrize(
    "parameters", ["x", 7, {"scale": "--1"}, {"scale": "9" * 5000}, {"scale": "\u00b2"}, {"scale": None}]
)
def test_schemas_whose_parameters_say_nothing(parameters: Any) -> None:
    one = sent(told([{**ID, "name": "n", "parameters": parameters}], envelope("c", None, {"id": 1})))
    assert rows(decoded(decoder("id"), [one])) == [(1, 0, 1)]
