"""What a result is now: the sum of what came out. Law: a row is there as often as it came and did not go."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs.cli.shell.order import ordered
from joinlib.expr.equality import key
from joinlib.model.changelog import BATCH, CHANGE_TYPE, DELETE, PREIMAGE

_TIMES = "$times"


@dataclass(frozen=True)
class Contents:
    """Rows, each once, with how often it is there in the last column."""

    rows: pa.Table | None = None

    @property
    def count(self) -> int:
        """The number of rows."""
        return 0 if self.rows is None else int(pc.sum(self.rows[_TIMES]).as_py() or 0)

    def after(self, changes: pa.Table) -> "Contents":
        """Return the contents after the rows of a batch, with or without the columns of a changelog."""
        if CHANGE_TYPE in changes.column_names:
            gone = pc.is_in(changes[CHANGE_TYPE], pa.array([DELETE, PREIMAGE]))
            times = pc.if_else(gone, -1, 1)
            changes = changes.drop_columns([CHANGE_TYPE, BATCH])
        else:
            times = pa.chunked_array([pa.repeat(pa.scalar(1, pa.int64()), changes.num_rows)])
        changes = changes.append_column(_TIMES, pc.cast(times, pa.int64()))
        both = changes if self.rows is None else pa.concat_tables([self.rows, changes])
        return Contents(_summed(both))

    def minus(self, other: "Contents") -> "tuple[Contents, Contents]":
        """Return what is here and not there, and what is there and not here."""
        if self.rows is None or other.rows is None:
            return self, other
        negative = pc.negate(other.rows[_TIMES])
        taken = other.rows.set_column(other.rows.schema.get_field_index(_TIMES), _TIMES, negative)
        left = _summed(pa.concat_tables([self.rows, taken.cast(self.rows.schema)]))
        here, there = (left.filter(compare(left[_TIMES], 0)) for compare in (pc.greater, pc.less))
        back = there.set_column(there.schema.get_field_index(_TIMES), _TIMES, pc.negate(there[_TIMES]))
        return Contents(here), Contents(back)

    def plain(self, most: int) -> list[tuple[Any, ...]]:
        """Return up to so many rows as plain values."""
        rows = self.first(most)
        return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))

    def first(self, most: int, order: Sequence[tuple[str, bool]] = ()) -> pa.Table:
        """Return up to so many rows, each as often as it is there; `order`: names of columns, and whether they fall."""
        if self.rows is None:
            return pa.table({})
        some = ordered(self.rows, order).slice(0, most)
        at = [n for n, times in enumerate(some[_TIMES].to_pylist()) for _ in range(min(times, most))]
        return some.drop_columns([_TIMES]).take(pa.array(at[:most], pa.int64()))


def _summed(rows: pa.Table) -> pa.Table:
    """Add up equal rows, and leave out those that are gone."""
    names = [name for name in rows.column_names if name != _TIMES]
    if any(pa.types.is_nested(rows.schema.field(name).type) for name in names):
        return _summed_by_keys(rows, names)
    places = [f"{number}" for number in range(len(names))]  # names may be anything
    summed = (
        rows.rename_columns([*places, _TIMES])
        .group_by(places, use_threads=False)
        .aggregate([(_TIMES, "sum")])
    )
    summed = summed.select([*places, f"{_TIMES}_sum"]).rename_columns([*names, _TIMES])
    return summed.filter(pc.not_equal(summed[_TIMES], 0))


def _summed_by_keys(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The same where Arrow cannot group, by what is equal for equal values: lists, structs, maps."""
    times: dict[tuple[object, ...], int] = {}
    first: dict[tuple[object, ...], int] = {}
    columns = [map(key, rows[name].to_pylist()) for name in names]
    for at, (*values, more) in enumerate(zip(*columns, rows[_TIMES].to_pylist(), strict=True)):
        row = tuple(values)
        first.setdefault(row, at)
        times[row] = times.get(row, 0) + more
    there = [row for row, count in times.items() if count]
    kept = rows.select(names).take(pa.array([first[row] for row in there], pa.int64()))
    return kept.append_column(_TIMES, pa.array([times[row] for row in there], pa.int64()))
