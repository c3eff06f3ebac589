"""Messages of random types, written by the official runtime, become the columns that they must."""

from random import Random
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.source.cells.arrow import Malformed
from joinlib.source.protobuf.columns import ProtobufRows
from tests.unit.source.protobuf.shapes import fill, reader, row, shape, told

HEAD = b"head."


def read(rows: ProtobufRows, messages: list[bytes]) -> str:
    return told(rows.table([HEAD + m for m in messages], len(HEAD)))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**64))
def test_reads_what_the_runtime_writes(seed: int) -> None:
    draw = Random(seed)
    type = shape(draw)
    message = GetMessageClass(type)
    sent = [fill(draw, message()) for _ in range(draw.randint(1, 9))]
    bodies = [m.SerializeToString() for m in sent]
    rows = reader(type)
    for count in (len(sent), len(sent), 1):  # twice: the second time there is room for lists
        assert read(rows, bodies[:count]) == repr([row(m) for m in sent[:count]])
    some = draw.sample([f.name for f in type.fields], draw.randint(1, len(type.fields)))
    want = [{name: row(m)[name] for name in some} for m in sent]
    assert read(reader(type, some), bodies) == repr(want)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**64))
def test_pieces_are_merged_as_the_runtime_does(seed: int) -> None:
    """Messages one after the other are one message: the last value counts, lists and messages within are joined."""
    draw = Random(seed)
    type = shape(draw)
    message = GetMessageClass(type)
    sent = [
        b"".join(fill(draw, message()).SerializeToString() for _ in range(draw.randint(1, 3)))
        for _ in range(4)
    ]
    rows = [row(message.FromString(one)) for one in sent]
    assert read(reader(type), sent) == repr(rows)
    some = draw.sample([f.name for f in type.fields], draw.randint(1, len(type.fields)))
    assert read(reader(type, some), sent) == repr([{name: one[name] for name in some} for one in rows])


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**64))
def test_damaged_messages_are_read_as_the_runtime_does_or_are_bad(seed: int) -> None:
    draw = Random(seed)
    type = shape(draw)
    body = fill(draw, GetMessageClass(type)()).SerializeToString()
    rows = reader(type)
    for _ in range(60):
        at = draw.randrange(len(body) + 1)
        damaged = draw.choice(
            [
                body[:at],
                body[:at] + bytes([draw.randrange(256)]) + body[at + 1 :],
                body[:at]
                + bytes([body[at] ^ (1 << draw.randrange(8))] if at < len(body) else b"")
                + body[at + 1 :],
                body[:at] + draw.randbytes(draw.randint(1, 4)) + body[at:],
                draw.randbytes(draw.randint(0, 20)),
            ]
        )
        _as_the_runtime(type, rows, damaged)


def _as_the_runtime(type: Any, rows: ProtobufRows, damaged: bytes) -> None:
    try:
        found = read(rows, [damaged])
    except Malformed:
        return
    try:
        want = GetMessageClass(type).FromString(damaged)
    except DecodeError:
        pytest.fail(f"the runtime refuses {damaged!r}")
    assert found == repr([row(want)])
