"""The compiled reader against fastavro: random schemas, random rows, random cuts; then what only resolution does."""

import contextlib
import io
import json
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.errors import InputError
from joinlib.source.avro.columns import AvroRows, Malformed
from joinlib.source.avro.program import compiled
from joinlib.source.avro.schema import parsed
from joinlib.source.avro.types import columns_of, number
from joinlib.spec import ddl

Json = Any
_NUMBERS = {"int": 31, "long": 63}
_SIMPLE = ["boolean", "int", "long", "float", "double", "string", "bytes"]


@st.composite
def types(draw: Any, depth: int = 3) -> Json:  # noqa: C901  a case for each type
    """An Avro type that has a column type."""
    kinds = [
        *_SIMPLE,
        "date",
        "millis",
        "micros",
        "local",
        "decimal",
        "fixed decimal",
        "uuid",
        "fixed uuid",
        "enum",
        "fixed",
    ]
    kind = draw(st.sampled_from(kinds + (["array", "map", "record", "nullable"] if depth else [])))
    name = f"n{draw(st.uuids()).hex}"
    match kind:
        case "date":
            return {"type": "int", "logicalType": "date"}
        case "millis" | "micros":
            return {"type": "long", "logicalType": f"timestamp-{kind}"}
        case "local":
            return {"type": "long", "logicalType": "local-timestamp-micros"}
        case "decimal":
            return {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}
        case "fixed decimal":
            return {
                "type": "fixed",
                "name": name,
                "size": 9,
                "logicalType": "decimal",
                "precision": 20,
                "scale": 3,
            }
        case "uuid":
            return {"type": "string", "logicalType": "uuid"}
        case "fixed uuid":
            return {"type": "fixed", "name": name, "size": 16, "logicalType": "uuid"}
        case "enum":
            return {"type": "enum", "name": name, "symbols": ["A", "B", "Ccc"]}
        case "fixed":
            return {"type": "fixed", "name": name, "size": 3}
        case "array":
            return {"type": "array", "items": draw(types(depth=depth - 1))}
        case "map":
            return {"type": "map", "values": draw(types(depth=depth - 1))}
        case "record":
            return draw(records(depth=depth - 1))
        case "nullable":
            inner = draw(types(depth=depth - 1))
            if isinstance(inner, list):
                return inner
            return draw(st.sampled_from([["null", inner], [inner, "null"]]))
    return kind


@st.composite
def records(draw: Any, depth: int = 3) -> Json:
    fields = draw(st.lists(types(depth=depth), min_size=1, max_size=4))
    named = [{"name": f"f{i}", "type": t} for i, t in enumerate(fields)]
    return {"type": "record", "name": f"r{draw(st.uuids()).hex}", "fields": named}


def values(type: Json) -> st.SearchStrategy[Any]:  # noqa: C901  likewise
    if isinstance(type, list):
        return st.one_of(*map(values, type))
    kind = type if isinstance(type, str) else type["type"]
    logical = "" if isinstance(type, str) else type.get("logicalType", "")
    simple: dict[str, st.SearchStrategy[Any]] = {
        "null": st.none(),
        "boolean": st.booleans(),
        "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "string": st.text(max_size=8),
        "bytes": st.binary(max_size=8),
    }
    if logical == "date":
        return st.dates()
    if "timestamp" in logical:
        unit = 1000 if logical.endswith("millis") else 1
        return st.integers(-(10**13), 10**14).map(lambda n: n * unit)  # microseconds
    if logical == "decimal":
        return st.integers(-(10**20) + 1, 10**20 - 1).map(lambda n: Decimal(n).scaleb(-3))
    if logical == "uuid":
        return st.uuids()
    if kind in _NUMBERS:
        return st.integers(-(2 ** _NUMBERS[kind]), 2 ** _NUMBERS[kind] - 1)
    match kind:
        case "enum":
            return st.sampled_from(type["symbols"])
        case "fixed":
            return st.binary(min_size=type["size"], max_size=type["size"])
        case "array":
            return st.lists(values(type["items"]), max_size=3)
        case "map":
            return st.dictionaries(st.text(max_size=3), values(type["values"]), max_size=3)
        case "record":
            return st.fixed_dictionaries({f["name"]: values(f["type"]) for f in type["fields"]})
    return simple[kind]


def plain(type: Json) -> Json:
    """A type with times as bare numbers, whose range is not that of Python's datetime."""
    if isinstance(type, list):
        return [plain(t) for t in type]
    if not isinstance(type, dict):
        return type
    if "timestamp" in type.get("logicalType", ""):
        return type["type"]
    return {k: plain(v) if k in ("type", "items", "values") else [{**f, "type": plain(f["type"])} for f in v]
            if k == "fields" else v for k, v in type.items()}  # fmt: skip


