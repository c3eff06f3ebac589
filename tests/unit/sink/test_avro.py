"""Rows in Avro: what fastavro reads of them, by the schema that they have, is the rows."""

import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.errors import SpecError
from joinlib.sink import avro
from joinlib.spec.avro import record_name, schema_of

HEAD = b"\0\0\0\0\7"
LEAVES: tuple[tuple[pa.DataType, st.SearchStrategy[Any]], ...] = (
    (pa.int8(), st.integers(-128, 127)),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.bool_(), st.booleans()),
    (pa.string(), st.text(st.characters(codec="utf-8"), max_size=70)),
    (pa.binary(), st.binary(max_size=70)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us"), st.datetimes()),
    (pa.decimal128(9, 2), st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2))),
    (pa.decimal128(38, 0), st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal)),
    (pa.null(), st.none()),
)


def nested(depth: int) -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    """A type, and values of it or NULL."""
    leaf = st.sampled_from(LEAVES).map(lambda one: (one[0], st.none() | one[1]))
    if not depth:
        return leaf
    inner = nested(depth - 1)
    lists = inner.map(lambda one: (pa.list_(one[0]), st.none() | st.lists(one[1], max_size=4)))
    maps = inner.map(
        lambda one: (
            pa.map_(pa.string(), one[0]),
            st.none()
            | st.dictionaries(st.text("ab", max_size=3), one[1], max_size=3).map(lambda d: [*d.items()]),
        )
    )
    structs = st.tuples(inner, inner).map(
        lambda two: (
            pa.struct([("x", two[0][0]), ("y", two[1][0])]),
            st.none() | st.fixed_dictionaries({"x": two[0][1], "y": two[1][1]}),
        )
    )
    return leaf | lists | maps | structs


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    kinds = draw(st.lists(nested(2), min_size=1, max_size=4))
    count = draw(st.integers(0, 9))
    columns = [pa.array([draw(values) for _ in range(count)], kind) for kind, values in kinds]
    batch = pa.record_batch(columns, [f"c{at}" for at in range(len(columns))])
    start = draw(st.integers(0, count))
    return batch.slice(start, draw(st.integers(0, count - start)))


def read(batch: pa.RecordBatch) -> list[Any]:
    """What a reader sees."""
    schema = fastavro.parse_schema(json.loads(schema_of(batch.schema, "shop.Row")))
    found = []
    for value in avro.rows(batch, HEAD).to_pylist():
        assert value.startswith(HEAD)
        rest = io.BytesIO(value[len(HEAD) :])
        found.append(fastavro.schemaless_reader(rest, schema, None))
        assert not rest.read(), "the message ends with the row"
    return found


def plain(value: Any, kind: pa.DataType) -> Any:
    """As fastavro has it: maps are dicts."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: plain(one, kind.item_type) for key, one in value}
    if pa.types.is_list(kind):
        return [plain(one, kind.value_type) for one in value]
    if pa.types.is_struct(kind):
        return {f.name: plain(value[f.name], f.type) for f in kind}
    return value


@given(batches())
def test_rows_are_read_as_they_are(batch: pa.RecordBatch) -> None:
    """Of any types within each other, with NULL anywhere, also a part of a batch."""
    expected = [{f.name: plain(row[f.name], f.type) for f in batch.schema} for row in batch.to_pylist()]
    assert read(batch) == expected


def test_numbers_of_any_length() -> None:
    """At each length of the encoding, on both sides of its bounds; as fastavro writes them."""
    values = [n for k in range(64) for n in (2**k - 1, 2**k, -(2**k), -(2**k) - 1) if -(2**63) <= n < 2**63]
    out = io.BytesIO()
    for value in values:
        fastavro.schemaless_writer(out, "long", value)
    assert b"".join(avro.numbers(np.array(values, np.int64)).to_pylist()) == out.getvalue()


def test_times_of_a_zone_and_without_one() -> None:
    """Instants, and times that nobody knows the zone of; microseconds both."""
    schema = pa.schema(
        [("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")), ("day", pa.date32())]
    )
    fields = json.loads(schema_of(schema, "r"))["fields"]
    assert [f["type"][1]["logicalType"] for f in fields] == [
        "timestamp-micros",
        "local-timestamp-micros",
        "date",
    ]


def test_every_column_has_a_default() -> None:
    """So that one more, or one less, is a change that readers can follow."""
    found = json.loads(
        schema_of(pa.schema([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))]), "shop.r")
    )
    assert found == {
        "type": "record",
        "name": "shop.r",
        "fields": [
            {"name": "a", "type": ["null", "int"], "default": None},
            {
                "name": "b",
                "type": [
                    "null",
                    {
                        "type": "record",
                        "name": "shop.r_b",
                        "fields": [{"name": "c", "type": ["null", "string"], "default": None}],
                    },
                ],
                "default": None,
            },
        ],
    }


@pytest.mark.parametrize(
    ("column", "kind", "why"),
    [
        ("count(1)", pa.int64(), r"no name like that of column 'count\(1\)'; give it one"),
        ("1st", pa.int64(), "no name like that of column '1st'"),
        ("d", pa.duration("us"), "no type for column 'd', which is duration"),
        ("m", pa.map_(pa.int64(), pa.string()), "no type for column 'm', which is a map by int64"),
        ("s", pa.struct([("a b", pa.int64())]), "no name like that of column 's.a b'"),
    ],
)
def test_what_avro_does_not_have(column: str, kind: pa.DataType, why: str) -> None:
    """Named, with what to do."""
    with pytest.raises(SpecError, match=why):
        schema_of(pa.schema([(column, kind)]), "r")


def test_a_topic_names_the_record() -> None:
    """By what Avro allows in a name."""
    assert record_name("paid-orders.v2") == "paid_orders_v2"
    assert record_name("2nd") == "_2nd"
