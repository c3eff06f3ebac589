"""Lists of messages, however they came, become the same blocks: those of a slice."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.source.kafka import reader
from joinlib.source.kafka.messages import Message, Messages
from joinlib.source.slices import Slice
from tests.messages import sent


def cut(found: list[Message], ends: list[int]) -> list[Messages]:
    bounds = [0, *sorted(min(e, len(found)) for e in ends), len(found)]
    return [Messages.of(found[a:b]) for a, b in pairwise(bounds) if b > a]


@given(st.lists(st.integers(0, 12), max_size=20), st.lists(st.integers(0, 20), max_size=4))
def test_chunks_depend_on_the_messages_alone(sizes: list[int], ends: list[int]) -> None:
    """All of them, in order, in chunks that are full but for the last and no longer than one message beyond their bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_CHUNK_ROWS", 4)
        patch.setattr(reader, "_CHUNK_BYTES", 10)
        found = [sent(None if size == 0 else b"x" * (size - 1), at) for at, size in enumerate(sizes)]
        chunks = [list(chunk) for chunk in reader._chunks(iter(cut(found, ends)))]
        assert chunks == [list(chunk) for chunk in reader._chunks(iter(cut(found, [])))]
    assert [m for chunk in chunks for m in chunk] == found
    for chunk in chunks:
        size = sum(len(m.value or b"") for m in chunk)
        assert size - len(chunk[-1].value or b"") < 10
        assert chunk is chunks[-1] or len(chunk) == 4 or size >= 10


@given(
    st.lists(st.integers(0, 29), unique=True),
    st.lists(st.integers(1, 29), unique=True),
    st.lists(st.integers(0, 20), max_size=4),
)
def test_messages_find_their_slice(offsets: list[int], bounds: list[int], ends: list[int]) -> None:
    """Whatever gaps there are between them, and between slices that hold none."""
    edges = [0, *sorted(bounds), 30]
    run = [Slice(i, None, 1, start=a, stop=b) for i, (a, b) in enumerate(pairwise(edges))]
    found = [sent(b"", at) for at in sorted(offsets)]
    seen = list(reader._cut(run, iter(cut(found, ends))))
    assert [m for _, part in seen for m in part] == found
    assert all(run[at].start <= m.offset < run[at].stop for at, part in seen for m in part)
    assert [at for at, _ in seen] == sorted(at for at, _ in seen)
