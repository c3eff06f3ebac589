"""Runs a stage as executors would, in this process: real blocks, segments, manifests and indexes; trouble on request.

    rows ─► prepare ─► split ─► bytes ─► UnitJoin (real files) ─► manifest bytes ─► next batch

What Spark does between batches is played: it keeps nothing but manifests, and runs a batch again from the old ones.
"""

import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.engine.frames import project
from joinlib.engine.splitter import with_numbers
from joinlib.join.arrived import Blocks
from joinlib.join.unit import UnitJoin
from joinlib.model.inputs import ORDINAL, WEIGHT, InputPlan
from joinlib.model.stage import Stage
from joinlib.model.time import NEVER
from joinlib.model.tuning import Tuning
from joinlib.model.watermark import Tick
from joinlib.route.biclique import BOTH, PROBE, Rules, routed
from joinlib.route.split import block_schema, prepare, split
from joinlib.state import segment
from joinlib.state import unit as units
from joinlib.state.manifest import Manifest, decode, empty
from joinlib.state.segment import Written
from joinlib.state.unit import Unit
from joinlib.worker import current

Batch = Mapping[str, pa.RecordBatch]  # source -> its rows
Block = tuple[int, int, bytes | Written, int]  # input, sequence, the rows or the file that holds them, role
SMALL = Tuning(
    seal_rows=5,
    merge_segments=2,
    max_segments=8,
    max_runs=2,
    retain_batches=1,
    probe_pairs=3,
    levelled=True,
    fanout=2,
    piece_bytes=300,
    share_rows=1,
)


@dataclass(frozen=True)
class Trouble:
    """What goes wrong, by batch."""

    restart: frozenset[int] = frozenset()  # the process is new
    lost: frozenset[int] = frozenset()  # the executor's indexes are gone
    # An attempt ends after so many frames; then it is run again.
    dies: Mapping[int, int] = field(default_factory=dict)
    # An attempt is complete, but what it says is lost; then it is run again.
    fails: frozenset[int] = frozenset()
    late: frozenset[int] = frozenset()  # a copy of the attempt starts after the batch was committed


CALM = Trouble()


class Work(Protocol):
    """What works on a batch of a unit: its state is that after the batch once all has come out."""

    manifest: Manifest

    def run(self, batch: int, blocks: Blocks) -> Iterator[Any]: ...


class Running(ABC):
    """A query that takes batch after batch."""

    def run(self, batches: Sequence[Batch], close: bool = True) -> Counter[tuple[object, ...]]:
        """Everything that comes out of these batches, and of closing the inputs behind them."""
        out: Counter[tuple[object, ...]] = Counter()
        for batch in batches:
            out.update(self.batch(batch))
        if close:
            out.update(self.batch({}, closed=True))
        return out

    @abstractmethod
    def batch(self, rows: Batch, closed: bool = False) -> list[tuple[object, ...]]:
        """What comes out of one batch, or of closing the inputs."""


