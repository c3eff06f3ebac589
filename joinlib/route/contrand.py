"""Which keys are hot, and over how many units should each lie? From samples of what came (BiStream, section 3.2.2).

    a key's share of its input * units = the units' worth of rows it has       over a quarter of one: it is hot
    hot                                          four times as many units, the next power of two

Law: pure, and it settles: the same samples lead to the same rules, and then to no new ones. Samples only steer cost.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from joinlib.route.biclique import Rules
from joinlib.route.config import Biclique, Group
from joinlib.route.hash import U64

_ENOUGH = 1_000  # rows of a sample: with fewer nothing is concluded
_HOT, _STILL_HOT = 0.25, 0.125  # of a unit's even share: a key becomes hot, and stays so
_KEYS = 64  # hot keys of an input at once
_EVER = (
    1_024  # that were hot at some time: their rows may still be where they were put, so they are remembered
)


def following(rules: Rules, route: Biclique, samples: Sequence[U64]) -> Rules:
    """The rules of the next batch: new ones only if other keys are hot, or much hotter."""
    wanted = [
        hot(group, sample, now) for group, sample, now in zip(route.groups, samples, rules.store, strict=True)
    ]
    if all(dict(now) == new for now, new in zip(rules.store, wanted, strict=True)):
        return rules
    after = rules.then(wanted)
    return rules if any(len(probe) > _EVER for probe in after.probe) else after


def hot(group: Group, sample: U64, now: Mapping[int, int]) -> dict[int, int]:
    """The hot keys of one input, by hash, each with its number of subgroups. O(sample log sample)."""
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
    """So that no unit has more than a quarter of its even share of this key; as now, if that is near enough."""
    if now is not None and 0.125 < worth / (group.units // now) < 0.375:
        return now
    width = 1 << max(int(np.ceil(np.log2(4 * worth))), 0)
    return max(group.units // width, 1)
