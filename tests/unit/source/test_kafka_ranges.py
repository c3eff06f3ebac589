"""Offsets become slices: each once, in order, never changed, however discovery is cut up."""

from hypothesis import given
from hypothesis import strategies as st

from joinlib.source.kafka import ranges
from joinlib.source.kafka.ranges import OffsetRanges, Partition, advance
from joinlib.source.log import Entry
from joinlib.source.slices import Slice

GROWTH = st.lists(
    st.dictionaries(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), st.integers(0, 7), max_size=4),
    max_size=6,
)
SIZES = {"a": ranges.SLICE_BYTES // 3, "b": ranges.SLICE_BYTES // 2}  # slices of 3 and of 2 messages


def grown(growth: list[dict[Partition, int]]) -> tuple[OffsetRanges, list[Entry], dict[Partition, int]]:
    """What is known after some discoveries, its log, and how long each partition is."""
    known, log, ends = OffsetRanges("log", []), [], {}
    for more in growth:
        for partition, count in more.items():
            ends[partition] = ends.get(partition, 0) + count
        entry, missing = advance(known.at, {p: (0, end) for p, end in ends.items()}, False, SIZES)
        assert not missing
        if entry:
            known.add(entry)
            log.append(entry)
    return known, log, ends


def covered(slices: list[Slice]) -> dict[Partition, int]:
    """How far slices reach from 0 on, without a gap or an overlap."""
    ends: dict[Partition, int] = {}
    for s in slices:
        assert s.start == ends.get((s.path, s.group), 0) < s.stop
        ends[s.path, s.group] = s.stop
    return ends


@given(GROWTH)
def test_every_offset_is_in_one_slice(growth: list[dict[Partition, int]]) -> None:
    """Slices are numbered, bounded, and cover each partition once and in order."""
    known, _, ends = grown(growth)
    slices = known.between(0, known.slices)
    assert [s.index for s in slices] == list(range(known.slices))
    assert all(s.stop - s.start <= {"a": 3, "b": 2}[s.path] for s in slices)
    assert covered(slices) == {p: end for p, end in ends.items() if end}


@given(GROWTH, st.data())
def test_slices_never_change(growth: list[dict[Partition, int]], data: st.DataObject) -> None:
    """What is discovered later, and a log that is loaded anew, leave the slices before as they are."""
    known, log, _ = grown(growth)
    before, _, _ = grown(growth[: data.draw(st.integers(0, len(growth)))])
    all_of_it = known.between(0, known.slices)
    assert all_of_it[: before.slices] == before.between(0, before.slices)
    assert OffsetRanges("log", log).between(0, known.slices) == all_of_it
    start = data.draw(st.integers(0, known.slices))
    stop = data.draw(st.integers(start, known.slices))
    assert known.between(start, stop) == all_of_it[start:stop]
    assert known.rows_before(start) == sum(s.weight for s in all_of_it[:start])


def test_a_log_is_folded_and_still_says_the_same() -> None:
    """Thousands of discoveries become a few; slices that may be asked for, positions and sums stay."""
    known, log, _ = grown([{("a", i % 3): 2} for i in range(5000)])
    assert known.folded(100) is None

    known.add({"ids": {"a": "one"}})
    folded = known.folded(4900)

    assert folded is not None
    assert len(folded) < 2000
    short = OffsetRanges("log", folded)
    assert short.between(4900, 5000) == known.between(4900, 5000)
    assert (short.at, short.slices, short.rows) == (known.at, known.slices, known.rows)
    assert short.ids == {"a": "one"}
    assert short.rows_before(4950) == known.rows_before(4950)
    end = known.at["a", 0]
    for one in (short, known):
        one.add({"cut": [["a", 0, end, end + 9, 3, 1]]})
    assert short.between(4999, short.slices) == known.between(4999, known.slices)
    assert len(log) == 5000


def test_a_backlog_is_read_through_all_partitions_at_once() -> None:
    """A long partition and a short one come to their ends together."""
    known, _, _ = grown([{("a", 0): 30, ("a", 1): 6}])
    order = [s.group for s in known.between(0, known.slices)]
    assert order == [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]


def test_where_partitions_begin() -> None:
    """Latest is for the partitions of the first look; one that appears later is read from its beginning."""
    entry, _ = advance({}, {("a", 0): (0, 5)}, True, SIZES)
    assert entry == {"at": [["a", 0, 5]]}
    known = OffsetRanges("log", [entry])
    entry, _ = advance(known.at, {("a", 0): (0, 5), ("a", 1): (1, 3)}, True, SIZES)
    known.add(entry)
    assert [(s.group, s.start, s.stop) for s in known.between(0, known.slices)] == [(1, 1, 3)]


def test_offsets_that_are_gone() -> None:
    """They are said to be; going on begins at the lowest there is, and what was lost is counted."""
    known = OffsetRanges("log", [advance({}, {("a", 0): (0, 5), ("a", 1): (0, 5)}, False, SIZES)[0]])
    entry, missing = advance(known.at, {("a", 0): (8, 9), ("a", 1): (0, 2)}, False, SIZES)
    assert missing == {("a", 0): (5, 8, 9), ("a", 1): (5, 0, 2)}
    known.add(entry)
    assert known.lost == 3
    found = known.between(0, known.slices)[4:]
    assert [(s.group, s.start, s.stop) for s in found] == [(0, 8, 9), (1, 0, 2)]


def test_nothing_new_is_nothing_to_log() -> None:
    """An idle topic leaves the log as it is."""
    known, _, ends = grown([{("a", 0): 3}])
    assert advance(known.at, {p: (0, end) for p, end in ends.items()}, False, SIZES) == ({}, {})
