"""Where result rows go: plain values, which import neither numba nor a Kafka client."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from joinlib.spec.kafka import KafkaConnection

Format = Literal["parquet", "csv", "jsonl"]


@dataclass(frozen=True)
class KafkaSinkConfig:
    """The topic that takes result rows. It holds no secret."""

    connection: "KafkaConnection"
    topic: str
    format: Literal["json", "arrow", "csv"] = "json"
    key: tuple[str, ...] = ()
    changelog: bool = False  # rows have a flag `deleted`; those where it is set become tombstones
    job: str = ""  # the checkpoint's id, which is part of the transactional ids
    max_bytes: int = 1_000_000  # per message
    transaction_us: int = 600_000_000  # brokers abort what takes longer from the first row to the commit
    doubtful: int = -1  # a batch that began so long ago that its marker may have expired; -1: none


@dataclass(frozen=True)
class SinkConfig:
    """The kind of sink and its settings."""

    kind: Literal["rows", "files", "kafka", "console", "noop"]
    folder: Path | None = None  # files: the output folder
    format: Format = "parquet"
    show: int = 20  # console: at most so many rows per batch and unit
    kafka: KafkaSinkConfig | None = None


def staging(folder: Path, batch: int) -> Path:
    """Return where attempts of a batch write. Readers of the output folder skip hidden folders."""
    return folder / ".staging" / f"batch={batch}"
