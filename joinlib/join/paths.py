"""Joins one batch of one unit where the rows of a path join come in: blocks in, tuples of the first legs out.

    blocks ─► what the last batch has left is tidied ─► all sides take their rows ─► commit ─► first legs

The state is complete before the first probe: which version a probe sees is in the data (`state.side`).
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from joinlib import fault
from joinlib.join.arrived import Arrivals, Blocks
from joinlib.join.hop import walked
from joinlib.join.order.policy import policy_of
from joinlib.join.order.routes import Hops, Routes
from joinlib.join.rows import Tuples
from joinlib.join.settled import settled
from joinlib.model.inputs import KeepLate
from joinlib.model.stage import PathStage
from joinlib.model.tuning import Tuning
from joinlib.state.manifest import Manifest
from joinlib.state.side import Arrival
from joinlib.state.unit import Unit


class PathUnit:
    """One batch of one unit of a PathStage.

    `manifest` is the state before the batch until `run` is exhausted, then the state after it.
    hops: returns the manifests of the units of later levels that have the same number, after the batch before.
    late: takes late rows.
    """

    def __init__(
        self,
        stage: PathStage,
        tuning: Tuning,
        unit: Unit,
        manifest: Manifest,
        hops: Hops = list,
        late: KeepLate | None = None,
    ) -> None:
        self.stage, self.tuning, self.unit, self.manifest, self._late = stage, tuning, unit, manifest, late
        self.routes = Routes.of(stage, manifest.probes, policy_of(tuning), hops)
        self.closed = False  # whether all inputs are closed in this batch
        self.commit_seconds = 0.0
        self.deleted = [0] * len(stage.inputs)
        self.unknown = [0] * len(stage.inputs)

    def run(self, batch: int, blocks: Blocks) -> Iterator[tuple[int, Tuples]]:
        """Yield what the first legs find, each with its route."""
        known, stage = self.manifest, self.stage
        came = Arrivals(
            stage.inputs,
            known,
            blocks,
            timed=stage.timed,
            final_close=False,
            waiting=False,
            late=self._late,
        )
        self.closed, self.deleted, self.unknown = came.closed, came.deleted, came.unknown
        started = time.perf_counter()
        self.unit.tidy(batch, known.watermark)
        fault.point("tidied", batch)
        parts = [self._stored(batch, number, own, came) for number, own in enumerate(came.parts)]
        committed = self.unit.commit(known, batch, blocks.written.values())
        self.commit_seconds = time.perf_counter() - started
        fault.point("arranged", batch)
        routes, watch = self.routes, self.routes.watch()
        for origin, home in enumerate(stage.homes):
            leg = stage.legs[routes.taken(origin)]
            for part in parts[home]:
                for found in walked(leg, self.unit.sides, self.tuning, origin, part.rows, watch):
                    yield leg.route, found
        if any(parts[home] for home in stage.homes):
            self.routes = routes.after(watch, self.unit.sides)
        self.manifest = replace(came.counted(committed), probes=self.routes.plain())

    @property
    def chosen(self) -> tuple[dict[str, Any], ...]:
        """The figures of the routes, if some were chosen after this batch."""
        return self.routes.chosen

    def _stored(self, batch: int, number: int, parts: list[Arrival], came: Arrivals) -> list[Arrival]:
        """Store the rows of an input if it is stored; return those that are new in it."""
        plan = self.stage.inputs[number]
        if plan.stored:
            side = self.unit.sides[number]
            if plan.changes:
                parts = settled(parts, side, came.origin(plan))
            for part in parts:
                side.insert(batch, part)
        return parts
