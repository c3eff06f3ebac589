"""Joins one batch of one unit: takes blocks, emits result rows, makes the next manifest.

    blocks ─► drop late rows ─► tree of operators (children first) ─► unmatched rows ─► expiry ─► commit

State, result and files are pure functions of (manifest, blocks), with blocks sorted by (input, sequence).
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.join.enough import enough
from joinlib.join.inner import inner
from joinlib.join.match import satisfying
from joinlib.join.order.orders import Orders, orders_of
from joinlib.join.order.policy import RULES, OrderPolicy
from joinlib.join.outer import alone, outer, released
from joinlib.join.probe import Prober
from joinlib.join.rows import Picked, Tuples, concat
from joinlib.join.watermark import Tick, advance, horizon
from joinlib.model.inputs import InputPlan
from joinlib.model.joins import Leaf
from joinlib.model.operator import Operator
from joinlib.model.tuning import Tuning
from joinlib.route.biclique import BOTH, PROBE, STORE
from joinlib.route.split import block_schema
from joinlib.state.manifest import Manifest
from joinlib.state.run import time_values
from joinlib.state.segment import Written
from joinlib.state.side import Arrival
from joinlib.state.unit import Unit

Block = tuple[int, int, pa.RecordBatch, int]


@dataclass(frozen=True)
class Blocks:
    """The input of a unit in one batch."""

    rows: Sequence[Block]  # (input, sequence, block, role)
    ticks: Sequence[Tick]
    # Blocks that are already stored as segments, by (input, sequence, role).
    written: Mapping[tuple[int, int, int], Written] = field(default_factory=dict)
    versions: Mapping[int, int] = field(default_factory=dict)  # table versions, by lookup number


class UnitJoin:
    """Joins the rows of one batch in one unit.

    `manifest` is the state before the batch until `run` is exhausted, then the state after it.
    """

    def __init__(
        self,
        root: Operator | Leaf,
        inputs: Sequence[InputPlan],
        timed: bool,
        final_close: bool,
        tuning: Tuning,
        unit: Unit,
        manifest: Manifest,
    ) -> None:
        self.root, self.inputs, self.timed, self.final_close = root, inputs, timed, final_close
        self.tuning, self.unit, self.manifest = tuning, unit, manifest
        self.commit_seconds = 0.0
        self.closed = False  # whether all inputs are closed in this batch
        self.orders = _orders(root, manifest.probes, RULES[tuning.probe_order])  # by number of first side

    @property
    def chosen(self) -> tuple[dict[str, Any], ...]:
        """The figures of all probe orders if some were chosen after this batch, else an empty tuple."""
        if not any(orders.batches == 0 and orders.cycles for orders in self.orders.values()):
            return ()
        return tuple(orders.figures() for orders in self.orders.values())

    def run(self, batch: int, blocks: Blocks) -> Iterator[Tuples]:
        """Yield the batch's increment of the result, in chunks of bounded size; then commit the state."""
        before = self.manifest.watermark
        self.closed = {t.input for t in blocks.ticks if t.closed} == set(range(len(self.inputs)))
        ticks = [t if self.final_close else replace(t, closed=False) for t in blocks.ticks]
        after, highest = advance(
            before,
            self.manifest.highest,
            [i.delay_us for i in self.inputs],
            ticks,
            [i.time is not None for i in self.inputs],
        )
        arrived, late = self._arrived(blocks, before)
        if isinstance(self.root, Leaf):
            yield from (Tuples(Picked(part.rows)) for part in arrived[self.root.input])
        else:
            yield from self._operate(self.root, batch, arrived, before, after)
        known, started = self.manifest, time.perf_counter()
        committed = self.unit.commit(known, batch, blocks.written.values())
        self.commit_seconds = time.perf_counter() - started
        self.manifest = replace(
            committed,
            watermark=after,
            highest=highest,
            rows=tuple(
                n + _rows(parts, plan)
                for n, parts, plan in zip(known.rows, arrived, self.inputs, strict=True)
            ),
            late=tuple(a + b for a, b in zip(known.late, late, strict=True)),
            bad=tuple(n + sum(t.bad for t in ticks if t.input == i) for i, n in enumerate(known.bad)),
            probes=tuple(orders.plain() for orders in self.orders.values()),
        )

    def _arrived(self, blocks: Blocks, watermark: int) -> tuple[list[list[Arrival]], list[int]]:
        """Return the batch's rows without late ones, and the number of late rows, for each input."""
        arrived, late = [], []
        ordered = sorted(blocks.rows, key=lambda r: (r[0], r[3], r[1]))
        for plan in self.inputs:
            parts = [
                part
                for role in (BOTH, STORE, PROBE)
                for part in _parts(
                    [b for b in ordered if b[0] == plan.number and b[3] == role], role, blocks, plan
                )
            ]
            kept = [self._in_time(part, plan, watermark) for part in parts]
            arrived.append([part for part in kept if part.rows.num_rows])
            late.append(_rows(parts, plan) - _rows(kept, plan))
        return arrived, late

    def _in_time(self, part: Arrival, plan: InputPlan, watermark: int) -> Arrival:
        if not self.timed or plan.time is None or plan.upstream is not None or not part.rows.num_rows:
            return part
        mask = time_values(part.rows.column(plan.time)) >= watermark
        return part if mask.all() else replace(part, rows=part.rows.filter(pa.array(mask)), written=None)

    def _operate(
        self, op: Operator, batch: int, arrived: list[list[Arrival]], before: int, after: int
    ) -> Iterator[Tuples]:
        """Yield one operator's output for the batch, after running its children."""
        sides = [self.unit.sides[s.number] for s in op.sides]
        orders = self.orders.get(op.sides[0].number)
        watch = orders.watch(self.tuning.probe_cycle) if orders else None
        prober = Prober(op, sides, self.tuning, watch)
        inputs = []
        for at, child in enumerate(op.children):
            parts = (
                arrived[child.input]
                if isinstance(child, Leaf)
                else self._below(child, batch, arrived, before, after)
            )
            split = [_matchable(part, op, at) for part in parts]
            inputs.append([enough(live, op) if at == 1 else live for live, _ in split if live.rows.num_rows])
            if op.kind != "semi" and sides[at].config.marked:
                yield from self._out(
                    op, (alone(prober, at, Picked(dead)) for _, dead in split if dead.num_rows)
                )
        asked = orders.orders if orders else None
        found = inner(prober, batch, inputs, asked) if op.kind == "inner" else outer(prober, batch, inputs)
        yield from self._out(op, found)
        if orders and any(inputs):
            self.orders[op.sides[0].number] = orders.after(watch, sides, RULES[self.tuning.probe_order])
        for side in sides:
            horizons = horizon(before, side.config.hold_us), horizon(after, side.config.hold_us)
            if side.config.marked and op.kind != "semi":
                yield from self._out(op, released(prober, side, *horizons))
            side.expire(horizons[1])

    def _below(
        self, child: Operator, batch: int, arrived: list[list[Arrival]], before: int, after: int
    ) -> list[Arrival]:
        """Return a child operator's output as arrivals of its parent."""
        outputs = [t.batch(child.schema) for t in self._operate(child, batch, arrived, before, after)]
        return [Arrival(concat(outputs, child.schema))] if outputs else []

    def _out(self, op: Operator, tuples: Iterator[Tuples]) -> Iterator[Tuples]:
        for t in tuples:
            kept = satisfying(t, op.where)
            if len(kept):
                yield kept


