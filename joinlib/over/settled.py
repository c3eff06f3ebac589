"""Rows that the watermark has passed come out, and what is kept of them is only what later ones need.

Law: values are those of the whole partition, however the watermark moves.

Rows come in the order of their time, so that those which are final are the first ones of their partition. Counts
and sums go on from numbers (`calls.carried`); lag, frames of some rows, first values and extremes from a few rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from joinlib.aggregate.groups import Groups, number
from joinlib.apart import KeepFailed
from joinlib.arrays import I64
from joinlib.expr.types import is_decimal
from joinlib.model.inputs import HASH
from joinlib.model.over import Over, OverCall
from joinlib.model.time import ALWAYS, NEVER
from joinlib.over.calls import RANKS, Work, carried, readable, source
from joinlib.over.compute import Computed, computed, layouts_of
from joinlib.over.kept import changed, living, stored, summed, sums_schema
from joinlib.over.layout import Layout, partitions
from joinlib.over.places import session_heads
from joinlib.route.content import Mask, weighted


def bound(over: Over, watermark: int) -> int:
    """Return the lowest time that may still come, in units of its column's type; ALWAYS: none may."""
    if watermark == ALWAYS or over.settles_by is None:
        return ALWAYS if watermark == ALWAYS else NEVER
    if watermark == NEVER:
        return NEVER
    days = dict(over.columns)[over.settles_by] == pa.date32()
    return (watermark - over.behind_us) // 86_400_000_000 if days else watermark - over.behind_us


@dataclass
class Settling:
    """Settles rows; `rows` wait, `near` and `sums` are of those that have settled."""

    over: Over
    rows: Groups
    near: Groups
    sums: Groups
    failed: KeepFailed | None = field(
        default=None, kw_only=True
    )  # takes rows for which an expression fails; None: they are an error

    def run(self, due: pa.RecordBatch, limit: int) -> pa.RecordBatch | None:
        """Return the results of rows below the limit, which are no longer stored; None if there are none."""
        if not due.num_rows:
            return None
        if self.over.sessions:
            return self._sessions(living(due), limit)
        old = living(stored(self.near, due))
        sums = living(stored(self.sums, due))
        new = living(due)
        rows = pa.concat_batches([old, new])
        fresh = np.arange(rows.num_rows) >= old.num_rows
        keys = [HASH, *self.over.partition]
        parts = partitions(pa.concat_batches([rows.select(keys), sums.select(keys)]), self.over)
        parts, owners = parts[: rows.num_rows], parts[rows.num_rows :]
        found = computed(
            self.over,
            rows,
            layouts_of(self.over, rows, parts),
            fresh,
            begin(sums, owners, parts),
            lenient=self.failed is not None,
        )
        if limit != ALWAYS:
            near = rows.filter(pa.array(_needed(found, self.over, limit)))
            self._replace(self.near, old, near)
            self._replace(self.sums, sums.filter(pa.array(np.isin(owners, parts))), _totals(found, self.over))
        return found.result(self.over, np.flatnonzero(fresh[found.layout.rows]), self.failed)

    def _replace(self, own: Groups, old: pa.RecordBatch, new: pa.RecordBatch) -> None:
        own.add(changed(old, new))

    def _sessions(self, rows: pa.RecordBatch, limit: int) -> pa.RecordBatch:
        """Return the rows whose sessions are over; others wait on."""
        found = computed(self.over, rows)
        over = np.ones(rows.num_rows, np.bool_)
        if limit != ALWAYS:
            for call in self.over.calls:
                over &= ~growing(found, call, limit)
            rest = rows.take(pa.array(found.layout.rows[~over]))
            waiting = self.rows.waiting
            rest = weighted(rest, np.ones(rest.num_rows, np.int64))
            self.rows.add(rest if waiting is None else summed([waiting, rest], rest.schema))
        return found.result(self.over, np.flatnonzero(over), self.failed)


def growing(found: Computed, call: OverCall, limit: int) -> Mask:
    """Return at which positions of the result a row's session may still grow."""
    layout = found.layouts[call.order]
    times = number(found.rows.column(call.order[0].column).take(pa.array(layout.rows))).fill_null(NEVER)
    heads = session_heads(times.to_numpy(), np.ones(len(times), np.bool_), layout.head, call.number)
    ends = np.append(np.flatnonzero(heads)[1:], len(heads)) - 1
    grows = times.to_numpy()[ends] >= limit - call.number
    of = np.cumsum(heads) - 1
    return grows[of][layout.at[found.layout.rows]]


def begin(sums: pa.RecordBatch, owners: I64, parts: I64) -> Mapping[str, pa.Array]:
    """Return what each partition has been counted and summed to; zeros for new ones."""
    count = int(parts.max(initial=-1)) + 1
    at = np.full(max(count, int(owners.max(initial=-1)) + 1), sums.num_rows)
    at[owners] = np.arange(sums.num_rows)
    spots = pa.array(at[:count])
    found = {}
    for name in sums.schema.names:
        if name.startswith("$w"):
            column = sums.column(name)
            zero = pa.array([0]).cast(pa.decimal128(38, 0) if is_decimal(column.type) else column.type)
            found[name] = pa.concat_arrays([column, zero.cast(column.type)]).take(spots)
    return found


def _totals(found: Computed, over: Over) -> pa.RecordBatch:
    """Return what partitions are counted and summed to now."""
    schema = sums_schema(over)
    schema = schema.remove(len(schema) - 1)
    heads = pa.array(found.layout.rows[found.layout.ends])
    keys = [found.rows.column(name).take(heads) for name in (HASH, *over.partition)]
    return pa.record_batch([*keys, *(found.state[name] for name in schema.names[len(keys) :])], schema)


def _needed(found: Computed, over: Over, limit: int) -> Mask:
    """Return which rows functions of later rows read."""
    wanted = np.zeros(found.rows.num_rows, np.bool_)
    for call in over.calls:
        layout = found.layouts[call.order]
        wanted[layout.rows[_read(Work(call, layout, found.rows, None, {}), limit)]] = True
    return wanted


def _read(work: Work, limit: int) -> I64 | Mask:
    """Return the positions that the call of a later row reads, as a mask or as numbers."""
    call, layout, frame = work.call, work.layout, work.call.frame
    at = np.arange(len(layout.rows))
    if call.function == "lag":
        return _last(layout, call.number, readable(work))
    if call.function in RANKS or carried(call):
        return np.zeros(len(at), np.bool_)
    if frame.low is not None:
        if frame.unit == "rows":
            return _last(layout, -int(frame.low), None)
        if frame.unit == "groups":
            return layout.group > layout.group[layout.end - 1] + int(frame.low)
        times = number(work.rows.column(call.order[0].column).take(pa.array(layout.rows)))
        return times.fill_null(NEVER).to_numpy() >= limit + int(frame.low)
    if frame.high != 0:
        return at
    if call.function == "last_value" and not call.ignore_nulls and call.condition is None:
        return np.zeros(len(at), np.bool_)
    each = range(1, call.number + 1) if call.function == "nth_value" else [call.number]
    found = np.concatenate([source(replace(work, call=replace(call, number=n)))[layout.ends] for n in each])
    return found[found >= 0]


def _last(layout: Layout, count: int, known: Mask | None) -> Mask:
    """Return the last so many positions of each partition, or of those that are `known`."""
    if known is None:
        return layout.end - np.arange(len(layout.end)) <= count
    behind = np.append(np.cumsum(known[::-1])[::-1], 0)  # known ones from each position on
    return known & (behind[:-1] - behind[layout.end] <= count)
