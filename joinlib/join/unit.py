"""One batch of one unit: blocks in, result rows and the next manifest out.

    blocks ─► late rows out ─► tree of operators (children first) ─► rows that waited in vain ─► expiry ─► commit

State, answer and files are pure functions of (manifest, blocks): blocks are ordered by (input, sequence) first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.join.config import Leaf
from joinlib.join.inner import inner
from joinlib.join.layout import Operator
from joinlib.join.match import satisfying
from joinlib.join.outer import alone, outer, released
from joinlib.join.probe import Prober
from joinlib.join.rows import Picked, Tuples, concat
from joinlib.join.watermark import Tick, advance, horizon
from joinlib.route.config import InputPlan
from joinlib.route.split import block_schema
from joinlib.state.manifest import Manifest
from joinlib.state.run import time_values
from joinlib.state.tuning import Tuning
from joinlib.state.unit import Unit


@dataclass(frozen=True)
class Blocks:
    """What a unit receives in one batch."""

    rows: Sequence[tuple[int, int, pa.RecordBatch]]  # (input, sequence, block)
    ticks: Sequence[Tick]


class UnitJoin:
    """Joins one batch of one unit. `manifest` is that before the batch until `run` is exhausted, then that after it."""

    def __init__(
        self, root: Operator, inputs: Sequence[InputPlan], timed: bool, final_close: bool, tuning: Tuning, unit: Unit, manifest: Manifest
    ) -> None:
        self.root, self.inputs, self.timed, self.final_close = root, inputs, timed, final_close
        self.tuning, self.unit, self.manifest = tuning, unit, manifest

    def run(self, batch: int, blocks: Blocks) -> Iterator[Tuples]:
        """The increment of the result, in chunks of bounded size."""
        before = self.manifest.watermark
        ticks = [t if self.final_close else replace(t, closed=False) for t in blocks.ticks]
        after, highest = advance(
            before,
            self.manifest.highest,
            [i.delay_us for i in self.inputs],
            ticks,
            [i.time is not None for i in self.inputs],
        )
        arrived, late = self._arrived(blocks, before)
        yield from self._operate(self.root, batch, arrived, before, after)
        known = self.manifest
        self.manifest = replace(
            self.unit.commit(known, batch),
            watermark=after,
            highest=highest,
            rows=tuple(n + a.num_rows for n, a in zip(known.rows, arrived, strict=True)),
            late=tuple(a + b for a, b in zip(known.late, late, strict=True)),
        )

    def _arrived(self, blocks: Blocks, watermark: int) -> tuple[list[pa.RecordBatch], list[int]]:
        """The batch's rows of each input, in order, without those behind the watermark; and how many those were."""
        arrived, late = [], []
        ordered = sorted(blocks.rows, key=lambda r: (r[0], r[1]))
        for plan in self.inputs:
            rows = concat([b for number, _, b in ordered if number == plan.number], block_schema(plan))
            total = rows.num_rows
            if self.timed and plan.time is not None and total:
                rows = _where(rows, time_values(rows.column(plan.time)) >= watermark)
            arrived.append(rows)
            late.append(total - rows.num_rows)
        return arrived, late

    def _operate(
        self, op: Operator, batch: int, arrived: list[pa.RecordBatch], before: int, after: int
    ) -> Iterator[Tuples]:
        """One operator's output for the batch, its children's included."""
        sides = [self.unit.sides[s.number] for s in op.sides]
        prober = Prober(op, sides, self.tuning.probe_pairs)
        inputs = []
        for at, child in enumerate(op.children):
            rows = arrived[child.input] if isinstance(child, Leaf) else self._below(child, batch, arrived, before, after)
            live, dead = _matchable(rows, op, at)
            inputs.append(live)
            if dead.num_rows and op.kind != "semi" and sides[at].config.marked:
                yield from self._out(op, iter([alone(prober, at, Picked(dead))]))
        join = inner if op.kind == "inner" else outer
        yield from self._out(op, join(prober, batch, inputs))
        for side in sides:
            horizons = horizon(before, side.config.hold_us), horizon(after, side.config.hold_us)
            if side.config.marked and op.kind != "semi":
                yield from self._out(op, released(prober, side, *horizons))
            side.expire(horizons[1])

    def _below(
        self, child: Operator, batch: int, arrived: list[pa.RecordBatch], before: int, after: int
    ) -> pa.RecordBatch:
        """A child operator's output as an input of its parent."""
        outputs = [t.batch(child.schema) for t in self._operate(child, batch, arrived, before, after)]
        return concat(outputs, child.schema)

    def _out(self, op: Operator, tuples: Iterator[Tuples]) -> Iterator[Tuples]:
        for t in tuples:
            kept = satisfying(t, op.where)
            if len(kept):
                yield kept


def _matchable(rows: pa.RecordBatch, op: Operator, at: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Rows that could match something, and those that never will: a NULL in the key, or in a time that is bounded."""
    config = op.sides[at]
    bounded = [n for b in op.bounds for n in (b.left, b.right) if n in config.schema.names]
    columns = [c for n in (*config.keys, *bounded) if (c := rows.column(n)).null_count]
    if not columns:
        return rows, rows.slice(0, 0)
    valid = columns[0].is_valid()
    for column in columns[1:]:
        valid = pc.and_(valid, column.is_valid())
    return rows.filter(valid), rows.filter(pc.invert(valid))


def _where(rows: pa.RecordBatch, mask: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> pa.RecordBatch:
    return rows if mask.all() else rows.filter(pa.array(mask))
