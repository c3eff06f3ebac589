"""Sealed rows against a dictionary: pieces, guides and filters never hide a row, and find nothing else."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.index.ascending import PAGE, guide, restored
from joinlib.index.bloom import bloom, passes
from joinlib.index.sealed import HashProbes, Sealed

MOST = 2**64 - 1
few = st.sampled_from([0, 1, 2, 3, 1 << 31, (1 << 32) + 1, 1 << 63, (1 << 63) + 1, MOST - 1, MOST])
hashes = st.lists(few | st.integers(0, MOST), min_size=1, max_size=40)


def sealed(values: list[int], cuts: list[int]) -> Sealed:
    rows = np.array(sorted(values), np.uint64)
    ends = sorted({c for c in cuts if 0 < c < len(rows)})
    made = Sealed(Path(), False)
    made.hold([(part, guide(part)) for part in np.split(rows, ends)])
    return made


@given(values=hashes, times=st.sampled_from([1, 40]), seed=st.integers(0, 9))
@settings(max_examples=60)
def test_a_filter_lets_pass_what_is_there(values: list[int], times: int, seed: int) -> None:
    """Never a false negative, wherever hashes lie and however many there are."""
    more = np.random.default_rng(seed).integers(0, MOST, times * len(values), np.uint64, endpoint=True)
    rows = np.sort(np.concatenate([np.array(values, np.uint64), more]))
    made = bloom(rows)
    assert all(passes(made, h) for h in rows)


@given(
    values=hashes,
    cuts=st.lists(st.integers(0, 40), max_size=5),
    wanted=hashes,
    limit=st.sampled_from([1, 3, 100]),
)
@settings(max_examples=150)
def test_a_search_is_a_dictionary(values: list[int], cuts: list[int], wanted: list[int], limit: int) -> None:
    """All rows of a hash, whether the piece ends among them or not; hashes are asked in any order and again."""
    made, homes = sealed(values, cuts), defaultdict(list)
    for row, value in enumerate(sorted(values)):
        homes[value].append(row)
    asked = [*wanted, *values[:3]]
    frames = list(made.probe(HashProbes(np.array(asked, np.uint64)), limit))
    found = sorted(
        (int(p), int(r)) for positions, rows in frames for p, r in zip(positions, rows, strict=True)
    )

    made.check()
    assert found == sorted((p, r) for p, h in enumerate(asked) for r in homes[h])
    assert all(len(p) <= max(limit, 1) for p, _ in frames)


@pytest.mark.parametrize("copies", [1, 3, PAGE, PAGE + 1])
@pytest.mark.parametrize("pieces", [1, 3])
def test_many_pages(copies: int, pieces: int) -> None:
    """Hashes that begin, end and fill pages: each row is found, also where a fence lies among rows of one hash."""
    keys = np.random.default_rng(copies).integers(0, MOST, 3000 // copies, np.uint64)
    rows = np.sort(np.repeat(keys, copies))
    made = sealed(rows.tolist(), [len(rows) * n // pieces for n in range(1, pieces)])
    asked = np.random.default_rng(0).permutation(np.unique(keys))
    found = [
        (asked[p], r)
        for positions, numbers in made.probe(HashProbes(asked), 10**6)
        for p, r in zip(positions, numbers)
    ]

    assert sorted(r for _, r in found) == list(range(len(rows)))
    assert all(rows[r] == h for h, r in found)


@pytest.mark.parametrize("part", [1, 10])
def test_few_pass_that_are_not_there(part: int) -> None:
    """A filter of ten bits a hash, also of a piece that holds only a part of all hashes."""
    numbers = np.random.default_rng(1).integers(0, MOST // part, 60_000, np.uint64)
    made = bloom(np.sort(numbers[:30_000]))
    low, high = numbers[:30_000].min(), numbers[:30_000].max()
    strange = [h for h in numbers[30_000:] if low < h < high]
    assert sum(passes(made, h) for h in strange) < 0.025 * len(strange)
    assert len(made.words) * 64 < 10.1 * 30_000


def test_a_guide_is_restored_from_its_parts() -> None:
    """What another process reads from the file is the same guide."""
    made = guide(np.sort(np.random.default_rng(2).integers(0, MOST, 5000, np.uint64)))
    again = restored(made.fences, made.filter.words, made.last, made.keys)
    assert again.filter[1:] == made.filter[1:] and again[2:] == made[2:]