def bare(type: Json, value: Any) -> Any:
    """A value for `plain`: times are given in microseconds."""
    if value is None:
        return None
    if isinstance(type, list):
        return bare(next(t for t in type if t != "null"), value)
    if not isinstance(type, dict):
        return value
    if type.get("logicalType") == "timestamp-millis":
        return value // 1000
    if type["type"] == "fixed" and isinstance(value, UUID):
        return value.bytes  # fastavro knows uuids as text alone
    match type["type"]:
        case "array":
            return [bare(type["items"], v) for v in value]
        case "map":
            return {k: bare(type["values"], v) for k, v in value.items()}
        case "record":
            return {f["name"]: bare(f["type"], value[f["name"]]) for f in type["fields"]}
    return value


def written(schema: Json, rows: list[Any]) -> list[bytes]:
    found, made = [], fastavro.parse_schema(schema)
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, made, row)
        found.append(out.getvalue())
    return found


def reader(schema: Json, columns: pa.Schema | str | None = None, own: Json = None) -> AvroRows:
    """Reads messages of a schema; `own` is the reader's."""
    writer = parsed([json.dumps(schema)])
    want = ddl.parse(columns) if isinstance(columns, str) else columns
    want = columns_of(writer) if want is None else want
    return AvroRows(compiled(writer, want, parsed([json.dumps(own or schema)])), want.names)


def arrow(value: Any) -> Any:
    """A value as Arrow takes it for a column."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, list):
        return [arrow(v) for v in value]
    return value


def column(type: pa.DataType, cells: list[Any]) -> pa.Array:
    return pa.array([cell(type, c) for c in cells], type)


def cell(type: pa.DataType, value: Any) -> Any:
    if value is None:
        return None
    if pa.types.is_map(type):
        return [(k, cell(type.item_type, v)) for k, v in value.items()]
    if pa.types.is_list(type):
        return [cell(type.value_type, v) for v in value]
    if pa.types.is_struct(type):
        return {f.name: cell(f.type, value[f.name]) for f in (type.field(i) for i in range(type.num_fields))}
    return arrow(value)


@st.composite
def streams(draw: Any) -> tuple[Json, list[Any]]:
    schema = draw(records())
    return schema, draw(st.lists(values(schema), min_size=1, max_size=12))


@settings(max_examples=150, deadline=None)
@given(streams(), st.data())
def test_reads_what_fastavro_writes(stream: tuple[Json, list[Any]], data: Any) -> None:
    schema, rows = stream
    messages = written(plain(schema), [bare(schema, row) for row in rows])
    all = columns_of(parsed([json.dumps(schema)]))
    some = pa.schema(data.draw(st.lists(st.sampled_from(list(all)), min_size=1, unique_by=lambda f: f.name)))
    made = reader(schema, some)
    for count in (len(rows), len(rows), 1):  # twice: the second time there is room for arrays
        table = made.table([b"head." + m for m in messages[:count]], 5)
        table.validate(full=True)
        for field in some:
            want = column(field.type, [row[field.name] for row in rows[:count]])
            assert table.column(field.name).combine_chunks().equals(want)
    cut = data.draw(st.integers(1, max(len(messages[0]), 1)))
    if messages[0]:
        with pytest.raises(Malformed):
            made.table([*messages[1:], messages[0][:-cut]])
    with pytest.raises(Malformed):
        made.table([messages[0] + b"\0"])


@settings(max_examples=150, deadline=None)
@given(records(), st.lists(st.binary(max_size=40), min_size=1, max_size=3))
def test_reads_any_bytes_without_harm(schema: Json, messages: list[bytes]) -> None:
    with contextlib.suppress(Malformed):
        reader(schema).table(messages).validate(full=True)


def record(**fields: Json) -> Json:
    return {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in fields.items()]}


def test_numbers_are_widened_and_texts_are_bytes() -> None:
    messages = written(record(i="int", l="long", f="float", s="string", b="bytes"),
                       [{"i": -3, "l": 2**60, "f": 0.5, "s": "é", "b": b"x"}])  # fmt: skip
    made = reader(
        record(i="int", l="long", f="float", s="string", b="bytes"),
        "b STRING, s BINARY, f DOUBLE, l FLOAT, i DOUBLE",
    )
    assert made.table(messages).to_pylist() == [
        {"b": "x", "s": "é".encode(), "f": 0.5, "l": 2.0**60, "i": -3.0}
    ]


def test_unions_of_several_types() -> None:
    schema = record(x=["null", "int", "string", "double"])
    messages = written(schema, [{"x": 1}, {"x": None}, {"x": 2.5}])
    assert reader(schema, "x DOUBLE").table(messages).column(0).to_pylist() == [1.0, None, 2.5]
    with pytest.raises(Malformed, match="of a type that cannot be read"):
        reader(schema, "x DOUBLE").table(written(schema, [{"x": "a"}]))
    with pytest.raises(InputError, match="field 'x' is a union of null and int and string and double"):
        reader(schema)


def test_what_the_writer_lacks() -> None:
    """Defaults of every type, by the reader's schema; an alias; NULL where there is neither."""
    inner = {
        "type": "record",
        "name": "In",
        "fields": [{"name": "a", "type": "int", "default": 4}, {"name": "b", "type": "string"}],
    }
    own = record(old="int", n=["null", "int"], e={"type": "enum", "name": "E", "symbols": ["P", "Q"]}, d="double", r=inner,
                 y="bytes", t={"type": "array", "items": ["null", "string"]})  # fmt: skip
    defaults = [None, None, "Q", 1, {"b": "z"}, "\xff", ["k", None]]
    for field, default in list(zip(own["fields"], defaults, strict=True))[1:]:
        field["default"] = default
    own["fields"][0] = {"name": "new", "type": "long", "aliases": ["old"]}
    rows = reader(record(old="int"), columns_of(parsed([json.dumps(own)])), own).table(
        written(record(old="int"), [{"old": 7}])
    )
    want = {"new": 7, "n": None, "e": "Q", "d": 1.0, "r": {"a": 4, "b": "z"}, "y": b"\xff", "t": ["k", None]}
    assert rows.to_pylist() == [want]
    declared = reader(record(old="int"), "old BIGINT, other ARRAY<INT>").table(
        written(record(old="int"), [{"old": 7}])
    )
    assert declared.to_pylist() == [{"old": 7, "other": None}]


