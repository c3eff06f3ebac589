"""The state of a checkpoint as tables: each stored input of each join, as it was after the last batch that is done.

    manifests of the batch ─► segments of each unit ─► rows, without those that were deleted or have expired

Read as files: no index is opened and nothing is written. Segments that a later batch retires stay for some
batches, so a job may run meanwhile. Cost: a pass over the segments of the tables that are asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joinlib.index.kernels import DEAD, DYING, MATCHED
from joinlib.model.inputs import HASH
from joinlib.model.joins import Leaf
from joinlib.model.operator import Operator
from joinlib.model.side import SideConfig
from joinlib.model.stage import AnyStage, PathStage, Pipeline, Stage
from joinlib.model.watermark import horizon
from joinlib.state import manifests, segment
from joinlib.state.location import state_folder, unit_folder
from joinlib.state.manifest import Manifest, Segment, SideManifest, decode
from joinlib.state.run import time_values

UNIT, MATCH = "unit", "matched"  # columns that are added where no column is called so
Flags = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class StateTable:
    """The rows that one side stores."""

    name: str
    source: str  # the input of the spec; empty for rows that were joined before
    stage: int
    side: SideConfig

    @property
    def columns(self) -> dict[str, str]:
        """The stored columns by their names in the table: bare where that is unique."""
        stored = [name for name in self.side.schema.names if name != HASH]
        bare = [name.partition(".")[2].lstrip("$") or name for name in stored]
        whole = (name.replace(".", "_").replace("$", "") for name in stored)
        return {b if bare.count(b) == 1 else w: name for b, w, name in zip(bare, whole, stored, strict=True)}

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        fields = [self.side.schema.field(name).with_name(own) for own, name in self.columns.items()]
        more = [(UNIT, pa.int32()), *([(MATCH, pa.bool_())] if self.side.marked else [])]
        return pa.schema([*fields, *(pa.field(n, kind) for n, kind in more if n not in self.columns)])


def tables(pipeline: Pipeline) -> list[StateTable]:
    """Return the tables of a query's state; groups and window functions have none."""
    found: list[StateTable] = []
    for number, stage in enumerate(pipeline.stages):
        for side, name, source in _sides(stage):
            taken = [table.name for table in found]
            same = sum(
                one == name or (one.startswith(f"{name}_") and one[len(name) + 1 :].isdigit())
                for one in taken
            )
            found.append(StateTable(f"{name}_{same + 1}" if same else name, source, number, side))
    return found


def rows(states: Path, batch: int, table: StateTable) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table after a batch.

    Raises:
        StateError: A manifest or a segment is missing or damaged.
    """
    mapped = []  # all at first: a file that is mapped stays readable when a later batch has deleted it
    for unit, saved in sorted(manifests.everything(states, batch, table.stage).items()):
        folder = unit_folder(state_folder(states, table.stage), unit)
        manifest = decode(saved)
        side = manifest.sides[table.side.number]
        marks = _flags(folder, side, table.side)
        for run in side.runs:
            parts = [_read(folder, one, table.side.schema) for one in run.segments]
            mapped.append((unit, manifest, parts, marks[run.number]))
    for unit, manifest, parts, flags in mapped:
        first = 0
        for part in parts:
            yield _shown(table, unit, manifest, part, flags[first : first + part.num_rows])
            first += part.num_rows


def _sides(stage: AnyStage) -> Iterator[tuple[SideConfig, str, str]]:
    """Yield the sides of a stage, each with the name of what it stores, and its input of the spec."""
    if isinstance(stage, Stage) and isinstance(stage.root, Operator):
        for operator in stage.root.operators():
            for side, child in zip(operator.sides, operator.children, strict=True):
                yield side, *_named(stage, child)
    if isinstance(stage, PathStage):
        for side, plan in zip(stage.sides, stage.inputs, strict=False):
            yield side, plan.source, plan.source


def _named(stage: Stage, child: Operator | Leaf) -> tuple[str, str]:
    if isinstance(child, Operator):
        return "_".join(_named(stage, one)[0] for one in child.children), ""
    plan = stage.inputs[child.input]
    return (plan.source, plan.source) if plan.upstream is None else (f"stage{plan.upstream}", "")


def _flags(folder: Path, side: SideManifest, config: SideConfig) -> dict[int, Flags]:
    """Return the flags of the rows of each run: the newest entry of the log counts."""
    found = {run.number: np.zeros(run.rows, np.uint8) for run in side.runs}
    kinds = [("run", pa.int32()), ("row", pa.int32()), *([("flags", pa.uint8())] if config.mutable else [])]
    for one in side.marks:
        runs, numbers, *given = (c.to_numpy() for c in _read(folder, one, pa.schema(kinds)).columns)
        flags = given[0] if given else np.full(len(runs), MATCHED, np.uint8)
        for run in found.keys() & set(runs.tolist()):
            here = runs == run
            found[run][numbers[here]] = flags[here]
    return found


def _read(folder: Path, one: Segment, schema: pa.Schema) -> pa.RecordBatch:
    segment.verify(folder, one)
    return segment.read(folder, one, schema)


def _shown(
    table: StateTable, unit: int, manifest: Manifest, batch: pa.RecordBatch, flags: Flags
) -> pa.RecordBatch:
    """Return the rows that live, in the columns of the table."""
    side = table.side
    alive = flags & (DEAD | DYING) == 0
    if side.time is not None:
        alive &= time_values(batch.column(side.time)) > horizon(manifest.watermark, side.hold_us)
    kept, own = batch.filter(pa.array(alive)), flags[alive]
    more = {UNIT: pa.array(np.full(len(own), unit, np.int32)), MATCH: pa.array(own & MATCHED != 0)}
    columns = [
        kept.column(table.columns[field.name]) if field.name in table.columns else more[field.name]
        for field in table.schema
    ]
    return pa.record_batch(columns, schema=table.schema)
