"""The state of a checkpoint as tables: each stored input of each join, as it was after the last batch that is done.

    manifests of the batch ─► segments of each unit ─► rows, without those that were deleted or have expired

Read as files: no index is opened and nothing is written. Segments that a later batch retires stay for some
batches, so a job may run meanwhile. Cost: a pass over the segments of the tables that are asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from joinlib.model.inputs import HASH
from joinlib.model.joins import Leaf
from joinlib.model.operator import Operator
from joinlib.model.side import SideConfig
from joinlib.model.stage import AnyStage, PathStage, Pipeline, Stage
from joinlib.state import manifests
from joinlib.state.location import state_folder, unit_folder
from joinlib.state.manifest import decode
from joinlib.state.stored import Flags, Mask, matched, needed, stored

UNIT, MATCH = "unit", "matched"  # columns that are added where no column is called so


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
        names = [name for name in self.side.schema.names if name != HASH]
        bare = [name.partition(".")[2].lstrip("$") or name for name in names]
        whole = (name.replace(".", "_").replace("$", "") for name in names)
        return {b if bare.count(b) == 1 else w: name for b, w, name in zip(bare, whole, names, strict=True)}

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
    mapped = []  # all at first, since the job may run
    for unit, saved in sorted(manifests.everything(states, batch, table.stage).items()):
        folder = unit_folder(state_folder(states, table.stage), unit)
        manifest = decode(saved)
        parts = stored(folder, manifest.sides[table.side.number], table.side)
        mapped.append((unit, manifest.watermark, parts))
    for unit, watermark, parts in mapped:
        for part, flags in parts:
            yield _shown(table, unit, part, flags, needed(part, flags, table.side, watermark))


def _sides(stage: AnyStage) -> Iterator[tuple[SideConfig, str, str]]:
    """Yield the sides of a stage, each with the name of what it stores, and its input of the spec."""
    if isinstance(stage, Stage) and isinstance(stage.root, Operator):
        for operator in stage.root.operators():
            for side, child in zip(operator.sides, operator.children, strict=True):
                if side.of is None:
                    yield side, *_named(stage, child)
    if isinstance(stage, PathStage):
        for side, plan in zip(stage.sides, stage.inputs, strict=False):
            yield side, plan.source, plan.source


def _named(stage: Stage, child: Operator | Leaf) -> tuple[str, str]:
    if isinstance(child, Operator):
        return "_".join(_named(stage, one)[0] for one in child.children), ""
    plan = stage.inputs[child.input]
    return (plan.source, plan.source) if plan.upstream is None else (f"stage{plan.upstream}", "")


def _shown(table: StateTable, unit: int, batch: pa.RecordBatch, flags: Flags, alive: Mask) -> pa.RecordBatch:
    """Return the rows that live, in the columns of the table."""
    kept, own = batch.filter(pa.array(alive)), flags[alive]
    more = {UNIT: pa.array(np.full(len(own), unit, np.int32)), MATCH: pa.array(matched(own))}
    columns = [
        kept.column(table.columns[field.name]) if field.name in table.columns else more[field.name]
        for field in table.schema
    ]
    return pa.record_batch(columns, schema=table.schema)
