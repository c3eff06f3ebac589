"""One batch of one unit, as a Spark task runs it: manifest in, frames or a receipt out, manifest saved."""

import os
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pandas as pd
import pyarrow as pa

from joinlib import fault
from joinlib.errors import StateError
from joinlib.join.config import Leaf, Lookup
from joinlib.join.layout import Operator, layout
from joinlib.join.stage import Stage
from joinlib.join.unit import Blocks, UnitJoin
from joinlib.lookup.enrich import Finder, enriched, finder
from joinlib.route.slots import slots
from joinlib.spark.emit import frames, open_sink, project, to_pandas
from joinlib.spark.exchange import receive
from joinlib.spark.receipt import Receipt
from joinlib.spark.task import JoinTask, local_folder, unit_folder
from joinlib.state.manifest import Manifest, decode, empty
from joinlib.state.unit import Unit, hold, live_segments


@cache
def root_of(stage: Stage, hash_bits: int) -> Operator | Leaf:
    """The stage's operators; a leaf where nothing is joined but tables are looked up."""
    if isinstance(stage.tree, Leaf):
        return stage.tree
    return layout(stage.tree, stage.inputs, stage.above, hash_bits)


class UnitTask:
    """One batch of one unit. `saved`: its manifest after the batch before, None at the very first."""

    def __init__(self, task: JoinTask, slot: int, batch: int, attempt: int, saved: bytes | None) -> None:
        self.task, self.stage, self.batch, self.attempt = task, task.stage, batch, attempt
        self.started = time.perf_counter()
        self.unit = slots(self.stage.units).index(slot)
        self.root = root_of(self.stage, task.tuning.hash_bits)
        operators = () if isinstance(self.root, Leaf) else self.root.operators()
        self.sides = tuple(side for op in operators for side in op.sides)
        self.before = decode(saved) if saved else empty(len(self.sides), len(self.stage.inputs))
        if self.before.batch >= batch:
            raise StateError(
                f"unit {self.unit} is at batch {self.before.batch}, Spark at {batch}: the checkpoint was mixed up with another"
            )

    def run(self, rows: Iterator[pd.DataFrame], save: Callable[[bytes], None]) -> Iterator[pd.DataFrame]:
        """Joins; saves the manifest once every frame has been taken."""
        stage, tuning = self.stage, self.task.tuning
        segments = unit_folder(self.task.state, self.unit)
        indexes = local_folder(self.task.state) / segments.name
        blocks = receive(rows, stage.inputs, segments)
        with hold(segments, indexes, stage.units.bit_length() - 1, self.sides, tuning, self.before) as held:
            join = UnitJoin(
                self.root, stage.inputs, stage.timed, stage.final_close, tuning, held, self.before
            )
            found = enriched(join.run(self.batch, blocks), self._lookups(blocks, indexes), self.reads)
            result = frames(project(found, stage.select, stage.schema), tuning.frame_rows)
            if self.task.emit.kind == "rows":
                yield from (to_pandas(frame) for frame in result)
            else:
                yield self._receipt(result, join, held)
            fault.point("joined", self.batch)
            save(join.manifest.encode())

    def _lookups(self, blocks: Blocks, folder: Path) -> list[tuple[Lookup, Finder]]:
        units, bits = self.stage.units, self.task.tuning.hash_bits
        return [(t.lookup, finder(t, blocks.versions, folder, units, bits)) for t in self.task.tables]

    @property
    def reads(self) -> frozenset[str]:
        """All columns that lookups and select list read."""
        return frozenset(c for e in self.stage.above for c in e.columns)

    def _receipt(self, result: Iterator[pa.RecordBatch], join: UnitJoin, held: Unit) -> pd.DataFrame:
        sink = open_sink(self.task.emit, self.unit, self.batch, self.attempt, self.stage.schema)
        rows_out = 0
        for frame in result:
            sink.write(frame)
            rows_out += frame.num_rows
        files, block = sink.close()
        receipt = self._figures(join.manifest, held, rows_out, files)
        return pd.DataFrame({"receipt": [receipt.encode()], "block": [block]})

    def _figures(self, after: Manifest, held: Unit, rows_out: int, files: tuple[str, ...]) -> Receipt:
        before, alive = self.before, live_segments(after)
        return Receipt(
            unit=self.unit,
            batch=self.batch,
            rows_in=tuple(b - a for a, b in zip(before.rows, after.rows, strict=True)),
            late=tuple(b - a for a, b in zip(before.late, after.late, strict=True)),
            late_total=after.late,
            rows_out=rows_out,
            files=files,
            state_rows=sum(s.rows for s in after.sides),
            state_bytes=sum(s.bytes for s in alive),
            retired_bytes=sum(size for _, _, size in after.retired),
            index_bytes=held.index_bytes,
            segments=len(alive),
            watermark=after.watermark,
            highest=after.highest,
            seconds=time.perf_counter() - self.started,
            executor=os.environ.get("SPARK_EXECUTOR_ID", ""),
        )
