"""What comes to one unit in one batch: blocks of rows, and how far time is.

    blocks ─► parts, by input and role ─► late rows out ─► what the join takes in

How many rows came, were late or were deleted without being there goes into the manifest and to the figures.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from joinlib.arrays import I64
from joinlib.errors import InputError
from joinlib.join.rows import concat
from joinlib.join.settled import Origin
from joinlib.model.inputs import InputPlan, KeepLate
from joinlib.model.watermark import Tick, advance
from joinlib.route.biclique import BOTH, PROBE, STORE
from joinlib.route.content import weighted, weights
from joinlib.route.split import block_schema
from joinlib.state.manifest import Manifest
from joinlib.state.run import renamed, time_values
from joinlib.state.segment import Written
from joinlib.state.side import Arrival

Block = tuple[int, int, pa.RecordBatch, int]


@dataclass(frozen=True)
class Blocks:
    """The input of a unit in one batch."""

    rows: Sequence[Block]  # (input, sequence, block, role)
    ticks: Sequence[Tick]
    # Blocks that are already stored as segments, by (input, sequence, role).
    written: Mapping[tuple[int, int, int], Written] = field(default_factory=dict)
    versions: Mapping[int, int] = field(default_factory=dict)  # table versions, by lookup number


class Arrivals:
    """The rows of one batch in one unit, by input.

    before: the state before the batch. timed: whether rows behind its watermark are late.
    final_close: whether time ends with the inputs. waiting: whether a row without a partner is emitted.
    late: takes the late rows, each once; None: they are only counted.
    """

    def __init__(
        self,
        inputs: Sequence[InputPlan],
        before: Manifest,
        blocks: Blocks,
        *,
        timed: bool,
        final_close: bool,
        waiting: bool,
        late: KeepLate | None = None,
    ) -> None:
        self._inputs, self._before, self._keep_late = inputs, before, late
        self._timed, self._waiting = timed, waiting
        self.closed = {t.input for t in blocks.ticks if t.closed} == set(range(len(inputs)))
        self._ticks = [t if final_close else replace(t, closed=False) for t in blocks.ticks]
        self.watermark, self._highest = advance(
            before.watermark,
            before.highest,
            [i.delay_us for i in inputs],
            self._ticks,
            [i.time is not None or i.clock is not None for i in inputs],
        )
        self.deleted = [0] * len(inputs)  # rows that came as deletions
        self.unknown = [0] * len(inputs)  # deletions without a row that were left out
        self._late = [0] * len(inputs)  # rows that are late, and deletions whose row was
        self.parts = self._parted(blocks)

    def counted(self, after: Manifest) -> Manifest:
        """Return the state after the batch with how far time is and how many rows came."""
        known, ticks = self._before, self._ticks
        rows = map(_rows, self.parts, self._inputs)
        return replace(
            after,
            watermark=self.watermark,
            highest=self._highest,
            rows=tuple(map(sum, zip(known.rows, rows, strict=True))),
            late=tuple(map(sum, zip(known.late, self._late, strict=True))),
            bad=tuple(n + sum(t.bad for t in ticks if t.input == i) for i, n in enumerate(known.bad)),
        )

    def origin(self, plan: InputPlan) -> Origin:
        """Return how the changes of an input are settled."""

        def missing(rows: pa.RecordBatch, counts: I64) -> None:
            late = np.zeros(len(counts), np.bool_)
            if self._timed and plan.time is not None:
                late = time_values(rows.column(plan.time)) < self._before.watermark - plan.lag_us
            self._late[plan.number] += int(counts[late].sum())
            if self._keep_late is not None and late.any():
                each = pa.array(np.repeat(np.flatnonzero(late), counts[late]))
                self._kept(weighted(rows.take(each), np.full(len(each), -1)), plan, self._keep_late)
            if plan.upstream is None or plan.united:
                self._missed(plan, int(counts[~late].sum()))

        return Origin(missing, sourced=plan.upstream is None or plan.settled)

    def _missed(self, plan: InputPlan, rows: int) -> None:
        """Count deletions of an input without their row.

        Raises:
            InputError: they are an error.
        """
        if rows and not plan.skip_unknown:
            raise InputError(
                f"input {plan.source}: {rows} deletions of this batch are of rows that are not there; each"
                " deletion must have the values of a row that came before. Mend the input, or leave such"
                " deletions out by changes.onUnknownDelete: skip, which counts them"
            )
        self.unknown[plan.number] += rows

    def _parted(self, blocks: Blocks) -> list[list[Arrival]]:
        """Return the rows of each input without late ones, which are counted."""
        found = []
        ordered = sorted(blocks.rows, key=lambda r: (r[0], r[3], r[1]))
        for plan in self._inputs:
            of = plan.number if plan.twin is None else plan.twin
            parts = [
                part if plan.twin is None else _renamed(part, plan)
                for role in (BOTH, STORE, PROBE)
                for part in _parts(
                    [b for b in ordered if b[0] == of and b[3] == role], role, blocks, self._inputs[of]
                )
            ]
            kept = [self._in_time(part, plan) for part in parts]
            found.append([part for part in kept if part.rows.num_rows])
            if plan.changes:
                self.deleted[plan.number] = sum(_deletions(part, plan) for part in found[-1])
            self._late[plan.number] = _rows(parts, plan) - _rows(kept, plan)
        return found

    def _in_time(self, part: Arrival, plan: InputPlan) -> Arrival:
        never_late = plan.upstream is not None and not plan.settled
        if not self._timed or plan.time is None or never_late or not part.rows.num_rows:
            return part
        mask = time_values(part.rows.column(plan.time)) >= self._before.watermark - plan.lag_us
        # A row that is still stored goes, and is not left beside the new one. Not where others are emitted
        # without a partner: they would take a row whose partner was dropped for one without any.
        if plan.changes and part.stored and part.probing and not self._waiting:
            mask |= weights(part.rows) < 0
        if mask.all():
            return part
        if self._keep_late is not None and part.stored:
            late = ~mask if not plan.copies else ~mask & (part.rows.column(0).to_numpy() == 0)
            self._kept(part.rows.filter(pa.array(late)), plan, self._keep_late)
        return replace(part, rows=part.rows.filter(pa.array(mask)), written=None)

    def _kept(self, rows: pa.RecordBatch, plan: InputPlan, keep: KeepLate) -> None:
        keep(plan, rows, self._before.watermark - plan.lag_us - time_values(rows.column(plan.time)))


def _parts(own: list[Block], role: int, blocks: Blocks, plan: InputPlan) -> Iterator[Arrival]:
    """Yield the blocks of one input and role: small ones concatenated, stored segments one by one.

    Changes stay in their order, and none of their segments is kept as it is.
    """
    kept = {} if plan.changes else blocks.written
    small = [rows for number, sequence, rows, _ in own if (number, sequence, role) not in kept]
    if small:
        yield Arrival(concat(small, block_schema(plan)), None, role != PROBE, role != STORE)
    for number, sequence, rows, _ in own if kept else ():
        if (written := blocks.written.get((number, sequence, role))) is not None:
            yield Arrival(rows, written, role != PROBE, role != STORE)


def _renamed(part: Arrival, plan: InputPlan) -> Arrival:
    """Return rows of an input as those of its twin."""
    return replace(part, rows=renamed(part.rows, block_schema(plan)), written=None)


def _deletions(part: Arrival, plan: InputPlan) -> int:
    """Count the deletions among rows that are stored here, as `_rows` counts rows."""
    mask = weights(part.rows) < 0
    if plan.copies:
        mask &= part.rows.column(0).to_numpy() == 0
    return int(np.count_nonzero(mask)) if part.stored else 0


def _rows(parts: Sequence[Arrival], plan: InputPlan) -> int:
    """Count the rows stored here.

    Each row is stored in one unit; of a copied input, only unit 0's copy counts.
    """
    stored = [part.rows for part in parts if part.stored]
    if plan.copies:
        return sum(int(np.count_nonzero(rows.column(0).to_numpy() == 0)) for rows in stored)
    return sum(rows.num_rows for rows in stored)
