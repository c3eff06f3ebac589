"""Rows as text and as messages: parsed again they are the rows."""

import base64
import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.errors import SpecError
from joinlib.sink import changelog, texts
from joinlib.spec.avro import schema_of
from joinlib.spec.protobuf import RowMessage, message_of
from tests.configs import results
from tests.messages import written

ARROW = results("kafka:9092", "t", format="arrow")
TIMES = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999))  # noqa: DTZ001
TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "big": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "tiny": (pa.int8(), st.integers(-128, 127)),
    "yes": (pa.bool_(), st.booleans()),
    "double": (pa.float64(), st.floats()),
    'te"xt\n': (pa.string(), st.text(st.sampled_from('aé"\\\n\x00\x1f\x7f,𝄞'), max_size=4)),
    "large": (pa.large_string(), st.text(max_size=3)),
    "decimal": (pa.decimal128(12, 3), st.decimals(-999999, 999999, places=3)),
    "day": (pa.date32(), st.dates()),
    "instant": (pa.timestamp("us", "UTC"), TIMES.map(lambda t: t.replace(tzinfo=UTC))),
    "local": (pa.timestamp("us"), TIMES),
    "bytes": (pa.binary(), st.binary(max_size=4)),
    "list": (pa.list_(pa.int64()), st.lists(st.integers(-3, 3), max_size=2)),
    "struct": (
        pa.struct({"a": pa.string(), "b": pa.binary()}),
        st.fixed_dictionaries({"a": st.text(max_size=2), "b": st.binary(max_size=3)}),
    ),
}
ROWS = st.lists(st.tuples(*(st.none() | values for _, values in TYPES.values())), max_size=5)