class Flow(Running):
    """A running query of one stage. `units[u]` is what Spark keeps of unit u."""

    def __init__(
        self,
        stage: Stage,
        folder: Path,
        tuning: Tuning = SMALL,
        trouble: Trouble = CALM,
        spooled_rows: int = 1000,
        rules: Sequence[Rules] = (Rules(),),
    ) -> None:
        """`spooled_rows`: so large a block is written as a segment where it is made. `rules`: of each batch, the last forever."""
        self.rules = rules
        self.stage, self.folder, self.tuning, self.trouble, self.spooled_rows = (
            stage,
            folder,
            tuning,
            trouble,
            spooled_rows,
        )
        self.root = getattr(stage, "root", None)  # only joins by one key are a tree
        self.sides = stage.sides
        self.units = {u: empty(len(self.sides), len(stage.inputs)).encode() for u in range(stage.units)}
        self.done = 0
        self.read = [0] * len(stage.inputs)  # rows of each input so far
        self.largest = 0  # rows of one frame
        self.routes: dict[int, pa.Schema] = {}  # where tuples leave by several: their columns

    def batch(
        self, rows: Batch, closed: bool = False, idle: Sequence[str] = (), ticks: Sequence[Tick] = ()
    ) -> list[tuple[object, ...]]:
        """One batch over all units, with the trouble it is in for."""
        blocks, heard = self._exchange(rows)
        said = [
            Tick(i.number, closed=closed, idle=i.alias in idle)
            for i in self.stage.inputs
            if closed or i.alias in idle
        ]
        out = []
        for u, data in blocks.items():
            out += self._unit(u, data, [*heard, *said, *ticks])
        self.done += 1
        return out

    @property
    def manifests(self) -> list[Manifest]:
        return [decode(data) for data in self.units.values()]

    @property
    def late(self) -> dict[str, int]:
        """Rows left out, by input."""
        return {i.alias: sum(m.late[i.number] for m in self.manifests) for i in self.stage.inputs}

    def files(self, u: int = 0) -> set[str]:
        """What lies in a unit's folder of the checkpoint."""
        return {p.name for p in self._segments(u).iterdir()} if self._segments(u).exists() else set()

    def _segments(self, u: int) -> Path:
        return self.folder / "segments" / f"{u:05d}"

    def _indexes(self, u: int) -> Path:
        return self.folder / "indexes" / f"{u:05d}"

    def _rows(self, plan: InputPlan, rows: Batch) -> pa.RecordBatch | None:
        """What an input reads in this batch."""
        return rows.get(plan.source)

    def _exchange(self, rows: Batch) -> tuple[dict[int, list[Block]], list[Tick]]:
        blocks: dict[int, list[Block]] = {u: [] for u in range(self.stage.units)}
        ticks = []
        for plan in self.stage.inputs:
            table = self._rows(plan, rows)
            if table is None or not table.num_rows:
                continue
            if plan.numbered:
                table = with_numbers(table, self.read[plan.number])
                self.read[plan.number] += table.num_rows
            half = table.num_rows // 2  # two map tasks; units receive their blocks in any order
            parts = list(enumerate((table.slice(0, half), table.slice(half))))
            for sequence, part in (
                reversed(parts) if plan.twin is None else ()
            ):  # a twin's rows come as another's
                more = ([ORDINAL] if plan.numbered else []) + ([WEIGHT] if plan.changes else [])
                names = [*plan.read, *more]
                block = prepare(plan, part.select(names), self.done, self.tuning.hash_bits)
                for u, role, piece in self._split(plan, block, sequence):
                    sent = self._send(u, plan.number, piece, 10**9 if role == PROBE else self.spooled_rows)
                    blocks[u].append((plan.number, sequence, sent, role))
            if plan.upstream is not None:
                continue  # its stage says how far time has come
            time = plan.source_time
            top = pc.max(table.column(time).view(pa.int64())).as_py() if time else None
            ticks.append(Tick(plan.number, NEVER if top is None else top, table.num_rows))
        return blocks, ticks

    def _split(
        self, plan: InputPlan, block: pa.RecordBatch, sequence: int
    ) -> list[tuple[int, int, pa.RecordBatch]]:
        if self.stage.route is None:
            return [(u, BOTH, piece) for u, piece in split(block, self.stage.units)]
        rules = self.rules[min(self.done, len(self.rules) - 1)]
        return [
            tuple(s) for s in routed(block, self.stage.route, plan.number, rules, self.done * 2 + sequence)
        ]

    def _send(self, u: int, number: int, piece: pa.RecordBatch, spooled_rows: int) -> bytes | Written:
        if piece.num_rows < spooled_rows:
            return piece.serialize().to_pybytes()
        self._segments(u).mkdir(parents=True, exist_ok=True)
        return segment.write(self._segments(u), f"in{number}-{self.done:08d}", piece)

    def _unit(self, u: int, data: list[Block], ticks: list[Tick]) -> list[tuple[object, ...]]:
        n, trouble = self.done, self.trouble
        before = self.units[u]
        if n in trouble.restart:
            current().close()
        if n in trouble.lost:
            shutil.rmtree(self._indexes(u), ignore_errors=True)
        if n in trouble.dies:
            self.attempt(u, before, data, ticks, frames=trouble.dies[n])
        if n in trouble.fails:
            lost, _ = self.attempt(u, before, data, ticks)
        rows, self.units[u] = self.attempt(u, before, data, ticks)
        if n in trouble.fails:
            assert Counter(lost) == Counter(rows)
        if n in trouble.late:
            current().close()
            late, manifest = self.attempt(u, before, data, ticks)
            same = state_of(manifest) == state_of(self.units[u])
            assert Counter(late) == Counter(rows) and same, "two attempts of one batch differ"
        return rows

    def attempt(
        self, u: int, saved: bytes, data: list[Block], ticks: Sequence[Tick], frames: int | None = None
    ) -> tuple[list[tuple[object, ...]], bytes]:
        """One task's work on one unit. `frames`: it is killed after so many."""
        schemas = [block_schema(p) for p in self.stage.inputs]
        rows = [(i, s, self._receive(u, b, schemas[i]), role) for i, s, b, role in data]
        written = {(i, s, role): b for i, s, b, role in data if isinstance(b, Written)}
        with self._held(u, decode(saved)) as (unit, join):
            out = self._shown(self._measured(join.run(self.done, Blocks(rows, ticks, written)), frames))
            if frames is not None:
                return out, saved
            for side in unit.sides:
                side.check()
        return out, join.manifest.encode()

    @contextmanager
    def _held(self, u: int, manifest: Manifest) -> Iterator[tuple[Unit, Work]]:
        """The state of a unit, and what works on it."""
        stage, folders = self.stage, (self._segments(u), self._indexes(u))
        with units.hold(*folders, stage.skip_bits, self.sides, self.tuning, manifest) as unit:
            yield unit, self._work(unit, manifest)

    def _work(self, unit: Unit, manifest: Manifest) -> Work:
        stage = self.stage
        return UnitJoin(self.root, stage.inputs, stage.timed, stage.final_close, self.tuning, unit, manifest)

    def _measured(self, found: Iterator[Any], most: int | None) -> Iterator[Any]:
        """The first tuples; a task that is killed after them has seen that there are more."""
        for count, tuples in enumerate(found):
            if most is not None and count >= most:
                return
            self.largest = max(self.largest, self._size(tuples))
            yield tuples

    def _size(self, found: Any) -> int:
        return len(found)

    def _shown(self, found: Iterator[Any]) -> list[tuple[object, ...]]:
        """What these tuples are as results; of changes, the weight is the last value of a row."""
        batches = [*project(found, self.stage.select, self.stage.emitted, 1 << 25)]
        assert all(batch.schema == self.stage.emitted for batch in batches)
        rows = (row for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns)))
        return [tuple(map(plain, row)) for row in rows]

    def _receive(self, u: int, block: bytes | Written, schema: pa.Schema) -> pa.RecordBatch:
        if isinstance(block, Written):
            segment.verify(self._segments(u), block)
            return segment.read(self._segments(u), block, schema)
        return pa.ipc.read_record_batch(pa.py_buffer(block), schema)


def state_of(manifest: bytes) -> Manifest:
    """What must be alike after two attempts: all but the orders of later probes, which rest on seconds."""
    return replace(decode(manifest), probes=())


def plain(value: object) -> object:
    """A value that equals itself."""
    return "NaN" if value != value else value


def counted(rows: list[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
    return Counter(tuple(map(plain, row)) for row in rows)


def cut(rows: pa.RecordBatch, ends: Sequence[int]) -> list[pa.RecordBatch]:
    """The rows up to each end, from the one before."""
    return [rows.slice(a, max(b - a, 0)) for a, b in zip([0, *ends], ends)]
