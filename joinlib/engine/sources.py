"""The inputs of a query as tasks know them: plain values, which import neither numba nor a Kafka client."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from joinlib.lookup.task import TableTask
from joinlib.model.stage import AnyStage, Pipeline
from joinlib.model.tuning import Tuning
from joinlib.model.watermark import Tick
from joinlib.source import Config, KafkaConfig, Slice


@dataclass(frozen=True)
class SourcePlan:
    """One source of the spec, as its readers need it."""

    name: str
    config: Config
    schema: pa.Schema
    max_files: int | None  # per batch
    max_bytes: int | None  # per batch
    keeps_errors: bool = (
        False  # rows that cannot be read or computed become dead letters; or they stop the job
    )


@dataclass(frozen=True)
class SourceTask:
    """Everything that the source needs to know. Frozen, picklable; holds no secret."""

    pipeline: Pipeline
    sources: tuple[SourcePlan, ...]  # each source that the SQL names, once
    logs: Path  # folder of the logs that list what was discovered
    stop: Path  # a file: while it exists no batch begins
    max_rows: int  # per batch, over all inputs
    tasks: int  # map tasks per batch
    states: Path  # folder of all stages' segments
    tuning: Tuning
    tables: tuple[TableTask, ...] = ()  # one per lookup
    small_rows: int = -1  # a batch of at most so many rows is one task (`engine.small`); by default none is

    @property
    def stage(self) -> AnyStage:
        """The first stage, the only one whose hot keys ContRand spreads."""
        return self.pipeline.stages[0]

    @property
    def routed(self) -> bool:
        """Whether rows of the stream may go to any unit and hot keys to several, because none of them is stored."""
        return 0 in self.pipeline.ruled

    @property
    def split(self) -> bool:
        """Whether ContRand is used: a hot key's rows lie in several units, so the hot keys must be known."""
        inputs = self.stage.inputs
        route = self.stage.route
        keyed = route is not None and (bool(inputs[0].keys) or route.cells is not None)
        # A deletion must go where its row went.
        return keyed and self.stage.units > 1 and not any(plan.changes for plan in inputs)

    @property
    def dead_letters(self) -> tuple[Path, ...]:
        """The folders that take messages which cannot be decoded."""
        configs = [s.config for s in self.sources]
        found = [c.dead_letters for c in configs if isinstance(c, KafkaConfig) and c.dead_letters]
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class MapInput:
    """The input of a map task: slices of some sources, and the ticks and table versions that it passes on."""

    reads: tuple[tuple[str, tuple[Slice, ...]], ...]
    ticks: tuple[tuple[Tick, ...], ...]  # by stage
    # By stage: pairs (number of a lookup, version of its table).
    versions: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] = ()
    first: tuple[tuple[str, int], ...] = ()  # (source whose rows are numbered, number of its first row)
    before: tuple[tuple[str, int], ...] = ()  # (source, rows of its first slice that another task reads)
    route: dict[str, Any] | None = None  # the rule, or rules, that split hot keys; None: the hashes' top bits
    # Of later stages: the rule by which rows of inputs, or of other stages, go to its units, by its number.
    rules: tuple[tuple[int, dict[str, Any]], ...] = ()
    small: bool = False  # the whole batch, which this task runs to its end (`engine.small`)
