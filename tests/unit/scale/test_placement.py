"""Partitions lie evenly on the executors that are there, and move as little as that allows."""

from collections import Counter
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.scale.placement import placed

EXECUTORS = st.lists(st.sampled_from("12345"), min_size=1, unique=True)
PARTITIONS = st.sampled_from([1, 2, 4, 8, 16])
BEFORE = PARTITIONS.flatmap(lambda p: st.lists(st.sampled_from("12345"), min_size=p, max_size=p))


def even(executors: Sequence[str], found: Sequence[str]) -> bool:
    counts = Counter(found)
    held = [counts[e] for e in executors]
    return set(found) <= set(executors) and max(held) - min(held) <= 1


def moves(before: Sequence[str], after: Sequence[str]) -> int:
    """Partitions that are not where their units were."""
    return sum(e != before[p % len(before)] for p, e in enumerate(after))


@pytest.mark.parametrize(
    ("partitions", "executors", "before", "after"),
    [
        (4, "12", "", "1212"),
        (4, "12", "1111", "1122"),
        (4, "123", "1212", "1213"),
        (4, "123", "12", "1213"),
        (2, "34", "1234", "34"),
        (4, "34", "1234", "3434"),
        (2, "12", "1213", "12"),
        (2, "1234", "", "12"),
        (4, "", "1212", ""),
    ],
    ids=["new", "uneven", "one comes", "and doubles", "halves", "two go", "one goes", "few", "nobody"],
)
def test_examples(partitions: int, executors: str, before: str, after: str) -> None:
    """Those that can be checked by hand."""
    assert "".join(placed(partitions, list(executors), list(before))) == after


@given(PARTITIONS, EXECUTORS, BEFORE | st.just([]))
def test_even(partitions: int, executors: list[str], before: list[str]) -> None:
    """Whatever was before: nobody has two more than another, and nothing lies on an executor that is gone."""
    found = placed(partitions, executors, before)
    assert len(found) == partitions
    assert even(executors, found)


@given(PARTITIONS, EXECUTORS, BEFORE)
def test_stable(partitions: int, executors: list[str], before: list[str]) -> None:
    """The same executors, in any order: nothing moves."""
    found = placed(partitions, executors, before)
    assert placed(partitions, sorted(executors, reverse=True), found) == found


@given(
    st.sampled_from([1, 2, 4]),
    st.lists(st.sampled_from("123"), min_size=1, unique=True),
    BEFORE.filter(lambda b: len(b) <= 8),
)
def test_as_few_moves_as_any_even_placement(partitions: int, executors: list[str], before: list[str]) -> None:
    """Against all placements that there are."""
    every = (found for found in product(executors, repeat=partitions) if even(executors, found))
    fewest = min(moves(before, found) for found in every)
    assert moves(before, placed(partitions, executors, before)) == fewest


@given(PARTITIONS, EXECUTORS, EXECUTORS)
def test_none_moves_between_two_that_stay(partitions: int, earlier: list[str], later: list[str]) -> None:
    """Where some come, partitions move only to them; where some go, only theirs move."""
    before = placed(partitions, earlier)
    after = placed(partitions, later, before)
    if set(later) <= set(earlier):
        assert all(a == b for a, b in zip(after, before, strict=True) if b in later)
    if set(later) >= set(earlier):
        assert all(a == b or a not in earlier for a, b in zip(after, before, strict=True))


@given(PARTITIONS, EXECUTORS)
def test_twice_as_many_partitions(partitions: int, executors: list[str]) -> None:
    """Each stays where it was, and half of its units; half as many leave each where it was, too."""
    before = placed(partitions, executors)
    twice = placed(2 * partitions, executors, before)
    assert twice[:partitions] == before
    assert placed(partitions, executors, twice) == before
