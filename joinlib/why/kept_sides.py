"""Rows that joins store: those of inputs, and those that were joined before."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from joinlib.model.bounds import signed
from joinlib.model.inputs import HASH
from joinlib.model.joins import Leaf
from joinlib.model.operator import Operator
from joinlib.model.side import SideConfig
from joinlib.model.stage import AnyStage, PathStage, Stage
from joinlib.state.manifest import Manifest
from joinlib.state.stored import Flags, Mask, matched, needed, stored
from joinlib.why.stored import NamedStore, name_of, names

MATCH = "matched"  # a column that is added where no column is called so


@dataclass(frozen=True)
class KeptSide:
    """The rows that one side stores."""

    side: SideConfig

    @property
    def kept(self) -> str:
        hold = self.side.hold_us
        return signed(hold) + (" of event time" if hold is not None else "")

    @property
    def columns(self) -> dict[str, str]:
        """The stored columns by their names in the table: bare where that is unique."""
        stored = [name for name in self.side.schema.names if name != HASH]
        bare = [name.partition(".")[2].lstrip("$") or name for name in stored]
        whole = (name.replace(".", "_").replace("$", "") for name in stored)
        return dict(zip(names([*zip(bare, whole, strict=True)]), stored, strict=True))

    @property
    def tells_matches(self) -> bool:
        """Whether there is a column that says which rows have found a partner."""
        return self.side.marked and MATCH not in map(str.lower, self.columns)

    @property
    def schema(self) -> pa.Schema:
        fields = [self.side.schema.field(name).with_name(own) for own, name in self.columns.items()]
        return pa.schema([*fields, *([(MATCH, pa.bool_())] if self.tells_matches else [])])

    def mapped(self, folder: Path, manifest: Manifest) -> Iterator[pa.RecordBatch]:
        parts = stored(folder, manifest.sides[self.side.number], self.side)
        return (
            self._shown(part, flags, needed(part, flags, self.side, manifest.watermark))
            for part, flags in parts
        )

    def _shown(self, batch: pa.RecordBatch, flags: Flags, alive: Mask) -> pa.RecordBatch:
        """Return the rows that live, in the columns of the table."""
        kept = batch.filter(pa.array(alive))
        more = [pa.array(matched(flags[alive]))] if self.tells_matches else []
        return pa.record_batch([*(kept.column(n) for n in self.columns.values()), *more], self.schema)


def kept_sides(stage: AnyStage) -> Iterator[NamedStore]:
    """Yield what the joins of a stage store."""
    if isinstance(stage, Stage) and isinstance(stage.root, Operator):
        for operator in stage.root.operators():
            for side, child in zip(operator.sides, operator.children, strict=True):
                if side.of is None:
                    yield NamedStore(*_named(stage, child), KeptSide(side))
    if isinstance(stage, PathStage):
        for side, plan in zip(stage.sides, stage.inputs, strict=False):
            yield NamedStore(plan.source, plan.source, KeptSide(side))


def _named(stage: Stage, child: Operator | Leaf) -> tuple[str, str]:
    if isinstance(child, Operator):
        return "_".join(_named(stage, one)[0] for one in child.children), ""
    return name_of(stage.inputs[child.input])
