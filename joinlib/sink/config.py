"""Configuration of sinks: plain values, which import neither numba nor a client."""

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from joinlib.sink.postgres.config import PostgresSinkConfig
    from joinlib.spec.inputs import Format
    from joinlib.spec.output import KafkaOutput, Mode
    from joinlib.spec.protobuf import RowMessage


@dataclass(frozen=True)
class KafkaSinkConfig:
    """The topic that takes result rows. It holds no secret."""

    spec: "KafkaOutput"
    mode: "Mode" = "append"
    key: tuple[str, ...] = ()  # columns of the message key
    job: str = ""  # the checkpoint's id, which is part of the transactional ids
    max_bytes: int = 1_000_000  # per message
    schema_id: int = -1  # of the schema in a registry; -1: messages have none
    key_schema_id: int = -1  # the same, of keys
    message: "RowMessage | None" = None  # protobuf: the type of the messages
    key_message: "RowMessage | None" = None  # the same, of keys
    doubtful: int = -1  # a batch that began so long ago that its marker may have expired; -1: none

    @property
    def topic(self) -> str:
        return self.spec.topic


@dataclass(frozen=True)
class SinkConfig:
    """The kind of sink and its settings."""

    kind: Literal["rows", "files", "kafka", "postgres", "console", "noop"]
    mode: "Mode" = "append"
    key: tuple[str, ...] = ()  # columns that tell the result's rows apart
    folder: Path | None = None  # files: the output folder
    format: "Format | None" = None  # files
    # At most so many rows of a batch go to the driver: of each unit for the console, of each task for the page.
    show: int = 0
    kafka: KafkaSinkConfig | None = None
    postgres: "PostgresSinkConfig | None" = None


def staging(folder: Path, batch: int) -> Path:
    """Return where attempts of a batch write. Readers of the output folder skip hidden folders."""
    return folder / ".staging" / f"batch={batch}"


def staged(folder: Path, batch: int, partition: int, attempt: int, suffix: str) -> Path:
    """Return a name for the file that an attempt at a task writes.

    Attempts of two drivers may have the same number while executors of the older one are still ending.
    """
    return staging(folder, batch) / f"part-{partition:05d}-{attempt}-{uuid.uuid4().hex[:8]}.{suffix}"