def _orders(root: Operator | Leaf, saved: Sequence[Any], rule: OrderPolicy) -> dict[int, Orders]:
    """Return the probe orders of each operator that has a choice, by the number of its first side."""
    if isinstance(root, Leaf) or rule.policy == "fixed":
        return {}
    free = [op.sides for op in root.operators() if op.kind == "inner" and len(op.sides) > 2]
    return {
        sides[0].number: orders_of(known, len(sides))
        for sides, known in zip_longest(free, saved[: len(free)])
    }


def _matchable(part: Arrival, op: Operator, at: int) -> tuple[Arrival, pa.RecordBatch]:
    """Split rows into those that could match and those that never will.

    A row never matches if it has NULL in the key or in a time column with a bound.
    """
    config, rows = op.sides[at], part.rows
    bounded = [n for b in op.bounds for n in (b.left, b.right) if n in config.schema.names]
    columns = [c for n in (*config.keys, *bounded) if (c := rows.column(n)).null_count]
    if not columns:
        return part, rows.slice(0, 0)
    valid = columns[0].is_valid()
    for column in columns[1:]:
        valid = pc.and_(valid, column.is_valid())
    return replace(part, rows=rows.filter(valid), written=None), rows.filter(pc.invert(valid))


def _parts(own: list[Block], role: int, blocks: Blocks, plan: InputPlan) -> Iterator[Arrival]:
    """Yield the blocks of one input and role: small ones concatenated, stored segments one by one."""
    small = [rows for number, sequence, rows, _ in own if (number, sequence, role) not in blocks.written]
    if small:
        yield Arrival(concat(small, block_schema(plan)), None, role != PROBE, role != STORE)
    for number, sequence, rows, _ in own:
        if (written := blocks.written.get((number, sequence, role))) is not None:
            yield Arrival(rows, written, role != PROBE, role != STORE)


def _rows(parts: Sequence[Arrival], plan: InputPlan) -> int:
    """Count the rows stored here.

    Each row is stored in one unit; of a copied input, only unit 0's copy counts.
    """
    stored = [part.rows for part in parts if part.stored]
    if plan.copies:
        return sum(int(np.count_nonzero(rows.column(0).to_numpy() == 0)) for rows in stored)
    return sum(rows.num_rows for rows in stored)
