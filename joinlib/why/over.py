"""Window functions over the whole partitions of a few rows: what QUALIFY leaves of them, what is final, what they read.

lag, lead, first_value, last_value, nth_value, min, max    the row whose value it is
count, sum, avg, variances                                 the rows of the frame that count, at most 100 of them
row_number, rank, ntile and their like                     none
an as-of join                                              the partner, as in other joins
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from joinlib.arrays import I64
from joinlib.errors import SpecError
from joinlib.model.inputs import HASH
from joinlib.model.over import Over
from joinlib.model.time import ALWAYS
from joinlib.over.calls import Work, source
from joinlib.over.compute import Computed, computed
from joinlib.over.settled import bound, growing
from joinlib.route.content import Mask, content_hash
from joinlib.state.run import time_values
from joinlib.why.few import Few, Origin

MOST_READ = 100  # rows of a frame that are told
_FRAMED = ("count", "sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp")
_TAKEN = ("lag", "lead", "first_value", "last_value", "nth_value", "min", "max", "bool_and", "bool_or")


@dataclass(frozen=True)
class Ranks:
    """The functions of rows of whole partitions, none of them late. asof: they are an as-of join."""

    over: Over
    few: Few
    asof: bool = False

    @cached_property
    def _found(self) -> Computed:
        columns = [self.few.rows.column(name).combine_chunks() for name, _ in self.over.columns]
        keys = [
            column
            for (name, _), column in zip(self.over.columns, columns, strict=True)
            if name in self.over.partition
        ]
        hashes = content_hash(keys, self.few.rows.num_rows)
        schema = pa.schema([(HASH, pa.uint64()), *self.over.columns])
        return computed(self.over, pa.record_batch([pa.array(hashes), *columns], schema), lenient=True)

    @cached_property
    def failing(self) -> Mapping[int, str]:
        """Why rows fail, by their positions."""
        rows = self._found.layout.rows
        found = self._found.failing(self.over, np.arange(len(rows)))
        return {int(rows[one.at]): str(one.error) for one in found}

    @cached_property
    def passing(self) -> frozenset[int]:
        """The rows that QUALIFY leaves, by their positions."""
        rows = self._found.layout.rows
        sound = np.flatnonzero(~np.isin(rows, list(self.failing)))
        at = self._found.passing(self.over.qualify, sound)
        return frozenset(self._found.layout.rows[at].tolist())

    def final(self, watermark: int) -> Mask:
        """Return which rows have come out at a watermark, µs."""
        rows, limit = self.few.rows.num_rows, bound(self.over, watermark)
        if self.over.changelog or self.over.settles_by is None:
            return np.full(rows, self.over.changelog or watermark == ALWAYS)
        out = times(self.over, self.few) < limit
        for call in self.over.calls if self.over.sessions and limit != ALWAYS else ():
            out[self._found.layout.rows[growing(self._found, call, limit)]] = False
        return out

    def result(self, rows: Sequence[int]) -> Few:
        """Return rows of the result, by the positions of the rows that they come from."""
        at = self._found.layout.at[np.array(rows, np.int64)]
        made = self._found.result(self.over, at)
        counts = self.counting(rows) if self.asof else [False] * len(rows)
        origins = (
            self.joined(row) if met else self._read(row) for row, met in zip(rows, counts, strict=True)
        )
        return Few(pa.Table.from_batches([made]), tuple(origins))

    def values(self, row: int) -> list[object]:
        """Return what the functions of a row are."""
        at = int(self._found.layout.at[row])
        return [self._found.values[call.name][at].as_py() for call in self.over.calls]

    def first(self, row: int) -> int:
        """Return the first row of the partition of a row, in the order of the first function."""
        layout = self._found.layout
        return int(layout.rows[layout.head[layout.at[row]]])

    # --- what they read ----------------------------------------------------------------------------

    def joined(self, row: int) -> Origin:
        """Return what a row and its partner in an as-of join were made of."""
        partner = int(self.partners[row]) if self.asof else -1
        return tuple(
            dict.fromkeys([*self.few.origins[row], *(self.few.origins[partner] if partner >= 0 else ())])
        )

    @cached_property
    def right(self) -> Mask:
        """Which rows are those of the right side of an as-of join."""
        side = self.few.rows.column(self.over.calls[0].condition).combine_chunks()
        return np.asarray(side.to_numpy(zero_copy_only=False), np.bool_)

    @cached_property
    def partners(self) -> I64:
        """The nearest row of the right side of each row in an as-of join; -1 for none."""
        layout, at = self._found.layout, self._taken[self.over.calls[0].name]
        found = np.full(len(at), -1)
        found[layout.rows] = np.where(at < 0, -1, layout.rows[np.maximum(at, 0)])
        return found

    @cached_property
    def met(self) -> frozenset[int]:
        """The rows of the right side of an as-of join that are partners."""
        return frozenset(self.partners[~self.right].tolist())

    def next(self, row: int) -> int:
        """Return the next row of the right side in the partition of a row, in the order of the join; -1 for none."""
        layout = self._found.layout
        at = int(layout.at[row])
        behind = layout.rows[at + 1 : layout.end[at]]
        return int(next(iter(behind[self.right[behind]]), -1))

    def counting(self, rows: Sequence[int]) -> Mask:
        """Return for which rows the result has something of the partner in an as-of join: a tolerance may refuse it."""
        calls = {call.name for call in self.over.calls}
        met = self.partners[np.array(rows, np.int64)] >= 0
        if not any(
            "CASE " in value.sql and calls.intersection(value.columns) for _, value in self.over.select
        ):
            return met
        at = self._found.layout.at[np.array(rows, np.int64)]
        values = dict(self._found.values)
        nothing = {name: pa.nulls(len(column), column.type) for name, column in values.items()}
        try:
            without = replace(self._found, values=nothing).result(self.over, at)
        except SpecError:
            return met
        with_it = self._found.result(self.over, at)
        same = np.all([_equal(a, b) for a, b in zip(with_it.columns, without.columns, strict=True)], axis=0)
        empty = np.all([column.take(pa.array(at)).is_null() for column in values.values()], axis=0)
        return met & (~same | empty)

    def _read(self, row: int) -> Origin:
        """Return what a row was made of, and as numbers below zero the rows that its functions read."""
        own = self.few.origins[row]
        selected = {name for _, value in self.over.select for name in value.columns}
        calls = [] if self.asof else [call.name for call in self.over.calls if call.name in selected]
        others = (n for call in calls for other in self._rows_of(call, row) for n in self.few.origins[other])
        return tuple(dict.fromkeys([*own, *(n if n < 0 else ~n for n in others if n not in own)]))

    def _rows_of(self, name: str, row: int) -> Iterable[int]:
        """Return the rows that a function of a row reads."""
        layout = self._works[name].layout
        at = layout.at[row]
        if name in self._taken:
            there = self._taken[name][at]
            return layout.rows[there : there + 1].tolist() if there >= 0 else []
        if name not in self._counted:
            return []
        low, high = (end[at] for end in self._works[name].frames)
        spots = self._counted[name]
        first, last = np.searchsorted(spots, [low, max(low, high)])
        return layout.rows[spots[first : min(last, first + MOST_READ)]].tolist()

    @cached_property
    def _works(self) -> Mapping[str, Work]:
        found = self._found
        return {c.name: Work(c, found.layouts[c.order], found.rows, None, {}) for c in self.over.calls}

    @cached_property
    def _taken(self) -> Mapping[str, I64]:
        """The position that the value of each function is taken from, where it is that of a row."""
        return {name: source(work) for name, work in self._works.items() if work.call.function in _TAKEN}

    @cached_property
    def _counted(self) -> Mapping[str, I64]:
        """The positions that each function counts or sums, where it does."""
        works = self._works.items()
        return {name: np.flatnonzero(work.known) for name, work in works if work.call.function in _FRAMED}


def _equal(one: pa.Array, other: pa.Array) -> Mask:
    """Return at which places two columns have equal values, or none."""
    return np.array([a == b for a, b in zip(one.to_pylist(), other.to_pylist(), strict=True)], np.bool_)


def times(over: Over, few: Few) -> I64:
    """Return the times by which rows come out, in the units of their column; none is NULL."""
    assert over.settles_by is not None
    return time_values(few.rows.column(over.settles_by).combine_chunks())
