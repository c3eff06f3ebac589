"""A sealed run of an inequality join: sorted values and permutation arrays (SPO-Join, sections 3.3 and 3.4).

    row      0  1  2  3       values[0]  1 3 3 5      sorted by the first column: the positions of the bits
    a        5  3  1  3       order      2 1 3 0      the row at each of these positions
    b        7  9  8  2       values[1]  2 7 8 9
                              perms[0]   2 3 0 1      position by a of the row at each position by b
                              places[0]  2 3 0 1      position by b of the row at each position by a

    here                      in the paper, and in IEJoin, on which it builds
    values[0], values[1]      L1, L2: the sorted arrays of fields a and b
    perms                     P: the permutation array
    places                    the inverse of P
    bits (`sweeps.Bits`)      B: the bit array

The paper also keeps offset arrays between the two relations; here a run holds rows of one, and a probe is
searched in its sorted values. Rows are numbered in arrival order, so a window of rows is a range of numbers
(`alive`), and a window of time lies in one (`reach`). Joins express windows as comparisons, which `first` leaves
out.

Law: a probe returns exactly the pairs that a nested loop would, each once; expired rows never match.

Cost: building takes O(n log n); a row takes 8 d + 4 + 8 (d - 1) bytes for d dimensions. A probe uses the
cheaper of `scans` and `sweeps`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from joinlib.arrays import I32, I64
from joinlib.index import grids, scans, sweeps
from joinlib.index.comparisons import Column, Op, PreparedProbes, Shape
from joinlib.index.fences import Fences, fences
from joinlib.index.frames import Frames
from joinlib.index.spans import Spans, effort, search

Pairs = tuple[I64, I64]

PAIRS = 1 << 18  # per frame; larger arrays are mapped again on each allocation, which doubles a pair's cost
_OPS = tuple(Op)
_HOLDS = {
    Op.LT: np.less,
    Op.LE: np.less_equal,
    Op.GT: np.greater,
    Op.GE: np.greater_equal,
    Op.NE: np.not_equal,
}
_PROBES, _ROWS = 64, 512  # of a sample
# Measured costs, ns: a position walked to find pairs, or counted; a bit flipped; a block; a bit checked.
_WALK, _COUNT, _FLIP, _BLOCK, _CHECK = 1.0, 0.15, 1.5, 0.5, 3.0


@dataclass(frozen=True)
class PermutedRun:
    """The rows of one sealed run.

    groups: hashes of the equality, ascending; the rows of group g are at positions [starts[g], starts[g +
    1]).
    """

    shape: Shape
    values: I64  # (dimensions, rows), ascending within each group
    order: I32
    perms: I32  # (dimensions - 1, rows)
    places: I32
    groups: I64 | None
    starts: I32

    @property
    def rows(self) -> int:
        return len(self.order)

    def probe(
        self,
        columns: Sequence[Column] | PreparedProbes,
        equal: I64 | None = None,
        limit: int = PAIRS,
        alive: tuple[int, int] | None = None,
    ) -> Iterator[Pairs]:
        """Yield pairs (probe, row) that satisfy every comparison, in frames of at most `limit` pairs.

        columns: one for each comparison, or the result of `shape.prepare`, which serves several runs.
        equal: the hash of each probe's key, if the run has groups.
        alive: if given, only rows with alive[0] <= row < alive[1] match.
        """
        spans, by = self._spans(columns, equal)
        narrow, swept = self._choose(spans, by, _WALK)
        rows, by = self._rows(alive), by[swept]
        bits = sweeps.Bits.of(self.rows) if swept else None
        frames, k, step = Frames(max(1, min(limit, int(narrow)))), 0, -1
        while k < len(by):
            probe, row = frames.take()
            if bits:
                found, k, step = sweeps.pairs(rows, spans, by, swept, bits, k, step, probe, row)
            else:
                found, k, step = scans.pairs(rows, spans, by, k, step, probe, row)
            if found:
                yield probe[:found], row[:found]
            del probe, row  # otherwise their references would keep the frame in use

    def count(
        self,
        columns: Sequence[Column] | PreparedProbes,
        equal: I64 | None = None,
        alive: tuple[int, int] | None = None,
    ) -> I64:
        """Return the number of matches of each probe, shape (probes,); arguments as in `probe`."""
        spans, by = self._spans(columns, equal)
        every = alive is None or (alive[0] <= 0 and alive[1] >= self.rows)
        if every and self.rows and len(self.values) == 2 and not len(spans.hole_of):
            return grids.count(self._grid, grids.shift(self.rows), self.perms[0], self.places[0], spans)
        _, swept = self._choose(spans, by, _COUNT)
        rows = self._rows(alive)
        if swept:
            return sweeps.count(rows, spans, by[swept], swept, sweeps.Bits.of(self.rows))
        return scans.count(rows, spans, by[0])

    def first(self, comparisons: int) -> "PermutedRun | None":
        """Return the same rows by their first comparisons alone, O(1) and without a copy.

        None: a later comparison shares a dimension with them.
        """
        if comparisons not in self._first:
            shape = self.shape.first(comparisons)
            self._first[comparisons] = None if shape is None else self._by(shape)
        return self._first[comparisons]

    def asked(self, ops: Sequence[Op]) -> "PermutedRun":
        """Return the same rows, asked by other comparisons of the same columns; O(1) and without a copy."""
        if (wanted := tuple(ops)) == self.shape.ops:
            return self
        if wanted not in self._asked:
            self._asked[wanted] = replace(self, shape=replace(self.shape, ops=wanted))
        return self._asked[wanted]

    def kept(self, asked: PreparedProbes, comparisons: range) -> float:
        """Estimate which part of all pairs of a probe and a row some comparisons keep, from a sample of both."""
        part = 1.0
        for d in {self.shape.of[c] for c in comparisons}:
            rows = _some(self.values[d], _ROWS)
            keep = np.ones((1, len(rows)), np.bool_)
            for c in (c for c in comparisons if self.shape.of[c] == d):
                keep = keep & _HOLDS[self.shape.ops[c]](_some(asked.keys[c], _PROBES)[:, None], rows)
            part *= float(keep.mean()) if keep.size else 1.0
        return part

    def reach(self, asked: PreparedProbes, comparisons: range) -> tuple[int, int]:
        """Return a range of rows outside which no row satisfies these comparisons with any probe.

        It is as narrow as the rows are in order: those of a window over rows that came by time are all of it.
        Rows with groups are not narrowed. O(1) for a run that the comparisons keep whole, O(log rows) later.
        """
        first, stop = 0, self.rows
        if self.groups is None and self.rows and len(asked.keys[0]):
            for d in {self.shape.of[c] for c in comparisons}:
                low, high = self._within(asked, (c for c in comparisons if self.shape.of[c] == d), d)
                if low >= high:
                    return 0, 0
                if (low, high) != (0, self.rows):
                    lowest, highest = self._extremes(d)
                    first, stop = max(first, int(lowest[low])), min(stop, int(highest[high - 1]) + 1)
        return first, max(first, stop)

    def _within(self, asked: PreparedProbes, comparisons: Iterable[int], d: int) -> tuple[int, int]:
        """Return the positions by dimension `d` that any probe can reach, by the most generous of them."""
        low, high = 0, self.rows
        for c in comparisons:
            op, keys = self.shape.ops[c], asked.keys[c]
            if op in (Op.LT, Op.LE):
                low = max(low, int(np.searchsorted(self.values[d], keys.min(), "left")))
            elif op in (Op.GT, Op.GE):
                high = min(high, int(np.searchsorted(self.values[d], keys.max(), "right")))
        return low, high

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all arrays of the run; `PermutedRun.of` restores it from them, even from a mapped file."""
        kept: dict[str, npt.NDArray[Any]] = {
            "ops": np.array([_OPS.index(op) for op in self.shape.ops], np.int32),
            "of": np.array(self.shape.of, np.int32),
            "floats": np.array(self.shape.floats, np.int32),
            "values": self.values,
            "order": self.order,
            "perms": self.perms,
            "places": self.places,
            "starts": self.starts,
        }
        if self.groups is not None:
            kept["groups"] = self.groups
        return kept

    @classmethod
    def of(cls, arrays: dict[str, npt.NDArray[Any]]) -> "PermutedRun":
        """Return the run with these `arrays()`; nothing is copied."""
        shape = Shape(
            tuple(_OPS[i] for i in arrays["ops"]),
            tuple(arrays["of"].tolist()),
            tuple(bool(f) for f in arrays["floats"]),
        )
        values, order, perms, places, starts = (
            _frozen(arrays[name]) for name in ("values", "order", "perms", "places", "starts")
        )
        groups = _frozen(arrays["groups"]) if "groups" in arrays else None
        return cls(shape, values, order, perms, places, groups, starts)

    def check(self) -> None:
        """Check every invariant, O(rows)."""
        n = np.arange(self.rows)
        # Each array of positions names every row once.
        for positions in (self.order, *self.perms, *self.places):
            assert np.array_equal(np.sort(positions), n)
        # A permutation and its places undo each other.
        for perm, place in zip(self.perms, self.places):
            assert np.array_equal(perm[place], n)
        # Groups are consecutive; values ascend within each.
        assert self.starts[0] == 0 and self.starts[-1] == self.rows
        assert self.groups is None or np.all(self.groups[1:] > self.groups[:-1])
        within = np.ones(max(self.rows - 1, 0), bool)
        within[self.starts[1:-1] - 1] = False
        for values in self.values:
            assert np.all((values[1:] >= values[:-1])[within])
        # A row is in the same group in every dimension.
        group = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        for perm in self.perms:
            assert np.array_equal(group, group[perm])

    def _rows(self, alive: tuple[int, int] | None) -> scans.LiveRows:
        first, stop = alive or (0, self.rows)
        return scans.LiveRows(self.order, self.perms, self.places, first, stop)

    def _by(self, shape: Shape) -> "PermutedRun":
        count = shape.dimensions
        first, perms, places = self.values[:count], self.perms[: count - 1], self.places[: count - 1]
        return replace(self, shape=shape, values=first, perms=perms, places=places)

    @cached_property
    def _first(self) -> "dict[int, PermutedRun | None]":
        return {}

    @cached_property
    def _asked(self) -> "dict[tuple[Op, ...], PermutedRun]":
        return {}

    def _extremes(self, d: int) -> tuple[I32, I32]:
        """Return by position the lowest row from there on, and the highest up to there; kept for later probes."""
        if d not in self._ends:
            rows = self.order[self.perms[d - 1]] if d else self.order
            self._ends[d] = (
                np.minimum.accumulate(rows[::-1])[::-1],
                np.maximum.accumulate(rows),
            )
        return self._ends[d]

    @cached_property
    def _ends(self) -> "dict[int, tuple[I32, I32]]":
        return {}

    @cached_property
    def _fences(self) -> tuple[Fences, ...]:
        """The fences of each dimension; built on first use, so that they need not be stored."""
        return tuple(fences(values) for values in self.values)

    @cached_property
    def _grid(self) -> I32:
        return grids.grid(self.places[0], grids.shift(self.rows))

    def _spans(self, columns: Sequence[Column] | PreparedProbes, equal: I64 | None) -> tuple[Spans, I64]:
        asked = columns if isinstance(columns, PreparedProbes) else self.shape.prepare(columns, equal)
        if (asked.equal is None) != (self.groups is None):
            raise ValueError("hashes of the equality are for both, the run and its probes, or for none")
        if asked.equal is None or self.groups is None:
            return search(self.shape, self.values, self._fences, self.starts, None, asked)
        group = np.searchsorted(self.groups, asked.equal)
        group[np.append(self.groups, 0)[group] != asked.equal] = -1
        group[group == len(self.groups)] = -1
        return search(self.shape, self.values, (), self.starts, group, asked)

    def _choose(self, spans: Spans, by: I64, walk: float) -> tuple[float, int]:
        """Return how many positions `scans` would read, and the dimension to sweep if cheaper, else 0."""
        narrow, widths, moves = effort(spans.lows, spans.highs, by)
        if len(widths) == 1 or not self.rows:
            return narrow, 0
        plain = len(widths) == 2 and not len(spans.hole_of)
        checks = 0.0 if plain else _CHECK * widths[0] / self.rows
        costs = _FLIP * moves[1:] + _BLOCK * (widths[0] / sweeps.BLOCK + by.shape[1]) + checks * widths[1:]
        best = int(np.argmin(costs))
        return narrow, best + 1 if costs[best] < (walk if plain else _CHECK) * narrow else 0


