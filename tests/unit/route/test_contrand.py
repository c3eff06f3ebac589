"""Which keys are hot? Those that would fill a unit; the choice settles."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joinlib.plan.operator import shared
from joinlib.route.biclique import Rules, homes
from joinlib.route.contrand import following, hot
from joinlib.route.hash import spread
from joinlib.source.zipf import zipf

UNITS = 16
ROUTE = shared(UNITS, UNITS)
COLD = spread(3_000, 1)


def sample(shares: list[float]) -> np.ndarray:
    """So much of one key each, the rest of keys that come once."""
    many = [np.full(int(3_000 * share), key, np.uint64) for share, key in zip(shares, spread(9, 2))]
    return np.concatenate([*many, COLD[: 3_000 - sum(map(len, many))]])


@given(st.lists(st.sampled_from([0.0, 0.01, 0.05, 0.2, 0.4]), min_size=1, max_size=2))
def test_it_settles(shares: list[float]) -> None:
    """Fed the same samples, the second decision is the first."""
    seen = [sample(shares), COLD]
    rules = following(Rules(), ROUTE, seen)

    assert following(rules, ROUTE, seen) is rules


def test_a_hot_key_lies_over_more_units_and_cools_down() -> None:
    """Half of all rows need half of all units at least; when it is rare again new rows are hashed, old ones still found."""
    key = int(sample([0.5])[0])
    rules = following(Rules(), ROUTE, [sample([0.5]), COLD])
    assert rules.store == ({key: 1}, {})
    cooled = following(rules, ROUTE, [COLD, COLD])

    assert cooled.store == ({}, {})
    assert cooled.probe == ({key: 1}, {})


def test_few_rows_prove_nothing() -> None:
    """A sample too small to tell leaves everything as it is."""
    assert hot(ROUTE.groups[0], sample([0.5])[:900], {}) == {}
    assert hot(ROUTE.groups[0], np.zeros(0, np.uint64), {7: 2}) == {7: 2}


def test_zipf_is_evened_out() -> None:
    """Keys as skewed as the paper's: the fullest unit holds much less than by hashing."""
    hashes = spread(100_000, 3)[zipf(np.random.default_rng(0).random(200_000), 100_000, 1.16)]
    group = ROUTE.groups[0]
    rules = following(Rules(), ROUTE, [hashes[:32_768], hashes[:32_768]])
    plain, split = (
        np.bincount(homes(group, hashes, hot, 0), minlength=UNITS) for hot in ({}, rules.store[0])
    )

    assert plain.max() > 2 * plain.mean()
    assert split.max() < 1.6 * split.mean()