@pytest.mark.parametrize(
    ("schema", "columns", "said"),
    [
        (record(x="long"), "x INT", "field 'x' is long, which cannot be read as int32; declare a type"),
        (record(x="double"), "x FLOAT", "cannot be read as float"),
        (record(x={"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 4}), "x DECIMAL(9, 2)", "is decimal"),
        (record(x={"type": "long", "logicalType": "timestamp-micros"}), "x TIMESTAMP_NTZ", "is timestamp-micros"),
        (record(x=record(y="string")), "x STRUCT<y: INT>", "field 'x.y' is string, which cannot be read as int32"),
        (record(x=record(y=["null", "int"])), "x STRUCT<y: INT NOT NULL>", "'x.y' may be null, but is declared NOT NULL"),
        (record(x="int"), "y INT NOT NULL", "has no field 'y', which is declared NOT NULL"),
        ("string", "y INT", "messages must be records"),
        ({"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}, "y INT", "'next' holds itself"),
    ],
)  # fmt: skip
def test_types_that_do_not_fit(schema: Json, columns: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        reader(schema, columns)


@pytest.mark.parametrize("text", ["{", "[]x", '"nobody"', '{"type": "record"}', "[" * 10_000, "7", "null"])
def test_texts_that_are_no_schema(text: str) -> None:
    with pytest.raises(InputError, match="is not an Avro schema"):
        parsed([text])


def test_items_without_a_byte_are_counted() -> None:
    """A message of ten bytes may not stand for 2^60 rows."""
    nothing = record(x={"type": "array", "items": {"type": "record", "name": "E", "fields": []}}, y="int")
    with pytest.raises(Malformed):
        reader(nothing, "y INT").table([b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\0"])


def test_blocks_of_items_without_a_byte_are_counted_together() -> None:
    """As many items as bytes are left, block after block, would be the square of a message's length."""
    empty = {"type": "record", "name": "E", "fields": []}
    nothing = record(x={"type": "array", "items": empty}, y="string")
    filled = {**empty, "fields": [{"name": "a", "type": "int", "default": 0}]}
    own = record(x={"type": "array", "items": filled}, y="string")
    made = reader(nothing, columns_of(parsed([json.dumps(own)])), own)
    for one in (made, reader(nothing, "y STRING")):
        with pytest.raises(Malformed):
            one.table([number(5) * 3 + b"\0" + number(4) + b"rest"])
    assert (
        made.table([number(1) * 3 + b"\0" + number(1) + b"s"] * 2).to_pylist()
        == [{"x": [{"a": 0}] * 3, "y": "s"}] * 2
    )


@pytest.mark.parametrize(("width", "levels"), [(2, 30), (1, 150)])
def test_records_within_records_without_end(width: int, levels: int) -> None:
    """Each holds the one before it, twice or once: a text of 2 kB, and a thousand million columns."""
    texts = [json.dumps({**record(x="int"), "name": "R0"})]
    for level in range(levels):
        inner = record(**{f"f{i}": f"R{level}" for i in range(width)})
        texts.append(json.dumps({**inner, "name": f"R{level + 1}"}))
    assert len(columns_of(parsed(texts[:9]))) == width
    with pytest.raises(InputError, match="flatten the schema, or refer to fewer records"):
        parsed(texts)
