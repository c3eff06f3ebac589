"""Byte strings in one buffer are what a list of them is, whatever part of them is taken."""

import ctypes

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from joinlib.source.kafka.messages import Message, Messages
from joinlib.source.payloads import Payloads

VALUES = st.lists(st.none() | st.binary(max_size=5), max_size=9)
PARTS = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted)


@given(values=VALUES, part=PARTS, data=st.data())
def test_they_are_the_list(values: list[bytes | None], part: list[int], data: st.DataObject) -> None:
    """By position, in parts, in another order, as a column."""
    start, stop = part
    found = Payloads.of(values)
    for own, want in ((found, values), (found[start:stop], values[start:stop])):
        assert list(own) == [own[at] for at in range(len(own))] == want
        assert own.there.tolist() == [v is not None for v in want]
        assert own.column().equals(pa.array(want, pa.binary()))
        own.column().validate(full=True)
        at = data.draw(st.lists(st.integers(0, len(want) - 1)) if want else st.just([]))
        some = own.take(np.array(at, np.int64))
        assert list(some) == [want[n] for n in at]
        raw, starts = some.within
        assert [raw[a : a + n].tobytes() for a, n in zip(starts, some.sizes, strict=True) if n >= 0] == [
            v for v in some if v is not None
        ]


@given(values=VALUES, part=PARTS, kind=st.sampled_from([pa.binary(), pa.large_binary()]))
def test_they_are_the_column(values: list[bytes | None], part: list[int], kind: pa.DataType) -> None:
    """Also a part of one, which begins anywhere; what is there has an address, though it be empty."""
    start, stop = part
    column = pa.array(values, kind).slice(start, stop - start)
    own = Payloads.of_column(column)
    assert list(own) == column.to_pylist()
    assert [at > 0 for at in own.addresses] == own.there.tolist()
    places = zip(own.addresses.tolist(), own.sizes.tolist(), strict=True)
    assert [ctypes.string_at(at, size) if at else None for at, size in places] == list(own)


@given(values=VALUES, part=PARTS, data=st.data())
def test_lines(values: list[bytes | None], part: list[int], data: st.DataObject) -> None:
    """Those that are there, whether they lie one behind the other or not."""
    own = Payloads.of(values)[slice(*part)]
    there = own.take(own.there)
    assert there.lines() == b"\n".join(v for v in own if v is not None)
    order = data.draw(st.permutations(range(len(there))))
    turned = there.take(np.array(order, np.int64))
    assert turned.lines() == b"\n".join(v for v in turned if v is not None)


@given(parts=st.lists(st.tuples(VALUES, PARTS), min_size=1, max_size=4))
def test_parts_are_joined(parts: list[tuple[list[bytes | None], list[int]]]) -> None:
    """Each may be a part of others itself."""
    found = Payloads.joined([Payloads.of(values)[slice(*part)] for values, part in parts])
    assert list(found) == [v for values, part in parts for v in values[slice(*part)]]


@given(values=VALUES, head=st.binary(max_size=3))
def test_what_they_begin_with(values: list[bytes | None], head: bytes) -> None:
    """All of them, or not; nothing begins with more than it has."""
    assert Payloads.of(values).begin_with(head) == all(v is not None and v.startswith(head) for v in values)


@given(
    rows=st.lists(
        st.tuples(st.none() | st.binary(max_size=3), st.lists(st.tuples(st.binary(max_size=2), st.none() | st.binary(max_size=2)))),
        min_size=1, max_size=6,
    ),
    part=PARTS, data=st.data(),
)  # fmt: skip
def test_messages_are_the_list(
    rows: list[tuple[bytes | None, list[tuple[bytes, bytes | None]]]], part: list[int], data: st.DataObject
) -> None:
    """By position, in parts, in another order, joined."""
    sent = [
        Message("t", 1, 10 * at, at - 1, value, value, tuple(headers))
        for at, (value, headers) in enumerate(rows)
    ]
    found = Messages.of(sent)
    assert list(found) == sent
    assert list(found[slice(*part)]) == sent[slice(*part)]
    at = data.draw(st.permutations(range(len(sent))))
    assert list(found.take(np.array(at, np.int64))) == [sent[n] for n in at]
    assert list(Messages.joined([found[:2], found[2:]])) == sent
