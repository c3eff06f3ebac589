"""Which types fit which columns; schemas that evolve; texts that are no schema."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass

from joinlib.errors import InputError
from joinlib.source.cells.arrow import Malformed
from joinlib.source.protobuf.protoc import ProtoFile, compiled_files
from joinlib.source.protobuf.schema import ProtoSchema
from joinlib.source.protobuf.types import columns_of
from joinlib.spec import ddl
from tests.unit.source.protobuf.shapes import files, reader

STAMP = 'import "google/protobuf/timestamp.proto"; message M { google.protobuf.Timestamp at = 1; }'
LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)


def rows(
    schema: ProtoSchema, columns: str | None = None, own: ProtoSchema | None = None, **fields: Any
) -> Any:
    """The row of a message of the first type."""
    of = schema.named(None)
    body = GetMessageClass(of)(**fields).SerializeToString()
    return reader(of, columns, (own or schema).named(None)).table([body]).to_pylist()[0]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("message M { sint32 a = 1; fixed32 b = 2; sfixed64 c = 3; fixed64 d = 4; float e = 5; }",
         "a INT NOT NULL, b BIGINT NOT NULL, c BIGINT NOT NULL, d DECIMAL(20, 0) NOT NULL, e FLOAT NOT NULL"),
        ("message M { optional bool a = 1; bytes b = 2; oneof o { string c = 3; E d = 4; } } enum E { X = 0; }",
         "a BOOLEAN, b BINARY NOT NULL, c STRING, d STRING"),
        ("message M { I i = 1; map<int64, I> m = 3; } message I { int32 x = 1; }",
         "i STRUCT<x: INT NOT NULL>, m MAP<BIGINT, STRUCT<x: INT NOT NULL>> NOT NULL"),
        (STAMP, "at TIMESTAMP"),
        ('syntax = "proto2"; message M { required int32 a = 1; optional int32 b = 2 [default = 5]; }', "a INT, b INT"),
        ('edition = "2023"; message M { int32 a = 1; int32 b = 2 [features.field_presence = IMPLICIT]; }',
         "a INT, b INT NOT NULL"),
    ],
)  # fmt: skip
def test_columns_of_a_type(text: str, columns: str) -> None:
    assert ddl.to_ddl(columns_of(files(text).named(None))) == columns


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("message M { M m = 1; }", r"field 'm' holds itself \(s.M\)"),
        ("message M { I i = 1; } message I { repeated M m = 1; }", r"field 'i.m' holds itself"),
        (
            "message M { I i = 1; } message I {}",
            "field 'i' is message s.I, for which there is no column type",
        ),
        (
            'syntax = "proto2"; message M { optional group G = 1 { optional int32 x = 1; } }',
            "'g' is group M.G",
        ),
    ],
)
def test_types_without_columns(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        columns_of(files(text).named(None))


@pytest.mark.parametrize(("fields", "levels"), [("M%d a = 1; M%d b = 2;", 30), ("M%d a = 1;", 900)])
def test_messages_within_messages_without_end(fields: str, levels: int) -> None:
    """Each holds the one behind it, twice or once."""
    held = [f"message M{n} {{ {fields.replace('%d', str(n + 1))} }}" for n in range(levels)]
    with pytest.raises(InputError, match="written out, or is too deep"):
        columns_of(files("\n".join([*held, f"message M{levels} {{ int32 x = 1; }}"])).named(None))


@pytest.mark.parametrize(
    ("text", "columns", "said"),
    [
        ("message M { int64 x = 1; }", "x INT", "field 'x' is int64, which cannot be read as int32; declare a type"),
        ("message M { uint32 x = 1; }", "x INT", "is uint32, which cannot be read as int32"),
        ("message M { uint64 x = 1; }", "x DECIMAL(19, 0)", "is uint64"),
        ("message M { double x = 1; }", "x FLOAT", "cannot be read as float"),
        ("message M { repeated int32 x = 1; }", "x INT", "is repeated int32, which cannot be read as int32"),
        ("message M { int32 x = 1; }", "x ARRAY<INT>", "is int32"),
        ("message M { map<string, int32> x = 1; }", "x ARRAY<INT>", "is map<string, int32>"),
        ("message M { map<string, int32> x = 1; }", "x MAP<STRING, STRING>", "is map<string, int32>"),
        ("message M { E x = 1; } enum E { A = 0; }", "x BINARY", "is enum s.E"),
        (STAMP, "at TIMESTAMP_NTZ", "is message google.protobuf.Timestamp"),
        ("message M { I x = 1; } message I { string y = 1; }", "x STRUCT<y: INT>", "field 'x.y' is string"),
        ("message M { I x = 1; } message I { optional int32 y = 1; }", "x STRUCT<y: INT NOT NULL>",
         "'x.y' may be unset, but is declared NOT NULL"),
        ("message M { int32 x = 1; }", "y INT NOT NULL", "has no field 'y', which is declared NOT NULL"),
        ('syntax = "proto2"; message M { optional group G = 1 { optional int32 x = 1; } }', "g STRUCT<x: INT>",
         "field 'g' is group M.G"),
    ],
)  # fmt: skip
def test_types_that_do_not_fit(text: str, columns: str, said: str) -> None:
    of = files(text).named(None)
    with pytest.raises(InputError, match=said):
        reader(of, columns)


def test_values_as_other_types() -> None:
    schema = files(
        "message M { int32 i = 1; uint32 w = 2; uint64 u = 3; float f = 4; E e = 5; bytes b = 6; string s = 7; optional E n = 8; }"
        "enum E { X = 0; Y = 3; }"
    )
    columns = "i BIGINT, w BIGINT, u DECIMAL(22, 1), f DOUBLE, e INT, b STRING, s BINARY, n BIGINT"
    sent = {"i": -1, "w": 2**32 - 1, "u": 2**64 - 1, "f": 0.5, "e": 3, "b": b"x", "s": "é"}
    want = {**sent, "u": Decimal(2**64 - 1), "b": "x", "s": "é".encode(), "n": None}
    assert rows(schema, columns, **sent) == want
    assert rows(schema, "u BIGINT", u=2**63 - 1) == {"u": 2**63 - 1}
    with pytest.raises(Malformed, match=r"none of BIGINT; declare DECIMAL\(20, 0\)"):
        rows(schema, "u BIGINT", u=2**63)
    with pytest.raises(Malformed, match="not exact as string"):
        rows(schema, "b STRING", b=b"\xff")


def test_times() -> None:
    schema = files(STAMP)
    assert rows(schema, at={"seconds": -1, "nanos": 1000}) == {
        "at": datetime(1969, 12, 31, 23, 59, 59, 1, UTC)
    }
    assert rows(schema, at={"seconds": 253_402_300_799, "nanos": 999_999_000}) == {"at": LAST}
    assert rows(schema) == {"at": None}
    with pytest.raises(
        Malformed, match=r"not a whole microsecond.*declare STRUCT<seconds: BIGINT, nanos: INT>"
    ):
        rows(schema, at={"nanos": 1})
    for wrong in (
        {"seconds": 253_402_300_800},
        {"seconds": -62_135_596_801},
        {"nanos": -1000},
        {"nanos": 10**9},
    ):
        with pytest.raises(Malformed, match="no time between the years 1 and 9999"):
            rows(schema, at=wrong)
    assert rows(schema, "at STRUCT<seconds: BIGINT, nanos: INT>", at={"nanos": 1}) == {
        "at": {"seconds": 0, "nanos": 1}
    }


def test_a_message_that_holds_itself_is_read_as_deep_as_declared() -> None:
    schema = files("message M { int32 v = 1; M next = 2; }")
    sent = {"v": 1, "next": {"v": 2, "next": {"v": 3}}}
    assert rows(schema, "v INT, next STRUCT<v: INT>", **sent) == {"v": 1, "next": {"v": 2}}


def test_schemas_that_evolve() -> None:
    """Numbers say which field it is; the reader's may be unknown to the writer, with its zero value or NULL."""
    old = files(
        "message M { int32 a = 1; string gone = 2; E e = 3; I i = 4; } enum E { X = 0; OLD = 1; } message I { int32 p = 1; }"
    )
    new = files("""
        message M { int64 b = 1; E e = 3; I i = 4; string s = 5; optional int32 o = 6; repeated int32 r = 7; I n = 8; E z = 9; string a = 10; }
        enum E { X = 0; NEW = 1; } message I { int32 q = 1; int32 more = 2; }
    """)
    want = {
        "b": 7,
        "e": "OLD",
        "i": {"q": 9, "more": 0},
        "s": "",
        "o": None,
        "r": [],
        "n": None,
        "z": "X",
        "a": "",
    }
    assert rows(old, None, new, a=7, gone="x", e=1, i={"p": 9}) == want
    assert rows(old, "gone STRING, nobody INT", new, gone="x") == {"gone": "x", "nobody": None}
    assert rows(new, "b BIGINT, e STRING", old, b=2**40, e=1) == {
        "b": 2**40,
        "e": "NEW",
    }  # the reader has no b, so it is the writer's


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("message", r"is not a Protobuf schema \(1:8: Expected message name"),
        ('syntax = "proto3"; message M { Nobody n = 1; }', '"Nobody" is not defined'),
        ('syntax = "proto3"; message M { int32 a = 1; int32 b = 1; }', "already been used"),
        ('syntax = "proto3"; import "other.proto"; message M {}', "other.proto: File not found"),
        ('syntax = "proto3"; import "/etc/passwd"; message M {}', "not found|is not"),
        ("[" * 10_000, "is not a Protobuf schema"),
        ("\0", "is not a Protobuf schema"),
    ],
)
def test_texts_that_are_no_schema(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        compiled_files([ProtoFile("", text)])
    assert "/tmp" not in str(refused.value)


@pytest.mark.parametrize("name", ["/tmp/x.proto", "../x.proto", "a/../../x.proto", "x.txt", "a\0.proto"])
def test_names_that_lead_elsewhere(name: str) -> None:
    with pytest.raises(InputError, match=r"is not the path of a .proto file"):
        compiled_files(
            [ProtoFile(name, 'syntax = "proto3";'), ProtoFile("", 'syntax = "proto3"; message M {}')]
        )


def test_types_by_their_place_and_name() -> None:
    """Types that stand for maps are not counted."""
    schema = files("message A { map<string, int32> m = 1; message In { message Deep {} } } message B {}")
    assert [schema.at(p).full_name for p in ([0], [1], [0, 0], [0, 0, 0])] == [
        "s.A",
        "s.B",
        "s.A.In",
        "s.A.In.Deep",
    ]
    for place in ([2], [0, 1], [-1], [1, 0]):
        with pytest.raises(InputError, match="has no message type at"):
            schema.at(place)
    assert schema.named("s.A.In").full_name == "s.A.In"
    with pytest.raises(
        InputError, match=r"no message type s.C; correct registry.message \(there: s.A, s.B\)"
    ):
        schema.named("s.C")
    with pytest.raises(InputError, match=r"its message is a s.B, but the columns are those of a s.A"):
        reader(schema.named("s.B"), None, schema.named("s.A"))
    with pytest.raises(InputError, match="has no message type at 0"):
        files("enum E { X = 0; }").named(None)
