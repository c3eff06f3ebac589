"""Decides which keys are hot and over how many units each is spread; an extension of ContRand (BiStream).

    a key's share of its input * units = the number of units that its rows fill     over a quarter: it is hot
    hot                                  four times as many units, rounded up to a power of two

Law: a pure function that settles: the same samples lead to the same rules, and after that to no new ones.
Samples only affect cost, not results.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from joinlib.arrays import U64
from joinlib.model.inputs import Biclique, Group
from joinlib.route.biclique import Rules

_ENOUGH = 1_000  # minimum rows of a sample for a decision
_HOT, _STILL_HOT = 0.25, 0.125  # thresholds, in even shares of a unit, at which a key becomes and stays hot
_KEYS = 64  # maximum hot keys of an input at the same time
# Maximum keys that were ever hot: they are kept, because their rows may still be where they were stored.
_EVER = 1_024


def following(rules: Rules, route: Biclique, samples: Sequence[U64]) -> Rules:
    """Return the rules of the next batch: new ones only if other keys are hot, or much hotter."""
    wanted = [
        hot(group, sample, now) for group, sample, now in zip(route.groups, samples, rules.store, strict=True)
    ]
    if all(dict(now) == new for now, new in zip(rules.store, wanted, strict=True)):
        return rules
    after = rules.then(wanted)
    return rules if any(len(probe) > _EVER for probe in after.probe) else after


def hot(group: Group, sample: U64, now: Mapping[int, int]) -> dict[int, int]:
    """Return the hot keys of one input, by hash, each with its number of subgroups. O(sample log sample).

    sample: hashes of the input's rows. now: the current hot keys, for which a lower threshold applies.
    """
    if len(sample) < _ENOUGH or group.units == 1:
        return dict(now)
    keys, weights = np.unique(sample, return_counts=True)
    worth = weights / len(sample) * group.units
    known = np.isin(keys, np.array(sorted(now), np.uint64))
    chosen = np.flatnonzero(worth > np.where(known, _STILL_HOT, _HOT))
    chosen = chosen[np.argsort(-worth[chosen], kind="stable")][:_KEYS]
    found = {}
    for at in chosen.tolist():
        fewer = _subgroups(group, float(worth[at]), now.get(int(keys[at])))
        if fewer < group.subgroups:
            found[int(keys[at])] = fewer
    return found


def _subgroups(group: Group, worth: float, now: int | None) -> int:
    """Return how many subgroups give no unit more than a quarter of its even share of this key.

    The current number is kept if it is close enough.
    """
    if now is not None and 0.125 < worth / (group.units // now) < 0.375:
        return now
    width = 1 << max(int(np.ceil(np.log2(4 * worth))), 0)
    return max(group.units // width, 1)