def batch_of(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(TYPES)
    arrays = [pa.array(c, kind) for c, (kind, _) in zip(columns, TYPES.values(), strict=True)]
    return pa.record_batch(arrays, names=list(TYPES))


def as_json(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(timespec="microseconds") + ("Z" if value.tzinfo else "")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: as_json(inner) for name, inner in value.items()}
    return str(value) if isinstance(value, Decimal | date) else value


@given(rows=ROWS)
def test_json_is_the_rows(rows: list[tuple[Any, ...]]) -> None:
    """One object a row, in order, whatever is in the strings; also of a slice."""
    batch = batch_of([*rows, *rows]).slice(len(rows))
    for made, row in zip(texts.json_objects(batch).to_pylist(), rows, strict=True):
        read = orjson.loads(made)
        assert list(read) == list(TYPES)
        for value, told in zip(row, read.values(), strict=True):
            if isinstance(value, Decimal):
                assert Decimal(told) == value
            else:
                assert told == as_json(value)


@given(rows=ROWS)
def test_csv_is_the_rows(rows: list[tuple[Any, ...]]) -> None:
    """Strings are quoted, NULL is nothing at all."""
    names = ["big", 'te"xt\n', "large", "day", "local"]
    batch = batch_of(rows).select(names)
    places = [list(TYPES).index(n) for n in names]
    for made, row in zip(texts.csv_lines(batch).to_pylist(), rows, strict=True):
        wanted = ["" if row[p] is None else str(as_json(row[p])) for p in places]
        assert next(csv.reader(io.StringIO(made, newline=""), strict=True)) == wanted
        assert made.split(",")[0] == wanted[0]


def test_keys() -> None:
    """One column: its text, or no key where it is NULL. Several: a JSON array."""
    batch = pa.record_batch({"s": ["a", None], "n": [1, 2], "t": pa.array([0, 1], pa.timestamp("us", "UTC"))})

    def keys(*key: str) -> list[bytes | None]:
        return [k for k, _ in written(batch, results("kafka:9092", "t", key=key))]

    assert keys() == [None, None]
    assert keys("s") == [b"a", None]
    assert keys("n") == [b"1", b"2"]
    assert keys("t") == [b"1970-01-01T00:00:00.000000Z", b"1970-01-01T00:00:00.000001Z"]
    assert keys("s", "n") == [b'["a",1]', b"[null,2]"]


def test_keys_in_avro() -> None:
    """Records behind the id of their schema, which other jobs read; NULL in a single column is no key here, too."""
    batch = pa.record_batch({"s": ["a", None], "n": [1, 2]})
    registry = {"url": "http://r"}

    def keys(*key: str) -> list[Any]:
        spec = results("kafka:9092", "t", key=key, format="avro", key_format="avro", registry=registry)
        found = [k for k, _ in written(batch, replace(spec, schema_id=7, key_schema_id=258))]
        assert all(k is None or k[:5] == b"\0\0\0\1\2" for k in found)
        columns = pa.schema([batch.schema.field(name) for name in key])
        schema = fastavro.parse_schema(json.loads(schema_of(columns, "t_key")))
        return [k and fastavro.schemaless_reader(io.BytesIO(k[5:]), schema, None) for k in found]

    assert keys("s") == [{"s": "a"}, None]
    assert keys("n", "s") == [{"n": 1, "s": "a"}, {"n": 2, "s": None}]


def test_values_in_protobuf() -> None:
    """Behind the id of the schema and a zero, which is its first type; a row that went is a tombstone, too."""
    batch = pa.record_batch({"k": [1, 2], "n": [5, 6], "$weight": [1, -1]})
    registry = {"url": "http://r"}
    target = results("kafka:9092", "t", key=("k",), mode="upsert", format="protobuf", registry=registry)
    message = message_of(batch.schema.remove(2), RowMessage("t"))
    found = written(batch, replace(target, schema_id=258, message=message))
    assert found == [(b"1", b"\0\0\0\1\2\0\x08\1\x10\5"), (b"2", None)]


def test_keys_in_protobuf() -> None:
    """Behind the id of their own schema; a NULL in several is a field that is unset, and alone it is no key."""
    batch = pa.record_batch({"s": ["a", None], "n": [1, 2]})
    registry = {"url": "http://r"}

    def keys(*key: str) -> list[bytes | None]:
        columns = pa.schema([batch.schema.field(name) for name in key])
        target = replace(
            results("kafka:9092", "t", key=key, format="protobuf", key_format="protobuf", registry=registry),
            schema_id=7,
            key_schema_id=258,
            message=message_of(batch.schema, RowMessage("t")),
            key_message=message_of(columns, RowMessage("t_key")),
        )
        return [k for k, _ in written(batch, target)]

    assert keys("s") == [b"\0\0\0\1\2\0\x0a\1a", None]
    assert keys("n", "s") == [b"\0\0\0\1\2\0\x08\1\x12\1a", b"\0\0\0\1\2\0\x08\2"]


@pytest.mark.parametrize(("format", "value"), [("json", b'{"k":1,"n":5}'), ("csv", b"1,5")])
def test_a_row_that_went_is_a_tombstone(format: Any, value: bytes) -> None:
    """Its key without a value; the weight itself is in no message."""
    batch = pa.record_batch({"k": [1, 2], "n": [5, 6], "$weight": [1, -1]})
    target = results("kafka:9092", "t", format=format, key=("k",), mode="upsert")
    assert written(batch, target) == [(b"1", value), (b"2", None)]


def test_a_key_that_is_null_replaces_nothing() -> None:
    """A column of several may be NULL: the key is an array then."""
    batch = pa.record_batch({"k": [None, "a"], "n": [5, 6], "$weight": [1, -1]})
    target = results("kafka:9092", "t", key=("k",), mode="upsert")
    with pytest.raises(SpecError, match=r"output\.key: k is NULL in a row.*WHERE k IS NOT NULL"):
        written(batch, target)
    target = results("kafka:9092", "t", key=("k", "n"), mode="upsert")
    assert written(batch, target) == [(b"[null,5]", b'{"k":null,"n":5}'), (b'["a",6]', None)]


@pytest.mark.parametrize(("mode", "tombstones"), [("changelog", 0), ("upsert", 1)])
def test_the_envelope_of_debezium(mode: Any, tombstones: int) -> None:
    """An update is one message; what went is followed by a tombstone in mode upsert, with the same key."""
    changes = pa.record_batch({"k": [1, 2, 2, 3], "n": [5, 6, 7, 8], "$weight": [-1, -1, 1, 1]})
    batch = changelog.rows(changes, ("k",), 9)
    target = results("kafka:9092", "t", key=("k",), mode=mode, format="debezium")
    told = written(batch, target)
    assert [k for k, v in told if v is None] == [b'{"k":1}'] * tombstones
    read = [(orjson.loads(k or b""), orjson.loads(v)) for k, v in told if v is not None]
    for key, value in read:
        assert value.pop("ts_ms") > 1_700_000_000_000
        assert value.pop("source") == {"batch": 9}
        assert list(value) == ["before", "after", "op"]
        assert key == {"k": (value["before"] or value["after"])["k"]}
    assert [tuple(v.values()) for _, v in read] == [
        ({"k": 1, "n": 5}, None, "d"),
        ({"k": 2, "n": 6}, {"k": 2, "n": 7}, "u"),
        (None, {"k": 3, "n": 8}, "c"),
    ]
    assert written(batch.slice(0, 0), target) == []
    keyless = results("kafka:9092", "t", mode="changelog", format="debezium")
    assert {k for k, _ in written(batch, keyless)} == {None}


@given(sizes=st.lists(st.integers(0, 900), min_size=1, max_size=12), limit=st.integers(1400, 3000))
def test_a_frame_is_cut_until_it_fits(sizes: list[int], limit: int) -> None:
    """All rows, in order, in messages no larger than the limit."""
    batch = pa.record_batch({"s": ["x" * n for n in sizes]})
    made = [v for _, v in written(batch, replace(ARROW, max_bytes=limit)) if v]
    assert max(map(len, made)) <= limit
    read = pa.concat_tables([pa.ipc.open_stream(v).read_all() for v in made])
    assert read["s"].to_pylist() == batch["s"].to_pylist()


def test_a_row_that_no_message_holds() -> None:
    """The error names topic, size and limit."""
    batch = pa.record_batch({"s": ["x" * 5000]})
    with pytest.raises(SpecError, match=r"takes 5\d{3} bytes, a message of topic t at most 2000; raise"):
        written(batch, replace(ARROW, max_bytes=2000))
