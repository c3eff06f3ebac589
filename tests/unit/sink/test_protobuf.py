"""Rows in Protobuf: what the official runtime and the product's own reader read of them is the rows."""

from datetime import UTC, datetime
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from joinlib.errors import SpecError
from joinlib.sink import protobuf
from joinlib.spec.protobuf import RowField, RowMessage, message_of, schema_text
from tests.unit.source.protobuf.shapes import files, reader, row

HEAD = b"\0\0\0\0\7\0"
TIMES = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999))  # noqa: DTZ001
LEAVES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(st.characters(codec="utf-8"), max_size=70),
    pa.binary(): st.binary(max_size=140),
    pa.timestamp("us", "UTC"): TIMES.map(lambda at: at.replace(tzinfo=UTC)),
}


def type_of(draw: Random, depth: int) -> pa.DataType:
    """A random type that columns may have."""
    how = draw.choice(["leaf", "leaf", "list", "struct"]) if depth else "leaf"
    if how == "struct":
        return pa.struct(
            [(name, type_of(draw, depth - 1)) for name in ("a", "b_type", "b")[: draw.randint(1, 3)]]
        )
    if how == "list":
        item = type_of(draw, depth - 1)
        return item if pa.types.is_list(item) else pa.list_(item)
    return draw.choice([*LEAVES])


@cache
def columns(seed: int) -> tuple[pa.Schema, RowMessage, Descriptor]:
    """Random columns with their type of messages, of which some numbers are those of a schema before."""
    draw = Random(seed)
    kinds = [*LEAVES, *map(pa.list_, LEAVES)] if seed == 0 else [type_of(draw, 3) for _ in range(4)]
    schema = pa.schema([(f"c{at}", kind) for at, kind in enumerate(kinds)])
    known = RowMessage("shop.Row", (RowField("c1", 2**29 - 100), RowField("c0", 2047)))
    message = message_of(schema, known)
    return schema, message, files(schema_text(schema, message)).at([0])


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values that are not NULL; NULL may be within them, but not as an item."""
    if pa.types.is_list(kind):
        return st.lists(values(kind.value_type), max_size=4)
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({f.name: st.none() | values(f.type) for f in kind})
    return LEAVES[kind]


def plain(value: Any, kind: pa.DataType) -> Any:
    """As readers have it: a list is never NULL."""
    if pa.types.is_list(kind):
        return [plain(one, kind.value_type) for one in value or []]
    if pa.types.is_struct(kind) and value is not None:
        return {f.name: plain(value[f.name], f.type) for f in kind}
    return value


@given(st.integers(0, 15), st.data())
def test_rows_are_read_as_they_are(seed: int, data: st.DataObject) -> None:
    """Of all types within each other, with NULL in all places but in lists, also a part of a batch."""
    schema, message, type = columns(seed)
    drawn = data.draw(
        st.lists(st.fixed_dictionaries({f.name: st.none() | values(f.type) for f in schema}), max_size=6)
    )
    start = data.draw(st.integers(0, len(drawn)))
    batch = pa.RecordBatch.from_pylist(drawn, schema).slice(start)
    expected = [{f.name: plain(one[f.name], f.type) for f in schema} for one in batch.to_pylist()]
    made = protobuf.rows(batch, HEAD, message).to_pylist()

    assert all(value.startswith(HEAD) for value in made)
    runtime = GetMessageClass(type)
    assert [row(runtime.FromString(value[len(HEAD) :])) for value in made] == expected
    table = reader(type).table(made or [HEAD], len(HEAD)).slice(0, len(made))  # it is never given no messages
    assert [
        {n: plain(v, schema.field(n).type) for n, v in one.items()} for one in table.to_pylist()
    ] == expected


def test_numbers_of_any_length() -> None:
    """At each length of the encoding, on both sides of its bounds; byte for byte as the runtime writes them."""
    schema, message, type = columns(0)
    numbers = [n for k in range(64) for n in (2**k - 1, 2**k, -(2**k), -(2**k) - 1) if -(2**63) <= n < 2**63]
    name = f"c{schema.types.index(pa.int64())}"
    batch = pa.RecordBatch.from_pylist([{name: n} for n in numbers], schema)
    runtime = GetMessageClass(type)
    assert protobuf.rows(batch, b"", message).to_pylist() == [
        runtime(**{name: n}).SerializeToString() for n in numbers
    ]


def test_null_is_told_from_what_is_empty() -> None:
    """Nothing is written of NULL, and of a list without items."""
    schema = pa.schema(
        [
            ("n", pa.int64()),
            ("s", pa.string()),
            ("l", pa.list_(pa.int64())),
            ("m", pa.struct({"a": pa.bool_()})),
        ]
    )
    given = [
        {"n": 0, "s": "", "l": [], "m": {"a": None}},
        {"n": None, "s": None, "l": None, "m": None},
        {"n": -1, "s": "x", "l": [0, 300], "m": {"a": False}},
    ]
    batch = pa.RecordBatch.from_pylist(given, schema)
    assert protobuf.rows(batch, b"h", message_of(schema, RowMessage("r"))).to_pylist() == [
        b"h\x08\0\x12\0\x22\0",
        b"h",
        b"h\x08" + b"\xff" * 9 + b"\1\x12\1x\x1a\3\0\xac\2\x22\2\x08\0",
    ]


def test_a_column_that_is_always_null() -> None:
    batch = pa.record_batch([pa.nulls(2)], ["n"])
    assert protobuf.rows(batch, b"h", message_of(batch.schema, RowMessage("r"))).to_pylist() == [b"h", b"h"]


@pytest.mark.parametrize(
    ("kind", "row", "where"),
    [
        (pa.list_(pa.int64()), [1, None], "c"),
        (pa.list_(pa.string()), [None], "c"),
        (pa.struct({"l": pa.list_(pa.bool_())}), {"l": [None]}, "c.l"),
    ],
)
def test_null_within_a_list(kind: pa.DataType, row: Any, where: str) -> None:
    """Protobuf has none, and leaving it out would be a guess; what no row holds does not matter."""
    schema = pa.schema([("c", kind)])
    batch = pa.RecordBatch.from_pylist([{"c": row}, {"c": None}], schema)
    message = message_of(schema, RowMessage("r"))
    with pytest.raises(
        SpecError, match=rf"no NULL within an ARRAY, and column '{where}'.*filter\({where}, x ->"
    ):
        protobuf.rows(batch, b"", message)
    assert protobuf.rows(batch.slice(1), b"", message).to_pylist() == [b""]
