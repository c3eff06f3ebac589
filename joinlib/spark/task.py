"""Stages as an executor runs them, and where their files lie: plain values.

Spark starts several Python processes that only pass such values on. So this module, and those that they import with it,
load neither numba nor pandas nor the SQL parser: that would cost each process a second before the first result.
"""

import hashlib
import os
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from joinlib.aggregate.config import Grouping
from joinlib.errors import StateError
from joinlib.join.stage import Pipeline, Stage
from joinlib.lookup.task import TableTask
from joinlib.state import epochs
from joinlib.state.tuning import Tuning

if TYPE_CHECKING:
    from joinlib.spec.kafka import KafkaConnection

_TAIL = 40  # characters of a path that its folder of indexes shows; its hash tells it from others

Format = Literal["parquet", "csv", "jsonl"]


@dataclass(frozen=True)
class KafkaTarget:
    """The topic that takes result rows. Frozen with the stage's task; holds no secret."""

    connection: "KafkaConnection"
    topic: str
    format: Literal["json", "arrow", "csv"] = "json"
    key: tuple[str, ...] = ()
    changelog: bool = False  # rows have a flag `deleted`: then they become tombstones
    job: str = ""  # the checkpoint's id: whose transactions these are
    max_bytes: int = 1_000_000  # of a message
    transaction_us: int = 600_000_000  # brokers abort what takes longer from the first row to the commit
    doubtful: int = -1  # this batch was begun so long ago that its marker may be gone


@dataclass(frozen=True)
class Emit:
    """What becomes of result rows. Frozen with the stage's task."""

    kind: Literal["rows", "files", "kafka", "console", "noop"]
    folder: Path | None = None  # files: the output folder
    format: Format = "parquet"
    show: int = 20  # console: rows of a batch and unit at most
    kafka: KafkaTarget | None = None


@dataclass(frozen=True)
class JoinTask:
    """One stage of a pipeline as an executor runs it. Frozen, picklable."""

    pipeline: Pipeline
    states: Path  # folder of all stages' segments
    tuning: Tuning
    emit: Emit
    tables: tuple[TableTask, ...] = ()  # of each lookup of the last stage
    number: int = 0  # of the stage
    run: str = ""  # of the command, or of the query: processes may outlive it
    epoch: int = epochs.NONE  # of the command: what an older one still does does not count

    @property
    def stage(self) -> Stage:
        return self.pipeline.stages[self.number]

    @property
    def state(self) -> Path:
        """Folder of this stage's segments."""
        return state_folder(self.states, self.number)

    @property
    def looked_up(self) -> tuple[TableTask, ...]:
        """The tables that its rows meet: those of the last stage, whether or not groups come behind it."""
        return self.tables if self.number == len(self.pipeline.stages) - 1 else ()

    @property
    def grouping(self) -> Grouping | None:
        """The groups that this operator keeps: it is the one behind the stages."""
        return self.pipeline.grouping if self.number == len(self.pipeline.stages) else None

    @property
    def grouped(self) -> bool:
        """Its rows become partials: the operator behind it keeps groups."""
        return self.pipeline.grouping is not None and self.number == len(self.pipeline.stages) - 1

    def chain(self) -> "tuple[JoinTask, ...]":
        """The task of every stage, and of the groups."""
        return tuple(replace(self, number=n) for n in range(self.pipeline.operators))


def staging(folder: Path, batch: int) -> Path:
    """Where attempts of a batch write; readers of the output folder do not look into hidden folders."""
    return folder / ".staging" / f"batch={batch}"


def state_folder(states: Path, stage: int) -> Path:
    """The folder of a stage's segments."""
    return states / str(stage)


def unit_folder(state: Path, unit: int) -> Path:
    """The folder of a unit's segments."""
    return state / f"{unit:05d}"


@cache
def local_folder(state: Path) -> Path:
    """The folder of a stage's indexes on this machine: a cache that no other boot of it and no other user sees."""
    root = Path(os.environ.get("STREAMJOIN_LOCAL_DIR") or tempfile.gettempdir()) / f"streamjoin-{os.getuid()}"
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if root.stat().st_uid != os.getuid():
        raise StateError(f"{root} belongs to another user; set STREAMJOIN_LOCAL_DIR to a folder of your own")
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read(8)
    path = str(state.resolve())
    digest = hashlib.blake2b(os.fsencode(path), digest_size=8).hexdigest()
    return root / f"{boot}-{digest}{path.replace('/', '-')[-_TAIL:]}"
