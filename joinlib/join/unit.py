"""Joins one batch of one unit: takes blocks, emits result rows, makes the next manifest.

    blocks ─► drop late rows ─► tree of operators (children first) ─► unmatched rows ─► expiry ─► commit

State, result and files are pure functions of (manifest, blocks), with blocks sorted by (input, sequence).
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.arrays import I64
from joinlib.errors import InputError
from joinlib.join.eager import eager
from joinlib.join.enough import enough
from joinlib.join.inner import inner
from joinlib.join.latest import latest
from joinlib.join.match import satisfying
from joinlib.join.order.orders import Orders, orders_of
from joinlib.join.order.policy import OrderPolicy, policy_of
from joinlib.join.outer import alone, outer, released
from joinlib.join.probe import Prober
from joinlib.join.rows import Picked, Tuples, concat
from joinlib.join.settled import Origin, settled
from joinlib.model.inputs import WEIGHT, InputPlan
from joinlib.model.joins import Leaf
from joinlib.model.operator import Operator
from joinlib.model.tuning import Tuning
from joinlib.model.watermark import Tick, advance, horizon
from joinlib.route.biclique import BOTH, PROBE, STORE
from joinlib.route.content import weights
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
        self.deleted = [0] * len(inputs)  # rows that came as deletions, by input
        self.unknown = [0] * len(inputs)  # deletions without a row that were left out, by input
        self._too_late = [0] * len(inputs)  # deletions whose row was dropped before, by input
        self.policy = policy_of(tuning)
        self.orders = _orders(root, manifest.probes, self.policy)  # by number of first side

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
            [i.time is not None or i.clock is not None for i in self.inputs],
        )
        arrived, late = self._arrived(blocks, before)
        if isinstance(self.root, Leaf):
            yield from (Tuples(Picked(part.rows)) for parts in arrived for part in parts)
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
            late=tuple(map(sum, zip(known.late, late, self._too_late, strict=True))),
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
            if plan.changes:
                self.deleted[plan.number] = sum(_deletions(part, plan) for part in arrived[-1])
            late.append(_rows(parts, plan) - _rows(kept, plan))
        return arrived, late

    def _in_time(self, part: Arrival, plan: InputPlan, watermark: int) -> Arrival:
        never_late = plan.upstream is not None and not plan.settled
        if not self.timed or plan.time is None or never_late or not part.rows.num_rows:
            return part
        mask = time_values(part.rows.column(plan.time)) >= watermark - plan.lag_us
        if plan.changes and part.stored and part.probing and self._inner:
            mask |= (
                weights(part.rows) < 0
            )  # a row that is still stored goes, and is not left beside the new one
        return part if mask.all() else replace(part, rows=part.rows.filter(pa.array(mask)), written=None)

    @property
    def _inner(self) -> bool:
        """Whether all joins are inner: others would take a row whose partner was dropped for one without any."""
        return isinstance(self.root, Operator) and all(op.kind == "inner" for op in self.root.operators())

    def _operate(
        self, op: Operator, batch: int, arrived: list[list[Arrival]], before: int, after: int
    ) -> Iterator[Tuples]:
        """Yield one operator's output for the batch, after running its children."""
        sides = [self.unit.sides[s.number] for s in op.sides]
        orders = self.orders.get(op.sides[0].number)
        watch = orders.watch(self.policy) if orders else None
        prober = Prober(op, sides, self.tuning, watch)
        inputs = []
        for at, child in enumerate(op.children):
            parts = (
                arrived[child.input]
                if isinstance(child, Leaf)
                else self._below(child, batch, arrived, before, after)
            )
            split = [_matchable(part, op, at) for part in parts]
            some = at == 1 and not sides[at].config.mutable
            inputs.append([enough(live, op) if some else live for live, _ in split if live.rows.num_rows])
            if op.kind != "semi" and sides[at].config.marked:
                yield from self._out(
                    op, (alone(prober, at, Picked(dead)) for _, dead in split if dead.num_rows)
                )
        yield from self._out(op, self._found(op, prober, batch, inputs, orders))
        if orders and watch and any(inputs):
            self.orders[op.sides[0].number] = orders.after(watch, sides, self.policy)
        for side in sides:
            horizons = horizon(before, side.config.hold_us), horizon(after, side.config.hold_us)
            if side.config.marked and op.kind != "semi" and not op.eager:
                yield from self._out(op, released(prober, side, *horizons))
            side.expire(horizons[1])

    def _found(
        self,
        op: Operator,
        prober: Prober,
        batch: int,
        inputs: list[list[Arrival]],
        orders: Orders | None,
    ) -> Iterator[Tuples]:
        """Yield the matches of the batch, and what else the kind of join emits for its new rows."""

        def settle(at: int, parts: list[Arrival]) -> list[Arrival]:
            if not parts or parts[0].rows.schema.names[-1] != WEIGHT:
                return parts
            return settled(parts, prober.sides[at], self._origin(op.children[at]))

        if op.kind == "upsert":
            return latest(prober, batch, inputs[0], partial(self._count_unknown, op.children[0]))
        if op.kind == "inner":
            return inner(prober, batch, inputs, settle, orders.orders if orders else None)
        return eager(prober, batch, inputs, settle) if op.eager else outer(prober, batch, inputs)

    def _count_unknown(self, leaf: Operator | Leaf, rows: int) -> None:
        assert isinstance(leaf, Leaf)
        self.unknown[leaf.input] += rows

    def _origin(self, child: Operator | Leaf) -> Origin:
        """Return how the changes of a child are settled."""
        if isinstance(child, Operator):
            return Origin(lambda *_: None, sourced=False)
        plan = self.inputs[child.input]

        def missing(rows: pa.RecordBatch, counts: I64) -> None:
            late = np.zeros(len(counts), np.bool_)
            if self.timed and plan.time is not None:
                late = time_values(rows.column(plan.time)) < self.manifest.watermark - plan.lag_us
            self._too_late[plan.number] += int(counts[late].sum())
            if plan.upstream is None or plan.united:
                self._unknown(plan, int(counts[~late].sum()))

        return Origin(missing, sourced=plan.upstream is None or plan.settled)

    def _unknown(self, plan: InputPlan, rows: int) -> None:
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


def _orders(root: Operator | Leaf, saved: Sequence[Any], policy: OrderPolicy) -> dict[int, Orders]:
    """Return the probe orders of each operator that has a choice, by the number of its first side."""
    if isinstance(root, Leaf) or policy.policy == "fixed":
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
