"""Runs the window functions of one batch in one unit: takes rows, emits result rows, makes the next manifest.

    changelog   for partitions that the batch touches: result rows that are not any more with weight -1, new ones +1
    append      rows come out when the watermark has passed them (`settled`), or when the inputs are closed

Law: after each batch of a changelog the sum of what has come out is the query over the sum of what has come in.

Result and files are pure functions of (manifest, blocks), with blocks sorted by input and sequence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.aggregate.groups import committed, opened
from joinlib.aggregate.keys import differ
from joinlib.apart import KeepFailed
from joinlib.arrays import I64
from joinlib.model.inputs import InputPlan, KeepLate
from joinlib.model.over import Over
from joinlib.model.time import ALWAYS, NEVER
from joinlib.model.tuning import Tuning
from joinlib.model.watermark import Tick, advance
from joinlib.over.compute import Computed, computed, layouts_of
from joinlib.over.kept import changed, families, inserted, living, remaining, rows_schema, stored, summed
from joinlib.over.layout import within
from joinlib.over.present import passed
from joinlib.over.settled import Settling, bound
from joinlib.over.top import top
from joinlib.route.content import weighing, weighted, weights
from joinlib.state.manifest import Manifest
from joinlib.state.run import time_values
from joinlib.state.unit import sweep

OverBlock = tuple[int, int, pa.RecordBatch]  # input, number of the block, rows


class OverUnit:
    """Runs window functions over the rows of one batch in one unit. The caller holds the unit's lock.

    `manifest` is the state before the batch until `run` is exhausted, then the state after it. late: takes late rows.
    failed: takes rows for which the select list, QUALIFY or a function fails.
    """

    def __init__(
        self,
        over: Over,
        inputs: Sequence[InputPlan],
        unit: int,
        folder: Path,
        tuning: Tuning,
        manifest: Manifest,
        late: KeepLate | None = None,
        failed: KeepFailed | None = None,
    ) -> None:
        self.over, self.inputs, self.unit, self.tuning = over, inputs, unit, tuning
        self.manifest, self.folder, self._late, self._failed = manifest, folder, late, failed
        self.closed = manifest.watermark == ALWAYS
        self.deleted, self.unknown = (
            [0] * len(inputs),
            [0] * len(inputs),
        )  # deletions by input; none is left out
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder, manifest)
        self.stored = opened(folder, families(over), manifest)

    def run(self, batch: int, blocks: Sequence[OverBlock], ticks: Sequence[Tick]) -> Iterator[pa.RecordBatch]:
        """Yield the result rows of the batch and write the new state."""
        before = self.manifest
        rows, counts, late = self._arrived(sorted(blocks, key=lambda b: b[:2]))
        known = [p.tells_time for p in self.inputs]
        delays = [p.delay_us for p in self.inputs]
        after, highest = advance(before.watermark, before.highest, delays, ticks, known)
        self.closed = after == ALWAYS
        if self.over.present is not None:
            until = before.watermark if self.closed else after
            yield passed(self.over, self.stored, rows, until, self._failed)
        elif self.over.changelog:
            if rows.num_rows:
                yield self._changed(rows)
        else:
            waits = top(rows, self.over) if self.over.top is not None and not self.over.changes else rows
            self.stored[0].add(waits)
            if (found := self._settled(before.watermark, after)) is not None:
                yield found
        for own in self.stored:
            own.write(batch, self.tuning.file_bytes)
        self.manifest = replace(
            committed(self.stored, before, batch, self.tuning),
            watermark=after,
            highest=highest,
            # Of rows that whoever sends them has left out only the ticks tell.
            rows=_added(before.rows, self._heard(ticks, "rows") if self.over.cuts else counts),
            late=_added(before.late, late),
            bad=_added(before.bad, self._heard(ticks, "bad")),
        )

    def _heard(self, ticks: Sequence[Tick], field: str) -> list[int]:
        """Return what the ticks add up to, in one unit: all units are told the same."""
        return [
            sum(getattr(t, field) for t in ticks if t.input == n) if self.unit == 0 else 0
            for n in range(len(self.inputs))
        ]

    def _arrived(self, blocks: Sequence[OverBlock]) -> tuple[pa.RecordBatch, list[int], list[int]]:
        """Return the batch's changes, how many rows came of each input, and how many more were late."""
        schema, parts = rows_schema(self.over), []
        counts, late = [0] * len(self.inputs), [0] * len(self.inputs)
        limit = bound(self.over, self.manifest.watermark)
        for number, _, block in blocks:
            amounts = weights(block)
            columns = block.columns[: len(schema) - 1]
            rows = pa.record_batch([*columns, pa.array(amounts)], schema)
            if self.over.settles_by is not None:  # a row without a time would be first, and come after others
                times = rows.column(self.over.settles_by)
                kept = times.is_valid().to_numpy(zero_copy_only=False)
                if limit != NEVER:
                    kept = kept & (time_values(times) >= limit)
                late[number] += int(np.count_nonzero(~kept))
                if self._late is not None and not kept.all():
                    gone = pa.array(~kept)
                    self._late(
                        self.inputs[number], block.filter(gone), self._behind(times.filter(gone), limit)
                    )
                rows = rows.filter(pa.array(kept))
            counts[number] += rows.num_rows
            self.deleted[number] += int(-amounts[amounts < 0].sum())
            parts.append(rows)
        return summed(parts, schema), counts, late

    def _behind(self, times: pa.Array, limit: int) -> I64:
        """Return by how many µs times are behind the lowest one that may come; -1: there is none."""
        us = 86_400_000_000 if times.type == pa.date32() else 1
        there = times.is_valid().to_numpy(zero_copy_only=False)
        return np.where(there, (limit - np.where(there, time_values(times), limit)) * us, -1)

    def _changed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return how the results of the partitions of these changes change."""
        over, own = self.over, self.stored[0]
        old = living(stored(own, rows))
        every = pa.concat_batches([old, living(inserted(rows))])
        before = np.arange(every.num_rows) < old.num_rows
        after = ~before
        after[before] = remaining(old, rows)
        layouts = layouts_of(over, every)  # one sort for both
        was, now = (
            computed(
                over,
                every,
                {by: within(layout, some) for by, layout in layouts.items()},
                lenient=self._failed is not None,
            )
            for some in (before, after)
        )
        own.add(_kept(now, over.top, old.num_rows) if over.top is not None and over.cuts else rows)
        return _difference(over, was, now, self._failed)

    def _settled(self, before: int, after: int) -> pa.RecordBatch | None:
        """Return the rows that are final after the batch and were not before; None if that is none."""
        limit = bound(self.over, after)
        if limit == NEVER or after <= before:
            return None
        due = self.stored[0].release(limit)
        if self.over.settles_by is None:
            if not due.num_rows:
                return None
            found = computed(self.over, living(due), lenient=self._failed is not None)
            return found.result(self.over, failed=self._failed)
        settling = Settling(self.over, *self.stored, failed=self._failed)
        return settling.run(due, limit)


def _added(before: Sequence[int], more: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(before, more, strict=True))


def _difference(over: Over, was: Computed, now: Computed, failed: KeepFailed | None = None) -> pa.RecordBatch:
    """Return how the result changes. Of rows that stay, only those are looked at of which a function has changed."""
    stay = np.flatnonzero((was.layout.at >= 0) & (now.layout.at >= 0))
    before, after = was.layout.at[stay], now.layout.at[stay]
    other = np.zeros(len(stay), np.bool_)
    for name, values in was.values.items():
        pair = values.take(pa.array(before)), now.values[name].take(pa.array(after))
        other |= differ(*pair).to_numpy(zero_copy_only=False)
    for error in {**was.errors, **now.errors}:
        other |= was.lost(error)[before] != now.lost(error)[after]
    gone = np.ones(len(was.layout.rows), np.bool_)
    gone[before[~other]] = False
    come = np.ones(len(now.layout.rows), np.bool_)
    come[after[~other]] = False
    was_failed, now_failed = (failed and weighing(failed, amount) for amount in (-1, 1))
    old = was.result(over, np.flatnonzero(gone), was_failed)
    return changed(old, now.result(over, np.flatnonzero(come), now_failed))


def _kept(found: Computed, top: tuple[str, int], old: int) -> pa.RecordBatch:
    """Return how what is kept changes: of the first `old` rows those go that cannot be in a result any more, of the
    others the rest comes.
    """
    name, most = top
    few = pc.less_equal(found.values[name], most).to_numpy(zero_copy_only=False)
    stays = np.empty(len(few), np.bool_)
    stays[found.layout.rows] = few
    gone, come = np.flatnonzero(~stays[:old]), old + np.flatnonzero(stays[old:])
    rows = found.rows.take(pa.array(np.concatenate([gone, come])))
    return weighted(rows, np.repeat([-1, 1], [len(gone), len(come)]))
