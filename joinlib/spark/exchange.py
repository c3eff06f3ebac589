"""What Spark shuffles between the map tasks and the units: a few wide rows, and how they are made and read.

A row is a block of one input for one unit, or a tick for one unit. Spark never sees the rows inside a block.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from joinlib import fault
from joinlib.join.stage import Pipeline
from joinlib.join.unit import Blocks
from joinlib.join.watermark import Tick
from joinlib.route.biclique import PROBE, Sent
from joinlib.route.config import InputPlan
from joinlib.route.slots import slots
from joinlib.route.split import block_schema
from joinlib.route.ways import Way, unruled
from joinlib.spark.task import state_folder, unit_folder
from joinlib.spark.wire import SCHEMA
from joinlib.state import segment
from joinlib.state.segment import Written

_BLOCK, _TICK, _IDLE, _CLOSED, _FILE, _TABLE = 0, 1, 2, 4, 8, 16
_ROLE = 32  # times the role of a block: stored and probing, or only one of them
_ROLES = 3
_RECEIPT = 128
_STAGE = 256  # times the number of the stage that the row is for
_FLAGS = SCHEMA.get_field_index("flags")


@dataclass(frozen=True)
class Spool:
    """Where map tasks write blocks as the segments that they will be: `states`/STAGE/UNIT/."""

    states: Path
    batch: int
    least_bytes: int  # smaller blocks go through Spark


class Sender:
    """Makes exchange rows.

    A large block is written once, by the map task, as the very segment that its unit will keep; the unit maps it and indexes
    it. Through Spark goes its name. So most bytes cross no process border at all, and nothing is written twice.
    """

    def __init__(
        self, pipeline: Pipeline, number: int, spool: Spool | None = None, way: Way | None = None
    ) -> None:
        """To the units of stage `number`, or of the groups behind the stages. `way`: by default rows are not counted."""
        self.number, self.stage, self.spool = number, _STAGE * number, spool
        self.slots = slots(pipeline.units)
        self.way = way or unruled(pipeline.units, pipeline.route(number))

    def split(self, number: int, sequence: int, rows: pa.RecordBatch) -> pa.RecordBatch | None:
        """Rows with their hash in front, of the input of this number, split by unit."""
        parts = list(self.way.parts(number, sequence, rows))
        if not parts:
            return None
        count = len(parts)
        sent = self._sent(number, parts)
        return pa.record_batch(
            [
                pa.array([self.slots[part.unit] for part in parts], pa.int32()),
                pa.array([number] * count, pa.int32()),
                pa.array([sequence] * count, pa.int64()),
                pa.array([0] * count, pa.int64()),
                pa.array([part.rows.num_rows for part in parts], pa.int64()),
                pa.array([flags for flags, _ in sent], pa.int32()),
                _binary([data for _, data in sent]),
            ],
            schema=SCHEMA,
        )

    def _sent(self, number: int, parts: list[Sent]) -> list[tuple[int, pa.Buffer]]:
        """Rows that probe many units are written for all of them once."""
        once: dict[int, pa.Buffer] = {}
        found = []
        for part in parts:
            if part.role == PROBE:
                if id(part.rows) not in once:
                    once[id(part.rows)] = part.rows.serialize()
                flags, data = _BLOCK, once[id(part.rows)]
            else:
                flags, data = self._send(number, part.unit, part.rows)
            found.append((self.stage | flags | _ROLE * part.role, data))
        return found

    def _send(self, number: int, unit: int, part: pa.RecordBatch) -> tuple[int, pa.Buffer]:
        if self.spool is None or part.nbytes < self.spool.least_bytes:
            return _BLOCK, part.serialize()
        folder = unit_folder(state_folder(self.spool.states, self.number), unit)
        folder.mkdir(parents=True, exist_ok=True)
        written = segment.write(folder, f"in{number}-{self.spool.batch:08d}", part)
        fault.point("spooled", self.spool.batch)
        return _FILE, pa.py_buffer(orjson.dumps(tuple(written)))

    def ticks(self, ticks: Sequence[Tick]) -> pa.RecordBatch:
        """Every tick for every unit."""
        flags = [_TICK | (_IDLE if t.idle else 0) | (_CLOSED if t.closed else 0) for t in ticks]
        return self._all((t.input, t.bad, t.highest, t.rows, f) for t, f in zip(ticks, flags, strict=True))

    def versions(self, versions: Sequence[tuple[int, int]]) -> pa.RecordBatch:
        """(number of a lookup, version of its table), for every unit."""
        return self._all((number, version, 0, 0, _TABLE) for number, version in versions)

    def _all(self, said: Iterable[tuple[int, int, int, int, int]]) -> pa.RecordBatch:
        """(input, sequence, highest, count, flags) for every unit."""
        rows = [(slot, *values, self.stage | flags) for *values, flags in said for slot in self.slots]
        numbers = [pa.array([row[at] for row in rows], SCHEMA.field(at).type) for at in range(6)]
        return pa.record_batch([*numbers, pa.nulls(len(rows), pa.binary())], schema=SCHEMA)


def _binary(values: list[pa.Buffer]) -> pa.BinaryArray:
    """One copy, where `pa.array` would make two and Python objects."""
    ends = np.cumsum([0, *(v.size for v in values)], dtype=np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))]
    )


def receive(arrived: Iterable[Sequence[Any]], inputs: Sequence[InputPlan], folder: Path) -> Blocks:
    """The blocks and ticks of one unit and batch. `arrived`: its exchange rows; `folder`: of the unit's segments."""
    schemas = [block_schema(plan) for plan in inputs]
    rows, ticks, files, versions = [], [], {}, {}
    for _, number, sequence, highest, count, flags, block in arrived:
        if flags & _TICK:
            ticks.append(Tick(number, highest, count, sequence, bool(flags & _IDLE), bool(flags & _CLOSED)))
        elif flags & _TABLE:
            versions[number] = sequence
        elif flags & _FILE:
            written = Written(*orjson.loads(block))
            segment.verify(folder, written)
            role = flags // _ROLE & _ROLES
            rows.append((number, sequence, segment.read(folder, written, schemas[number]), role))
            files[number, sequence, role] = written
        else:
            found = pa.ipc.read_record_batch(pa.py_buffer(block), schemas[number])
            rows.append((number, sequence, found, flags // _ROLE & _ROLES))
    return Blocks(rows, ticks, files, versions)


def receive_partials(
    arrived: Iterable[Sequence[Any]], schema: pa.Schema
) -> tuple[list[tuple[int, pa.RecordBatch]], list[Tick]]:
    """(unit that made them, partials) of one unit of groups and batch, and how far time has come."""
    parts, ticks = [], []
    for _, number, sequence, highest, count, flags, block in arrived:
        if flags & _TICK:
            ticks.append(Tick(number, highest, count, closed=bool(flags & _CLOSED)))
        else:
            parts.append((sequence, pa.ipc.read_record_batch(pa.py_buffer(block), schema)))
    return parts, ticks


def apart(arrived: pa.RecordBatch, stage: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Exchange rows of this stage, and those that only pass it."""
    own = pa.array(arrived.column(_FLAGS).to_numpy() // _STAGE == stage)
    return arrived.filter(own), arrived.filter(pc.invert(own))


def receipt_row(slot: int, stages: int, receipt: str) -> pa.RecordBatch:
    """A receipt on its way to the end: no stage is the one that it is for."""
    values = (slot, 0, 0, 0, 0, _RECEIPT | _STAGE * stages, receipt.encode())
    return pa.record_batch([pa.array([v], f.type) for v, f in zip(values, SCHEMA, strict=True)], SCHEMA)


def receipts_of(rows: pa.RecordBatch) -> list[str]:
    """The receipts that have passed all stages."""
    assert (rows.column(_FLAGS).to_numpy() & _RECEIPT).all()
    return [bytes(receipt).decode() for receipt in rows.column(_FLAGS + 1).to_pylist()]
