"""Rules that spread hot keys: every row goes to one unit, always the same, and the shares are even."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.route.census import Census, collect
from joinlib.route.hotspot import _GOLDEN, _LOOKED_AT, Hot, Reservoir, RoutingRule, decode, rule, share, skew
from joinlib.source.zipf import zipf

hashes = st.lists(st.sampled_from([0, 1, 2**63, 2**63 + 1, 2**64 - 1]), max_size=40)


def mixed(keys: np.ndarray) -> np.ndarray:
    return keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


@given(hashes, hashes, st.sampled_from([1, 2, 4, 8]))
def test_every_row_has_one_unit(sample: list[int], rows: list[int], units: int) -> None:
    """Of any rule, for any rows; rules survive the offset's JSON, and the same rows go the same ways."""
    made = rule(np.array(sample, np.uint64), units)
    asked = np.array(rows, np.uint64)
    found = made.units(asked)
    assert len(made.bounds) == units - 1
    assert list(made.bounds) == sorted(made.bounds)
    assert ((found >= 0) & (found < units)).all()
    told = json.loads(json.dumps(made.encode()))
    again = decode(told, units)
    assert again == made
    assert again.units(asked).tolist() == found.tolist()
    assert decode(told, 2 * units) is None


@given(hashes, hashes, st.sampled_from([1, 2, 4, 32]))
def test_a_rule_is_its_definition(sample: list[int], rows: list[int], units: int) -> None:
    """As many bounds as are not above the hash; hot keys take their turns. Also where many bounds are one key's."""
    made, asked = rule(np.array(sample, np.uint64), units), np.array(rows, np.uint64)
    wanted = np.searchsorted(np.array(made.bounds, np.uint64), asked, side="right")
    for hot in made.hot:
        places = np.flatnonzero(asked == np.uint64(hot.hash))
        turns = (np.arange(len(places)) * _GOLDEN) % 1.0
        wanted[places] = np.minimum(hot.start + turns * hot.length, units - 1).astype(np.int64)
    assert made.units(asked).tolist() == wanted.tolist()


@given(hashes.filter(bool), st.sampled_from([2, 4]))
def test_keys_that_are_not_hot_have_one_unit(sample: list[int], units: int) -> None:
    """Their cached rows are in one place."""
    made, asked = rule(np.array(sample, np.uint64), units), np.array(sample * 3, np.uint64)
    hot = {h.hash for h in made.hot}
    found = made.units(asked)
    for key in set(sample) - hot:
        assert len(set(found[asked == np.uint64(key)].tolist())) == 1


def test_skew_is_equation_3() -> None:
    """The sample's standard deviation over the mean."""
    assert skew([5, 5, 5]) == 0 == skew([]) == skew([0, 0])
    assert skew([1, 3]) == pytest.approx(2**0.5 / 2)


@pytest.mark.parametrize("exponent", [0.98, 1.04, 1.10, 1.16])
@pytest.mark.parametrize("units", [4, 16])
def test_the_next_batch_is_even(exponent: float, units: int) -> None:
    """Figure 11a: DS under the new rule is at most a third of that of hashing, on rows that the rule has not seen."""
    draw = np.random.default_rng(1)
    before, after = (mixed(zipf(draw.random(200_000), 100_000, exponent)) for _ in range(2))
    plain = RoutingRule(tuple(u << (64 - (units.bit_length() - 1)) for u in range(1, units)))
    reservoir = Reservoir(8192, 0)
    for part in np.array_split(before, 7):
        reservoir.see(part)
    made = rule(reservoir.sample, units)
    hashed, ruled = (skew(np.bincount(r.units(after), minlength=units).tolist()) for r in (plain, made))
    assert ruled < hashed / 3
    assert ruled < 0.15


def test_a_key_hotter_than_a_share_is_split_evenly() -> None:
    """Three quarters of the rows on four units: three of them, and nothing else is there."""
    sample = np.array([7] * 75 + list(range(100, 125)), np.uint64)
    made = rule(sample, 4)
    assert [h.hash for h in made.hot] == [7]
    found = np.bincount(made.units(np.full(3000, 7, np.uint64)), minlength=4)
    assert sorted(found.tolist())[:1] == [0]
    assert skew(sorted(found.tolist())[1:]) < 0.01
    assert made.hot[0] == Hot(7, 0.0, 3.0)


@given(hashes, st.sets(st.sampled_from([0, 1, 2**63, 2**64 - 1])))
def test_a_share_is_counted(sample: list[int], hot: set[int]) -> None:
    """Of small samples; of no rows nothing is known."""
    found = share(np.array(sample, np.uint64), hot)
    assert found == (sum(h in hot for h in sample) / len(sample) if sample else None)


def test_a_share_looks_at_so_many_rows() -> None:
    """Of a large sample, from its beginning to its end."""
    sample = np.repeat(np.array([7, 9], np.uint64), [3 * _LOOKED_AT, 9 * _LOOKED_AT])
    assert share(sample, [7, 8]) == pytest.approx(0.25, abs=1e-3)


@given(st.lists(st.integers(0, 30), max_size=6), st.sampled_from([1, 5, 1000]))
def test_a_reservoir_is_a_sample(parts: list[int], size: int) -> None:
    """As large as it may be, and each row once."""
    reservoir, seen = Reservoir(size, 3), 0
    for rows in parts:
        reservoir.see(np.arange(seen, seen + rows, dtype=np.uint64))
        seen += rows
    assert len(reservoir.sample) == min(size, seen)
    assert len(set(reservoir.sample.tolist())) == len(reservoir.sample)
    assert all(row < seen for row in reservoir.sample)


def test_a_census_is_taken_once(tmp_path: Path) -> None:
    """A task that is run again changes nothing, tasks count by their rows, another number of units is passed over."""
    for name, rows in (("a", 1000), ("a", 1000), ("b", 10)):
        census = Census.begin(2, 0)
        units = np.zeros(rows, np.int64)
        census.see(np.full(rows, ord(name), np.uint64), units, units + 1)
        census.write(tmp_path, name)
    Census.begin(4, 0).write(tmp_path, "c")
    counts, plain, sample = collect(tmp_path, 2)
    assert (counts.tolist(), plain.tolist()) == ([1010, 0], [0, 1010])
    assert np.count_nonzero(sample == ord("b")) * 100 == np.count_nonzero(sample == ord("a")) == 1000
    assert collect(tmp_path, 2)[0].tolist() == [0, 0]
    assert collect(tmp_path / "none", 2)[2].tolist() == []