def build(columns: Sequence[Column], ops: Sequence[Op], equal: I64 | None = None) -> PermutedRun:
    """Build a run of rows, numbered in the given order.

    Row y matches probe x if x[i] ops[i] columns[i][y] for every i. Rows with NULL must already be left out.

    columns: one for each comparison. Columns that are the same array share a dimension:
    `x - c <= y <= x + c` is (GE, LE) with the same column twice, and one range.
    equal: the hash of each row's key; rows only match probes of the same hash.
    """
    shape = Shape.like(columns, ops)
    return sealed(shape, shape.stored(columns), equal)


def sealed(shape: Shape, keys: list[I64], equal: I64 | None) -> PermutedRun:
    """Build the run of rows with these keys, one array for each dimension.

    Sorts are stable: two attempts write the same bytes.
    """
    rows = len(keys[0])
    orders = [np.argsort(k, kind="stable") if equal is None else np.lexsort((k, equal)) for k in keys]
    position = np.empty(rows, np.int32)
    position[orders[0]] = np.arange(rows, dtype=np.int32)
    perms = np.empty((len(keys) - 1, rows), np.int32)
    places = np.empty_like(perms)
    for perm, place, order in zip(perms, places, orders[1:]):
        perm[:] = position[order]
        place[perm] = np.arange(rows, dtype=np.int32)
    groups, starts = None, np.array([0, rows], np.int32)
    if equal is not None:
        groups, firsts = np.unique(equal[orders[0]], return_index=True)
        starts = np.append(firsts, rows).astype(np.int32)
    values = np.empty((len(keys), rows), np.int64)
    for d, (key, order) in enumerate(zip(keys, orders)):
        np.take(key, order, out=values[d])
    return frozen(PermutedRun(shape, values, orders[0].astype(np.int32), perms, places, groups, starts))


def frozen(run: PermutedRun) -> PermutedRun:
    """Return the run with read-only arrays, like those of a mapped file.

    Kernels are compiled for read-only arrays only.
    """
    return PermutedRun.of(run.arrays())


def _some(values: I64, most: int) -> I64:
    return values[:: -(-len(values) // most) or 1]


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    plain = np.asarray(array).view()
    plain.flags.writeable = False
    return plain
