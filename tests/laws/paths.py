"""Runs the stages of a path join as executors would: what a unit finds is tagged with its route."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from joinlib.engine.frames import project
from joinlib.join.hop import HopUnit
from joinlib.join.order.policy import OrderPolicy
from joinlib.join.order.routes import Routes
from joinlib.join.paths import PathUnit
from joinlib.join.rows import Tuples
from joinlib.model.inputs import InputPlan
from joinlib.model.paths import Leg
from joinlib.model.stage import HopStage, PathStage
from joinlib.model.watermark import Tick
from joinlib.state import unit as units
from joinlib.state.manifest import Manifest, decode
from joinlib.state.unit import Unit, sweep
from joinlib.worker import current
from tests.laws.harness import Batch, Block, Flow, Work, plain, state_of

Routed = Iterable[tuple[int, Tuples]]


class PathFlow(Flow):
    """Where the rows of a path join come in."""

    stage: PathStage
    orders: Sequence[tuple[int, ...]] = ()  # routes of each input, by batch; then any

    def __init__(self, stage: PathStage, *given: Any) -> None:
        super().__init__(stage, *given)  # type: ignore[arg-type]
        self.routes = schemas(stage.legs)
        self._last: dict[
            int, tuple[bytes, list[Block], Sequence[Tick]]
        ] = {}  # what an attempt was given, by unit

    def _work(self, unit: Unit, manifest: Manifest) -> Work:
        return PathUnit(self.stage, self.tuning, unit, self._otherwise(manifest))

    def _otherwise(self, manifest: Manifest) -> Manifest:
        """The manifest, with other routes than those that were chosen: others in every batch."""
        stage, draw = self.stage, Random(self.done)
        drawn = [draw.choice(stage.routes(one)) for one in range(stage.graph.inputs)]
        taken = self.orders[self.done] if self.done < len(self.orders) else drawn
        orders = [[probe.arrangement for probe in stage.paths[route].probes] for route in taken]
        known = manifest.probes or (Routes.of(stage, (), OrderPolicy(), list).orders.plain(),)
        return replace(manifest, probes=tuple({**probes, "orders": orders} for probes in known))

    def _size(self, found: Any) -> int:
        return len(found[1])

    def _shown(self, found: Routed) -> list[tuple[object, ...]]:
        return tagged(found, self.routes)

    def attempt(
        self, u: int, saved: bytes, data: list[Block], ticks: Sequence[Tick], frames: int | None = None
    ) -> tuple[list[tuple[object, ...]], bytes]:
        self._last[u] = saved, data, ticks
        return super().attempt(u, saved, data, ticks, frames)

    def again(self, u: int) -> None:
        """The last batch once more, while others already read what it has made."""
        self.done -= 1
        _, manifest = self.attempt(u, *self._last[u])
        self.done += 1
        assert state_of(manifest) == state_of(self.units[u]), "two attempts of one batch differ"


class HopFlow(Flow):
    """A later level of a path join."""

    stage: HopStage

    def __init__(self, store: PathFlow, stage: HopStage, *given: Any) -> None:
        super().__init__(stage, *given)  # type: ignore[arg-type]
        self.store = store
        self.routes = {} if stage.last else schemas(stage.legs)

    def _rows(self, plan: InputPlan, rows: Batch) -> pa.RecordBatch | None:
        return rows.get(f"{plan.source}/{self.stage.legs[plan.number].route}")

    def _indexes(self, u: int) -> Path:
        return self.store._indexes(u)

    @contextmanager
    def _held(self, u: int, manifest: Manifest) -> Iterator[tuple[Unit, Work]]:
        store, asked = self.store, decode(self.store.units[u])
        assert asked.batch == self.done
        if self.done in self.trouble.late:
            current().close()
            store.again(u)
        if self._segments(u).exists():
            sweep(self._segments(u), manifest)
        before = store.files(u)
        given = store.stage.skip_bits, store.sides, self.tuning, asked
        with units.hold(store._segments(u), store._indexes(u), *given, swept=False) as unit:
            yield unit, HopUnit(self.stage, store.stage, unit.sides, self.tuning, manifest, asked)
        assert store.files(u) == before, "it only reads"

    def _size(self, found: Any) -> int:
        return len(found[1])

    def _shown(self, found: Routed) -> list[tuple[object, ...]]:
        if not self.stage.last:
            return tagged(found, self.routes)
        whole = (tuples for _, tuples in found)
        batches = [*project(whole, self.stage.select, self.stage.emitted, 1 << 25)]
        return [tuple(map(plain, row)) for batch in batches for row in values(batch)]


def schemas(legs: Sequence[Leg]) -> dict[int, pa.Schema]:
    """The columns of what leaves by each route."""
    return {leg.route: leg.schema for leg in legs}


def tagged(found: Routed, routes: dict[int, pa.Schema]) -> list[tuple[object, ...]]:
    """Each tuple behind its route."""
    batches = [(route, tuples.batch(routes[route])) for route, tuples in found]
    return [(route, *map(plain, row)) for route, batch in batches for row in values(batch)]


def values(batch: pa.RecordBatch) -> Iterator[tuple[object, ...]]:
    """The rows of a batch; one without columns has rows, too."""
    if not batch.num_columns:
        return iter([()] * batch.num_rows)
    return zip(*(c.to_pylist() for c in batch.columns), strict=True)
