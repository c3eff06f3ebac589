"""What a body may not be, and what it may that the runtime does not write."""

import pytest

from joinlib.source.cells.arrow import Malformed
from tests.unit.source.protobuf.shapes import files, reader

ALL = files("""
message M {
  int32 i = 1; In in = 2; repeated int32 many = 3; string s = 4; E e = 5; uint64 u = 6;
  oneof one { int32 a = 7; In b = 8; } map<string, int32> m = 9; bool t = 10;
}
message In { int32 x = 14; repeated int32 y = 2; }
enum E { ZERO = 0; ONE = 1; }
""").named(None)
GROUP = b"\xa3\x01"  # field 20 begins, as a group
END = b"\xa4\x01"
MINUS = b"\xff" * 9 + b"\x01"

BAD = {
    "a number without an end": b"\x08\x80",
    "a number of 66 bits": b"\x08" + b"\xff" * 9 + b"\x02",
    "a number of eleven bytes": b"\x08" + b"\xff" * 10 + b"\x00",
    "a field without a number": b"\x00\x01",
    "a tag of more than 32 bits": b"\x88\x80\x80\x80\x80\x01\x01",
    "no such sort of value": b"\x0e",
    "a message that is longer than what it is in": b"\x12\x03\x70\x01",
    "a text that is longer": b"\x22\x05a",
    "a length below zero": b"\x22" + MINUS,
    "a text that is no UTF-8": b"\x22\x01\xff",
    "a text with half of a pair": b"\x22\x03\xed\xa0\x80",
    "a text that is too long for what it says": b"\x22\x02\xc0\x80",
    "a text beyond Unicode": b"\x22\x04\xf4\x90\x80\x80",
    "numbers that end within one": b"\x1a\x02\x01\x80",
    "an end without a group": END,
    "a group without an end": GROUP + b"\x08\x01",
    "a group that ends as another": GROUP + b"\xac\x01",
    "groups without end in groups": GROUP * 1000,
    "more groups within groups than there may be": GROUP * 65 + END * 65,
    "a name that no enum has": b"\x28\x02",
    "a pair with something unknown": b"\x4a\x02\x70\x01",
    "a pair that is cut off": b"\x4a\x02\x0a\x05",
}
GOOD = {
    "nothing": (b"", {}),
    "the last of two": (b"\x08\x01\x08\x02", {"i": 2}),
    "a number of 64 bits for one of 32": (b"\x08" + b"\xff" * 4 + b"\x7f", {"i": -1}),
    "a message in pieces": (b"\x12\x02\x70\x01\x12\x02\x10\x05", {"in": {"x": 1, "y": [5]}}),
    "numbers together and alone": (b"\x1a\x02\x01\x02\x18\x03\x1a\x00", {"many": [1, 2, 3]}),
    "the other one": (b"\x38\x05\x42\x02\x70\x01", {"b": {"x": 1, "y": []}}),
    "the other one, cleared": (b"\x42\x02\x10\x07\x38\x05", {"a": 5}),
    "a key twice": (b"\x4a\x05\x0a\x01k\x10\x01\x4a\x05\x0a\x01k\x10\x02", {"m": [("k", 2)]}),
    "a pair of nothing": (b"\x4a\x00", {"m": [("", 0)]}),
    "another sort of value": (b"\x0d\x01\x02\x03\x04", {}),
    "a group that nobody knows": (
        GROUP + b"\x08\x01" + GROUP + END + b"\x22\x01a" + END + b"\x08\x07",
        {"i": 7},
    ),
    "any number is true": (b"\x50\x80\x02", {"t": True}),
    "four bytes of UTF-8": (b"\x22\x04" + "😀".encode(), {"s": "😀"}),
}
NONE = {
    "i": 0,
    "in": None,
    "many": [],
    "s": "",
    "e": "ZERO",
    "u": 0,
    "a": None,
    "b": None,
    "m": [],
    "t": False,
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
def test_what_a_body_may_not_be(body: bytes) -> None:
    rows = reader(ALL)
    with pytest.raises(Malformed):
        rows.table([body])
    with pytest.raises(Malformed):
        rows.table([b"", body, b""])


@pytest.mark.parametrize(("body", "want"), GOOD.values(), ids=GOOD)
def test_what_a_body_may_be(body: bytes, want: dict[str, object]) -> None:
    assert reader(ALL).table([b"", body, b""]).to_pylist() == [NONE, {**NONE, **want}, NONE]


def test_a_member_that_nobody_wants_clears_the_other() -> None:
    assert reader(ALL, ["a"]).table([b"\x38\x05\x42\x00", b"\x42\x00\x38\x05"]).to_pylist() == [
        {"a": None},
        {"a": 5},
    ]


def test_a_header_that_is_longer_than_the_message() -> None:
    with pytest.raises(Malformed):
        reader(ALL).table([b"ab"], 3)


def test_a_number_is_looked_for_in_its_own_type_alone() -> None:
    """It stands behind all those of the outer type, and is the first one of the inner."""
    of = files("message M { In in = 1; } message In { int32 x = 14; }").named(None)
    assert reader(of).table([b"\x0a\x00\x70\x05"]).to_pylist() == [{"in": {"x": 0}}]


def test_what_is_in_a_message_that_is_not_there_is_null() -> None:
    """Also to those who look at it without the message."""
    inner = reader(ALL, ["in"]).table([b"", b"\x12\x00"]).column("in").combine_chunks()
    assert [inner.field(at).to_pylist() for at in (0, 1)] == [[None, 0], [None, []]]
