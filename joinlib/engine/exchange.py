"""Makes and reads exchange rows (`wire`): few and wide, each with a block of rows for one unit."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from joinlib import fault
from joinlib.engine.wire import BLOCK, FILE, LETTERS, RECEIPT, RULE, SCHEMA, TABLE, TICK, ExchangeRow
from joinlib.join.arrived import Blocks
from joinlib.model.inputs import InputPlan
from joinlib.model.letters import LETTER
from joinlib.model.stage import Pipeline
from joinlib.model.watermark import Tick
from joinlib.route.biclique import PROBE, Sent
from joinlib.route.routers import Router, default_router
from joinlib.route.slots import slots
from joinlib.route.split import block_schema
from joinlib.state import segment
from joinlib.state.location import state_folder, unit_folder
from joinlib.state.segment import Written

_ALIGNED = (
    8  # bytes, at which Arrow's arrays begin; a block does not where one of another length is before it
)
# Bytes of a block from which it is used where it lies. A unit keeps the rows of small segments in memory, and would keep
# with them all that lies around them: a file of the rows of all units.
_LARGE = 1 << 16


@dataclass(frozen=True)
class Spool:
    """The folder where map tasks write large blocks as segments of the state: `states`/STAGE/UNIT/."""

    states: Path
    batch: int
    least_bytes: int  # smaller blocks go through Spark


class Sender:
    """Makes exchange rows.

    A large block is written once, by the map task, as the very segment that its unit will keep; the unit
    maps and indexes it. Only its name goes through Spark. So most bytes cross no process border, and
    nothing is written twice.
    """

    def __init__(
        self, pipeline: Pipeline, number: int, spool: Spool | None = None, way: Router | None = None
    ) -> None:
        """Send to the units of stage `number`.

        `way` routes rows to units; by default, without counting them.
        """
        self.number, self.spool = number, spool
        self.slots = slots(pipeline.units)
        self.way = way or default_router(pipeline.units, pipeline.stages[number].route)

    def split(self, number: int, sequence: int, rows: pa.RecordBatch) -> pa.RecordBatch | None:
        """Split rows of input `number` by unit. Returns exchange rows, or None if there are no rows.

        `rows` are prepared: their first column is the hash. `sequence` orders the blocks of an input.
        """
        parts = list(self.way.parts(number, sequence, rows))
        if not parts:
            return None
        sent = self._sent(number, parts)
        columns = {
            "slot": [self.slots[part.unit] for part in parts],
            "kind": [kind for kind, _ in sent],
            "role": [part.role for part in parts],
            "rows": [part.rows.num_rows for part in parts],
        }
        same = {"stage": self.number, "input": number, "sequence": sequence}
        return _batch(columns, same, _binary([data for _, data in sent]))

    def _sent(self, number: int, parts: list[Sent]) -> list[tuple[int, pa.Buffer]]:
        """Return the kind and the content of each part's exchange row.

        Rows that probe many units are serialized once for all of them.
        """
        once: dict[int, pa.Buffer] = {}
        found = []
        for part in parts:
            if part.role == PROBE:
                if id(part.rows) not in once:
                    once[id(part.rows)] = part.rows.serialize()
                found.append((BLOCK, once[id(part.rows)]))
            else:
                found.append(self._send(number, part.unit, part.rows))
        return found

    def _send(self, number: int, unit: int, part: pa.RecordBatch) -> tuple[int, pa.Buffer]:
        if self.spool is None or part.nbytes < self.spool.least_bytes:
            return BLOCK, part.serialize()
        folder = unit_folder(state_folder(self.spool.states, self.number), unit)
        folder.mkdir(parents=True, exist_ok=True)
        written = segment.write(folder, f"in{number}-{self.spool.batch:08d}", part)
        fault.point("spooled", self.spool.batch)
        return FILE, pa.py_buffer(orjson.dumps(tuple(written)))

    def ticks(self, ticks: Sequence[Tick]) -> pa.RecordBatch:
        """Return every tick for every unit, as exchange rows."""
        return exchange_batch(
            ExchangeRow(
                slot,
                self.number,
                TICK,
                t.input,
                rows=t.rows,
                highest=t.highest,
                bad=t.bad,
                idle=t.idle,
                closed=t.closed,
            )
            for t in ticks
            for slot in self.slots
        )

    def versions(self, versions: Sequence[tuple[int, int]]) -> pa.RecordBatch:
        """Return table versions for every unit, as exchange rows.

        `versions` holds pairs (number of a lookup, version of its table).
        """
        return exchange_batch(
            ExchangeRow(slot, self.number, TABLE, number, version=version)
            for number, version in versions
            for slot in self.slots
        )

    def rule(self, later: int, rule: Mapping[str, Any]) -> pa.RecordBatch:
        """Return the rule by which rows go on to stage `later`, for every unit, as exchange rows."""
        block = orjson.dumps(rule)
        return exchange_batch(ExchangeRow(slot, self.number, RULE, later, block=block) for slot in self.slots)


def exchange_batch(rows: Iterable[ExchangeRow]) -> pa.RecordBatch:
    """Return exchange rows as a record batch."""
    columns = list(zip(*rows, strict=True))
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def _batch(
    columns: Mapping[str, list[int]], same: Mapping[str, int], blocks: pa.BinaryArray
) -> pa.RecordBatch:
    """Return exchange rows of blocks as a record batch.

    `columns` holds a value per row, `same` one value for all rows; columns in neither are 0.
    """
    count = len(blocks)
    made = [
        pa.array(columns[f.name], f.type)
        if f.name in columns
        else pa.repeat(pa.scalar(same.get(f.name, 0), pa.int64()).cast(f.type), count)
        for f in list(SCHEMA)[:-1]
    ]
    return pa.record_batch([*made, blocks], schema=SCHEMA)


def _binary(values: list[pa.Buffer]) -> pa.BinaryArray:
    """Join buffers into a binary array with one copy; `pa.array` would make two, and Python objects."""
    ends = np.cumsum([0, *(v.size for v in values)], dtype=np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))]
    )


def receive(arrived: Iterable[Sequence[Any]], inputs: Sequence[InputPlan], folder: Path) -> Blocks:
    """Decode the exchange rows of one unit and batch into blocks and ticks.

    Args:
        arrived: The exchange rows, as tuples in the order of `wire.SCHEMA`.
        inputs: The plans of the stage's inputs, by number.
        folder: The folder of the unit's segments.

    Raises:
        StateError: A segment that a row names is missing or damaged.
    """
    schemas = [block_schema(plan) for plan in inputs]
    rows, ticks, files, versions = [], [], {}, {}
    for row in map(ExchangeRow._make, arrived):
        key = row.input, row.sequence, row.role
        if row.kind == TICK:
            ticks.append(_tick(row))
        elif row.kind == TABLE:
            versions[row.input] = row.version
        elif row.kind == FILE:
            assert row.block is not None
            files[key] = written = Written(*orjson.loads(memoryview(row.block)))
            segment.verify(folder, written)
            block = segment.read(folder, written, schemas[row.input])
            rows.append((row.input, row.sequence, block, row.role))
        else:
            rows.append((row.input, row.sequence, _block(row, schemas[row.input]), row.role))
    return Blocks(rows, ticks, files, versions)


def receive_partials(
    arrived: Iterable[Sequence[Any]], schemas: Sequence[pa.Schema]
) -> tuple[list[tuple[int, int, pa.RecordBatch]], list[Tick]]:
    """Decode the exchange rows of one unit of groups and batch.

    schemas: that of partials, and those of the bags.
    Returns the blocks, each with the partition that made it and its position among the schemas, and the ticks.
    """
    parts, ticks = [], []
    for row in map(ExchangeRow._make, arrived):
        if row.kind == TICK:
            ticks.append(_tick(row))
        else:
            parts.append((row.sequence, row.input, _block(row, schemas[row.input])))
    return parts, ticks


def _tick(row: ExchangeRow) -> Tick:
    return Tick(row.input, row.highest, row.rows, row.bad, row.idle, row.closed)


def _block(row: ExchangeRow, schema: pa.Schema) -> pa.RecordBatch:
    assert row.block is not None
    content = pa.py_buffer(row.block)
    if content.size < _LARGE or content.address % _ALIGNED:
        content = pa.py_buffer(content.to_pybytes())
    return pa.ipc.read_record_batch(content, schema)


def split_by_stage(arrived: pa.RecordBatch, stage: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Split exchange rows into those of this stage and those that only pass through it."""
    own = pc.equal(arrived.column("stage"), stage)
    if own.true_count in (0, len(own)):  # blocks are not copied
        whole, none = arrived, arrived.slice(0, 0)
        return (whole, none) if own.true_count else (none, whole)
    return arrived.filter(own), arrived.filter(pc.invert(own))


