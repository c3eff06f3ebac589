"""Receipts: one small row per unit and batch for the driver, so that result rows need not enter the JVM."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from joinlib.lookup.used import Used
from joinlib.model.letters import DeadRows

SORTED = 2  # position in `runs` of the first level whose rows are sorted
TOLD = pa.schema([("told", pa.binary())])  # of a task
Said = tuple[str, bytes | None]  # an encoded receipt, and the rows to show of its unit, if any
_SCHEMA = pa.schema([("receipt", pa.string()), ("block", pa.binary())])


@dataclass(frozen=True)
class Receipt:
    """Figures of one unit and batch.

    Those named `_total` are since the checkpoint began, all others are of this batch.
    """

    unit: int  # numbered through all stages: stage * units + unit
    batch: int
    rows_in: tuple[int, ...]  # by input that is read from a source, without late rows
    late: tuple[int, ...]  # by input
    late_total: tuple[int, ...]
    rows_out: int
    files: tuple[str, ...]  # staged output files
    state_rows: int
    state_bytes: int  # live segments
    retired_bytes: int  # segments that are kept only for recovery
    index_bytes: int  # index files of the executor
    segments: int
    watermark: int  # µs
    highest: tuple[int, ...]  # µs, by input
    seconds: float  # time that the task spent on this unit
    bad: tuple[int, ...] = ()  # messages that could not be decoded, by input: every unit reports all of them
    deleted: tuple[int, ...] = ()  # rows that came as deletions, by input
    unknown: tuple[int, ...] = ()  # deletions without a row that were left out, by input
    dead_rows: int = 0  # rows of the state that were deleted, until a merge leaves them out
    commit_seconds: float = 0.0  # the part of `seconds` spent on logging, sealing and merging
    executor: str = ""  # Spark's id of the executor; empty on a laptop
    runs: tuple[int, ...] = ()  # runs of the state: heads, then those of each level
    run_bytes: tuple[int, ...] = ()  # bytes of the same
    merged_bytes: int = 0  # bytes that merges have written
    working_set: int | None = None  # bytes of the container's memory, if it has a control group
    memory_limit: int | None = None  # bytes
    tables: tuple[Used, ...] = ()  # one per lookup of the stage
    probes: tuple[dict[str, Any], ...] = ()  # one per join that has chosen new probe orders
    letters: tuple[str, ...] = ()  # staged files of dead letters: of the whole task, told by one of its units
    dead: tuple[DeadRows, ...] = ()  # what is in them

    @property
    def mapped_bytes(self) -> int:
        """Bytes that the executor maps: live segments and their indexes."""
        return self.state_bytes + self.index_bytes

    @property
    def held_bytes(self) -> int:
        """Bytes that the executor needs in memory: all that it maps but runs sorted on disk, which are searched
        by their guides.
        """
        return self.mapped_bytes - sum(self.run_bytes[SORTED:])

    def encode(self) -> str:
        return orjson.dumps(self).decode()


def bad_messages(receipts: Iterable[Receipt]) -> tuple[int, ...]:
    """Return the bad messages of a batch, by input: all units of the input's stage report the same number."""
    return tuple(max(column) for column in zip(*(r.bad for r in receipts), strict=True))


def told(receipts: Sequence[Said]) -> bytes:
    """Encode what a task says of its units, for the driver."""
    texts, blocks = zip(*receipts, strict=True) if receipts else ((), ())
    rows = pa.record_batch([pa.array(texts, pa.string()), pa.array(blocks, pa.binary())], schema=_SCHEMA)
    return rows.serialize().to_pybytes()


def heard(told: bytes) -> list[Said]:
    """Inverse of `told`."""
    rows = pa.ipc.read_record_batch(pa.py_buffer(told), _SCHEMA)
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def decode(text: str) -> Receipt:
    """Inverse of `Receipt.encode`."""
    raw: dict[str, Any] = orjson.loads(text)
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()}
    tables, dead = (Used(**t) for t in raw["tables"]), (DeadRows(**d) for d in raw["dead"])
    return Receipt(**{**values, "tables": tuple(tables), "dead": tuple(dead)})
