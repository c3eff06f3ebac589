"""What a unit tells the driver of a batch: one small row, so that no result row needs to cross into the JVM and back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from joinlib.lookup.used import Used

DDL = "receipt STRING, block BINARY"
_SCHEMA = pa.schema([("receipt", pa.string()), ("block", pa.binary())])


@dataclass(frozen=True)
class Receipt:
    """Figures of one unit and batch. Totals are since the checkpoint began, all others of this batch."""

    unit: int  # those of a later stage count on where those of the one before end
    batch: int
    rows_in: tuple[int, ...]  # by input that is read from a source, late ones not among them
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
    seconds: float  # of the task, in this unit
    bad: tuple[int, ...] = ()  # messages that could not be decoded, by input: every unit hears of all
    commit_seconds: float = 0.0  # of these, to log, seal and merge
    executor: str = ""  # Spark's id of the executor, where it is known: in a cluster
    runs: tuple[int, ...] = ()  # of state: heads, then those of each level
    run_bytes: tuple[int, ...] = ()  # likewise
    merged_bytes: int = 0  # that merges have written
    working_set: int | None = None  # bytes of the container, where it has a control group
    memory_limit: int | None = None
    tables: tuple[Used, ...] = ()  # of each lookup of the stage
    probes: tuple[dict[str, Any], ...] = ()  # of each join with probe orders, when some were chosen anew

    @property
    def held_bytes(self) -> int:
        """What the executor maps: live segments and their indexes."""
        return self.state_bytes + self.index_bytes

    def encode(self) -> str:
        return orjson.dumps(self).decode()


def heard(receipts: Iterable[Receipt]) -> tuple[int, ...]:
    """Bad messages of a batch, by input: all units of the input's stage say the same."""
    return tuple(max(column) for column in zip(*(r.bad for r in receipts), strict=True))


def batch(told: Sequence[tuple[str, bytes | None]]) -> pa.RecordBatch:
    """Receipts, each with rows to show or none, as rows of `DDL`."""
    texts, blocks = zip(*told, strict=True) if told else ((), ())
    return pa.record_batch([pa.array(texts, pa.string()), pa.array(blocks, pa.binary())], schema=_SCHEMA)


def decode(text: str) -> Receipt:
    """Inverse of `Receipt.encode`."""
    raw: dict[str, Any] = orjson.loads(text)
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()}
    return Receipt(**{**values, "tables": tuple(Used(**t) for t in raw["tables"])})
