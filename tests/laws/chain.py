"""Runs a query of several stages as executors would: the rows of a stage become blocks of the next, in the same batch."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from joinlib.model.stage import Pipeline, Stage
from joinlib.model.time import ALWAYS, NEVER
from joinlib.model.tuning import Tuning
from joinlib.model.watermark import Tick
from tests.laws.harness import CALM, SMALL, Batch, Flow, Running, Trouble


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
        self.flows = [
            Flow(stage, folder / str(n), tuning, trouble, spooled_rows)
            for n, stage in enumerate(pipeline.stages)
        ]

    def batch(self, rows: Batch, closed: bool = False) -> list[tuple[object, ...]]:
        """One batch through all stages."""
        known, out = dict(rows), []
        for number, flow in enumerate(self.flows):
            out = flow.batch(known, closed, ticks=list(self._ticks(flow.stage)))
            known[f"$stage{number}"] = _rows(out, flow.stage)
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


def _rows(out: list[tuple[object, ...]], stage: Stage) -> pa.RecordBatch:
    columns = list(zip(*out)) or [()] * len(stage.emitted)
    return pa.record_batch(
        [_array(c, f.type) for c, f in zip(columns, stage.emitted, strict=True)], stage.emitted
    )


def _array(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    floats = pa.types.is_floating(kind)
    return pa.array([float("nan") if floats and v == "NaN" else v for v in values], kind)