def rules_of(arrived: Sequence[pa.RecordBatch]) -> tuple[dict[int, dict[str, Any]], list[pa.RecordBatch]]:
    """Return the rules among the exchange rows of a stage, by the later stage that they are for, and the other rows."""
    rules, others = dict[int, dict[str, Any]](), list[pa.RecordBatch]()
    for batch in arrived:
        ruling = pc.equal(batch.column("kind"), RULE)
        if ruling.true_count:
            own, batch = batch.filter(ruling), batch.filter(pc.invert(ruling))
            pairs = zip(own.column("input").to_pylist(), own.column("block").to_pylist(), strict=True)
            rules |= {later: orjson.loads(block) for later, block in pairs}
        others.append(batch)
    return rules, others


def receipt_row(slot: int, stages: int, receipt: str) -> pa.RecordBatch:
    """Wrap a receipt in an exchange row that passes all `stages`, since its stage number is that of none."""
    return exchange_batch([ExchangeRow(slot, stages, RECEIPT, block=receipt.encode())])


def letters_row(slot: int, stages: int, letters: pa.RecordBatch) -> pa.RecordBatch:
    """Wrap dead letters in an exchange row that passes all `stages`."""
    block = letters.serialize().to_pybytes()
    return exchange_batch([ExchangeRow(slot, stages, LETTERS, rows=letters.num_rows, block=block)])


def passed(rows: pa.RecordBatch) -> tuple[list[str], list[pa.RecordBatch]]:
    """Return the receipts and the dead letters that have passed through all stages."""
    receipts, letters = list[str](), list[pa.RecordBatch]()
    for kind, block in zip(rows.column("kind").to_pylist(), rows.column("block").to_pylist(), strict=True):
        if kind == LETTERS:
            letters.append(pa.ipc.read_record_batch(pa.py_buffer(block), LETTER))
        else:
            assert kind == RECEIPT
            receipts.append(bytes(block).decode())
    return receipts, letters
