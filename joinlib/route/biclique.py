"""Join-biclique: decides where a row is stored and which units it probes (BiStream, sections 3.1 and 3.2).

    units     R1 R2 | R3 R4   S1 S2 | S3 S4    each input has its own units, in d (and e) subgroups
    r of R     ●                ◦  ◦           stored in a random unit of its subgroup; probes a subgroup of S
    s of S     ◦  ◦             ●              and vice versa (ContRand, algorithm 1)

d = e = 1 is random routing, for any predicate; as many subgroups as units is hashing. Rows of a band have the cell
of their value for a key (`route.cells`), and visit the one or two cells of their partners. A *hot* key has fewer
subgroups than others, so it is spread over more units, as given by a rule. Subgroups nest: those of a rule
with fewer contain those of one with more. So the union of all rules under which a row may have been stored
is, for each key, the one with the fewest.

Law: two rows that match meet in exactly one unit (the earlier one, in the order of batches and inputs, is
stored there), whatever the rules are and were.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from joinlib.arrays import I64, U64
from joinlib.model.inputs import WEIGHT, Biclique, Group
from joinlib.route.cells import own, reached
from joinlib.route.content import content_hash, values
from joinlib.route.hash import key_hash, spread

BOTH, STORE, PROBE = 0, 1, 2  # roles: what a unit does with the rows of a block
_ORDER_BITS = 14
_DRAW = 0x5DEECE66D  # makes the choice of a unit independent of the hashes of rows without a key


@dataclass(frozen=True)
class Rules:
    """The hot keys of each input, by hash, with the number of their subgroups.

    `store` applies to rows that arrive now; `probe` holds the fewest subgroups of all rules under which
    rows may have been stored.
    """

    store: tuple[Mapping[int, int], ...] = ({}, {})
    probe: tuple[Mapping[int, int], ...] = ({}, {})
    number: int = field(default=0)  # number of rules so far

    def then(self, store: Sequence[Mapping[int, int]]) -> "Rules":
        """Return the rules that result when `store` applies to new rows from now on."""
        probe = tuple(_fewest(old, new) for old, new in zip(self.probe, store, strict=True))
        return Rules(tuple(dict(s) for s in store), probe, self.number + 1)

    def encode(self) -> dict[str, Any]:
        """Return plain values, to be saved in the source's offset."""
        return {
            "number": self.number,
            "store": [sorted(map(list, s.items())) for s in self.store],
            "probe": [sorted(map(list, p.items())) for p in self.probe],
        }


def decode(raw: Mapping[str, Any] | None) -> Rules:
    """Return the inverse of `Rules.encode`; None means that no key is hot."""
    if not raw:
        return Rules()
    store, probe = (tuple(dict(one) for one in raw[name]) for name in ("store", "probe"))
    return Rules(store, probe, raw["number"])


def _fewest(old: Mapping[int, int], new: Mapping[int, int]) -> dict[int, int]:
    return {key: min(x[key] for x in (old, new) if key in x) for key in {**old, **new}}


def subgroup(group: Group, hashes: U64, hot: Mapping[int, int]) -> tuple[I64, I64]:
    """Return, for each row, the first unit of its key's subgroup and the number of its units. O(rows)."""
    counts = np.full(len(hashes), group.subgroups, np.int64)
    if hot:
        keys = np.array(sorted(hot), np.uint64)
        fewer = np.array([min(hot[key], group.subgroups) for key in sorted(hot)], np.int64)
        at = np.minimum(np.searchsorted(keys, hashes), len(keys) - 1)
        counts = np.where(keys[at] == hashes, fewer[at], counts)
    bits = np.log2(counts).astype(np.uint64)  # powers of two: exact
    part = np.where(bits == 0, np.uint64(0), hashes >> (np.uint64(64) - np.maximum(bits, np.uint64(1))))
    width = group.units // counts
    return group.first + part.astype(np.int64) * width, width


def homes(group: Group, hashes: U64, hot: Mapping[int, int], seed: int, draw: U64 | None = None) -> I64:
    """Return the unit that stores each row, a random one of its subgroup.

    A pure function: the same rows with the same seed go to the same units. `draw`: numbers that choose
    instead of the seed, so that a deletion goes where its row went.
    """
    first, width = subgroup(group, hashes, hot)
    draw = spread(len(hashes), seed ^ _DRAW) if draw is None else draw
    return first + (draw & (width - 1).astype(np.uint64)).astype(np.int64)


class Sent(NamedTuple):
    """Rows for one unit, and their role there."""

    unit: int
    role: int
    rows: pa.RecordBatch


