"""The state of a checkpoint as tables, as it was after the last batch that is done.

    rows of a join            each stored input of each join (`kept_sides`)
    groups                    a row for each, with its aggregates as they stand (`kept_groups`)
    rows of window functions  those that are stored, of as-of joins those of each side; what partitions have been
                              counted and summed to (`kept_over`)

    manifests of the batch ─► segments of each unit ─► rows, without those that were deleted or have expired

Read as files: no index is opened and nothing is written. Segments that a later batch retires stay for some
batches, so a job may run meanwhile. Cost: a pass over the segments of the tables that are asked for; the groups and
the window functions' rows of one unit are in memory at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from joinlib.model.stage import AnyStage, GroupStage, OverStage, Pipeline
from joinlib.plan.explain.words import spoken
from joinlib.state import manifests
from joinlib.state.location import state_folder, unit_folder
from joinlib.state.manifest import decode
from joinlib.why.kept_groups import kept_groups
from joinlib.why.kept_over import kept_over
from joinlib.why.kept_sides import kept_sides
from joinlib.why.stored import NamedStore, Store, names, readable

UNIT = "unit"  # a column that is added where no column is called so


@dataclass(frozen=True)
class StateTable:
    """The rows that one store of a stage has, over all units."""

    name: str
    source: str  # the input of the spec; empty for rows that were made before
    stage: int
    store: Store

    @property
    def tells_unit(self) -> bool:
        """Whether there is a column that says where a row lies."""
        return UNIT not in map(str.lower, self.store.schema.names)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        fields = [field.with_type(readable(field.type)) for field in self.store.schema]
        return pa.schema([*fields, *([(UNIT, pa.int32())] if self.tells_unit else [])])


def tables(pipeline: Pipeline) -> list[StateTable]:
    """Return the tables of a query's state; none if it stores nothing."""
    told = spoken(pipeline).stages
    found = [
        (number, one) for number, stage in enumerate(pipeline.stages) for one in _stores(stage, told[number])
    ]
    called = names([(one.name, one.name) for _, one in found])
    return [
        StateTable(name, one.source, number, one.store)
        for name, (number, one) in zip(called, found, strict=True)
    ]


def rows(states: Path, batch: int, table: StateTable) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table after a batch.

    Raises:
        StateError: A manifest or a segment is missing or damaged.
    """
    kinds, mapped = table.schema.types, []  # all are mapped at first, since the job may run
    for unit, saved in sorted(manifests.everything(states, batch, table.stage).items()):
        folder = unit_folder(state_folder(states, table.stage), unit)
        mapped.append((unit, table.store.mapped(folder, decode(saved))))
    for unit, parts in mapped:
        for part in parts:
            more = [pa.array(np.full(part.num_rows, unit, np.int32))] if table.tells_unit else []
            yield pa.record_batch(
                [column.cast(kind) for column, kind in zip([*part.columns, *more], kinds, strict=True)],
                table.schema,
            )


def _stores(stage: AnyStage, told: AnyStage) -> Iterator[NamedStore]:
    """Yield what a stage stores. told: the stage in the words of the text."""
    if isinstance(stage, GroupStage):
        assert isinstance(told, GroupStage)
        yield kept_groups(stage, told)
    elif isinstance(stage, OverStage):
        assert isinstance(told, OverStage)
        yield from kept_over(stage, told)
    else:
        yield from kept_sides(stage)
