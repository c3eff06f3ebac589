"""Runs a query of several stages as executors would: the rows of a stage become blocks of the next, in the same batch."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from joinlib.model.stage import HopStage, PathStage, Pipeline, Stage
from joinlib.model.time import ALWAYS, NEVER
from joinlib.model.tuning import Tuning
from joinlib.model.watermark import Tick
from tests.laws.harness import CALM, SMALL, Batch, Flow, Running, Trouble
from tests.laws.paths import HopFlow, PathFlow


class Chain(Running):
    """A running query. `flows[n]` is stage n."""

    def __init__(
        self,
        pipeline: Pipeline,
        folder: Path,
        tuning: Tuning = SMALL,
        trouble: Trouble = CALM,
        spooled_rows: int = 1000,
    ) -> None:
        self.flows: list[Flow] = []
        for n, stage in enumerate(pipeline.stages):
            given = folder / str(n), tuning, trouble, spooled_rows
            if isinstance(stage, HopStage):
                store = self.flows[pipeline.store_of(n)]
                assert isinstance(store, PathFlow)
                self.flows.append(HopFlow(store, stage, *given))
            else:
                self.flows.append((PathFlow if isinstance(stage, PathStage) else Flow)(stage, *given))

    def batch(self, rows: Batch, closed: bool = False) -> list[tuple[object, ...]]:
        """One batch through all stages."""
        known, out = dict(rows), []
        for number, flow in enumerate(self.flows):
            out = flow.batch(known, closed, ticks=list(self._ticks(flow.stage)))
            if flow.routes:
                tuples = {route: [t[1:] for t in out if t[0] == route] for route in flow.routes}
                known |= {f"$stage{number}/{r}": made(t, flow.routes[r]) for r, t in tuples.items()}
            else:
                known[f"$stage{number}"] = made(out, flow.stage.emitted)
        return out

    def _ticks(self, stage: Stage) -> list[Tick]:
        """What earlier stages say of time: their watermarks after this batch."""
        said = []
        for plan in stage.inputs:
            if plan.upstream is not None and plan.time is not None:
                (mark,) = {m.watermark for m in self.flows[plan.upstream].manifests}
                said.append(Tick(plan.number, NEVER if mark == ALWAYS else mark))
        return said

    @property
    def stored(self) -> list[int]:
        """Rows that each stage holds."""
        return [
            sum(run.rows for m in f.manifests for side in m.sides for run in side.runs) for f in self.flows
        ]


def made(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """These rows as a record batch."""
    columns = list(zip(*rows)) or [()] * len(schema)
    return pa.record_batch([_array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)


def _array(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    floats = pa.types.is_floating(kind)
    return pa.array([float("nan") if floats and v == "NaN" else v for v in values], kind)