def routed(block: pa.RecordBatch, route: Biclique, number: int, rules: Rules, seed: int) -> Iterator[Sent]:
    """Yield every copy of the rows of input `number`, by unit and role, in the order of their hashes.

    rules: the current hot keys. seed: chooses the units that store rows. O(copies log copies).
    """
    if not block.num_rows:
        return
    if route.cells is not None:
        block = block.set_column(0, block.schema.field(0), pa.array(_hash(own(route.cells, number, block))))
    block = block.take(
        pa.array(np.argsort(block.column(0).to_numpy() >> np.uint64(64 - _ORDER_BITS), kind="stable"))
    )
    hashes = block.column(0).to_numpy()
    home = homes(route.groups[number], hashes, rules.store[number], seed, _draw(block))
    partner = route.partner(number)
    group, hot = route.groups[partner], rules.probe[partner]
    if route.cells is None:
        first, width = subgroup(group, hashes, hot)
        if width.min() == width.max() and (first == first[0]).all():
            yield from _everywhere(block, home, int(first[0]), int(width[0]))
            return
        rows, units = _visits(np.arange(len(hashes)), first, width)
    else:
        rows, units = _visited(group, hot, *reached(route.cells, number, block))
    at_home = home[rows] == units
    elsewhere = np.ones(len(hashes), np.bool_)
    elsewhere[rows[at_home]] = False
    stored_only = np.flatnonzero(elsewhere)
    rows = np.concatenate([rows, stored_only])
    units = np.concatenate([units, home[stored_only]])
    roles = np.concatenate([np.where(at_home, BOTH, PROBE), np.full(len(stored_only), STORE)])
    places = 3 * units + roles
    order = np.argsort(places, kind="stable")
    ends = np.flatnonzero(np.diff(places[order], append=-1)) + 1
    for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        unit, role = divmod(int(places[order[start]]), 3)
        yield Sent(unit, role, block.take(pa.array(np.sort(rows[order[start:end]]))))


def _visits(rows: I64, first: I64, width: I64) -> tuple[I64, I64]:
    """Return a row and a unit for each unit that a row visits: `width` of them, from `first` on."""
    return np.repeat(rows, width), np.repeat(first, width) + _counted(width)


def _visited(group: Group, hot: Mapping[int, int], low: I64, high: I64) -> tuple[I64, I64]:
    """Return a row and a unit for each unit in which rows of the cells from `low` to `high` may be stored.

    Subgroups nest, so those of two cells are apart or one holds the other. Rows that reach more cells, as
    doubles do where their steps are wider than a cell, visit all units.
    """
    rows = np.arange(len(low))
    first, width = subgroup(group, _hash(low), hot)
    first, width = np.where(high - low > 1, group.first, first), np.where(high - low > 1, group.units, width)
    two = np.flatnonzero(high - low == 1)
    other, wide = subgroup(group, _hash(high[two]), hot)
    apart = (other + wide <= first[two]) | (first[two] + width[two] <= other)
    first[two], width[two] = (
        np.where(apart, first[two], np.minimum(first[two], other)),
        np.where(apart, width[two], np.maximum(width[two], wide)),
    )
    one, more = _visits(rows, first, width), _visits(two[apart], other[apart], wide[apart])
    return np.concatenate([one[0], more[0]]), np.concatenate([one[1], more[1]])


def _hash(cells: I64) -> U64:
    return key_hash([pa.array(cells)])


def _draw(block: pa.RecordBatch) -> U64 | None:
    """Return a number for each row that depends on its content alone; None where rows are not changes."""
    if WEIGHT not in block.schema.names:
        return None
    return content_hash([block.column(0), *values(block)], block.num_rows)


def _everywhere(block: pa.RecordBatch, home: I64, first: int, width: int) -> Iterator[Sent]:
    """Route rows that all probe the same units.

    These units get the same batch, split only where a unit also stores some of the rows.
    """
    for unit in range(first, first + width):
        here = home == unit
        if not here.any():
            yield Sent(unit, PROBE, block)
        elif here.all():
            yield Sent(unit, BOTH, block)
        else:
            yield Sent(unit, BOTH, block.filter(pa.array(here)))
            yield Sent(unit, PROBE, block.filter(pa.array(~here)))
    for unit in np.unique(home[(home < first) | (home >= first + width)]).tolist():
        yield Sent(unit, STORE, block.filter(pa.array(home == unit)))


def _counted(widths: I64) -> I64:
    """Return 0, 1, … within each width: [2, 3] -> [0, 1, 0, 1, 2]."""
    if not len(widths):
        return widths
    ends = np.cumsum(widths)
    return np.arange(ends[-1]) - np.repeat(ends - widths, widths)
