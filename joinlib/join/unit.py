"""Joins one batch of one unit: takes blocks, emits result rows, makes the next manifest.

    blocks ─► drop late rows ─► tree of operators (children first) ─► unmatched rows ─► expiry ─► commit

State, result and files are pure functions of (manifest, blocks), with blocks sorted by (input, sequence).
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.apart import KeepFailed
from joinlib.join.arrived import Arrivals, Blocks
from joinlib.join.eager import eager
from joinlib.join.enough import enough
from joinlib.join.inner import inner
from joinlib.join.latest import latest
from joinlib.join.match import satisfying
from joinlib.join.order.orders import Orders, first, orders_of
from joinlib.join.order.policy import OrderPolicy, policy_of, star
from joinlib.join.outer import alone, outer, released
from joinlib.join.probe import Prober
from joinlib.join.rows import Picked, Tuples, concat
from joinlib.join.settled import Origin, settled
from joinlib.model.inputs import WEIGHT, InputPlan, KeepLate
from joinlib.model.joins import Leaf
from joinlib.model.operator import Operator
from joinlib.model.tuning import Tuning
from joinlib.model.watermark import horizon
from joinlib.state.manifest import Manifest
from joinlib.state.side import Arrival
from joinlib.state.unit import Unit


class UnitJoin:
    """Joins the rows of one batch in one unit.

    `manifest` is the state before the batch until `run` is exhausted, then the state after it. late: takes late rows.
    failed: takes joined rows for which a condition fails; of an outer, semi or anti join only one above it.
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
        late: KeepLate | None = None,
        failed: KeepFailed | None = None,
    ) -> None:
        self.root, self.inputs, self.timed, self.final_close = root, inputs, timed, final_close
        self.tuning, self.unit, self.manifest, self._late = tuning, unit, manifest, late
        self._failed = failed
        self.commit_seconds = 0.0
        self.closed = False  # whether all inputs are closed in this batch
        self.deleted = [0] * len(inputs)  # rows that came as deletions, by input
        self.unknown = [0] * len(inputs)  # deletions without a row that were left out, by input
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
        known, timed, waiting = self.manifest, self.timed, not self._inner
        came = Arrivals(
            self.inputs,
            known,
            blocks,
            timed=timed,
            final_close=self.final_close,
            waiting=waiting,
            late=self._late,
        )
        self.closed, self.deleted, self.unknown = came.closed, came.deleted, came.unknown
        if isinstance(self.root, Leaf):
            yield from (Tuples(Picked(part.rows)) for parts in came.parts for part in parts)
        else:
            yield from self._operate(self.root, batch, came)
        started = time.perf_counter()
        committed = self.unit.commit(known, batch, blocks.written.values())
        self.commit_seconds = time.perf_counter() - started
        self.manifest = replace(
            came.counted(committed), probes=tuple(orders.plain() for orders in self.orders.values())
        )

    @property
    def _inner(self) -> bool:
        """Whether all joins are inner."""
        return isinstance(self.root, Operator) and all(op.kind == "inner" for op in self.root.operators())

    def _operate(self, op: Operator, batch: int, came: Arrivals) -> Iterator[Tuples]:
        """Yield one operator's output for the batch, after running its children."""
        sides = [self.unit.sides[s.number] for s in op.sides]
        orders = self.orders.get(op.sides[0].number)
        choices = star(len(sides))
        watch = orders.watch(choices, self.policy) if orders else None
        prober = Prober(op, sides, self.tuning, watch, failed=self._failed if op.kind == "inner" else None)
        inputs = []
        for at, child in enumerate(op.children):
            parts = came.parts[child.input] if isinstance(child, Leaf) else self._below(child, batch, came)
            split = [_matchable(part, op, at) for part in parts]
            some = at == 1 and not sides[at].config.mutable
            inputs.append([enough(live, op) if some else live for live, _ in split if live.rows.num_rows])
            if op.kind != "semi" and sides[at].config.marked:
                yield from self._out(
                    op, (alone(prober, at, Picked(dead)) for _, dead in split if dead.num_rows)
                )
        yield from self._out(op, self._found(op, prober, batch, inputs, came))
        if orders and watch and any(inputs):
            self.orders[op.sides[0].number] = orders.after(watch, sides, choices, self.policy)
        for side in sides:
            hold = side.config.hold_us
            horizons = horizon(self.manifest.watermark, hold), horizon(came.watermark, hold)
            if side.config.marked and op.kind != "semi" and not op.eager:
                yield from self._out(op, released(prober, side, *horizons))
            side.expire(horizons[1])

    def _found(
        self,
        op: Operator,
        prober: Prober,
        batch: int,
        inputs: list[list[Arrival]],
        came: Arrivals,
    ) -> Iterator[Tuples]:
        """Yield the matches of the batch, and what else the kind of join emits for its new rows."""

        def settle(at: int, parts: list[Arrival]) -> list[Arrival]:
            if not parts or parts[0].rows.schema.names[-1] != WEIGHT:
                return parts
            return settled(parts, prober.sides[at], self._origin(op.children[at], came))

        if op.kind == "upsert":
            return latest(prober, batch, inputs[0], partial(self._count_unknown, op.children[0]))
        if op.kind == "inner":
            orders = self.orders.get(op.sides[0].number)
            return inner(prober, batch, inputs, settle, orders.orders if orders else None)
        return eager(prober, batch, inputs, settle) if op.eager else outer(prober, batch, inputs)

    def _count_unknown(self, leaf: Operator | Leaf, rows: int) -> None:
        assert isinstance(leaf, Leaf)
        self.unknown[leaf.input] += rows

    def _origin(self, child: Operator | Leaf, came: Arrivals) -> Origin:
        """Return how the changes of a child are settled."""
        if isinstance(child, Operator):
            return Origin(lambda *_: None, sourced=False)
        return came.origin(self.inputs[child.input])

    def _below(self, child: Operator, batch: int, came: Arrivals) -> list[Arrival]:
        """Return a child operator's output as arrivals of its parent."""
        outputs = [t.batch(child.schema) for t in self._operate(child, batch, came)]
        return [Arrival(concat(outputs, child.schema))] if outputs else []

    def _out(self, op: Operator, tuples: Iterator[Tuples]) -> Iterator[Tuples]:
        for t in tuples:
            kept = satisfying(t, op.where, self._failed)
            if len(kept):
                yield kept


def _orders(root: Operator | Leaf, saved: Sequence[Any], policy: OrderPolicy) -> dict[int, Orders]:
    """Return the probe orders of each operator that has a choice, by the number of its first side."""
    if isinstance(root, Leaf) or policy.policy == "fixed":
        return {}
    free = [op.sides for op in root.operators() if op.kind == "inner" and len(op.sides) > 2]
    return {
        sides[0].number: orders_of(known, first(len(sides)))
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
