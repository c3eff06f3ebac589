"""The stages as an executor runs them, and where their files lie: plain values.

Spark starts several Python processes that only pass such values on. So this module, and all that
it imports, load neither numba nor pandas nor the SQL parser: that would cost each process a
second before the first result.
"""

import shutil
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from joinlib.lookup.task import TableTask
from joinlib.model.letters import LetterBox
from joinlib.model.stage import AnyStage, Pipeline
from joinlib.model.tuning import Tuning
from joinlib.sink.config import SinkConfig
from joinlib.state import epochs
from joinlib.state.location import local_folder, state_folder


@dataclass(frozen=True)
class JoinTask:
    """One stage of a pipeline as an executor runs it. Frozen, picklable."""

    pipeline: Pipeline
    states: Path  # folder of all stages' segments
    tuning: Tuning
    sinks: tuple[SinkConfig, ...]  # one for each result
    tables: tuple[TableTask, ...] = ()  # one per lookup
    number: int = 0  # the stage's
    run: str = ""  # id of the run, since worker processes may outlive it
    epoch: int = epochs.NONE  # the run's: tasks of an earlier epoch are fenced off
    letters: LetterBox | None = None  # where dead letters go; None: none are kept

    @property
    def stage(self) -> AnyStage:
        return self.pipeline.stages[self.number]

    @property
    def sink(self) -> SinkConfig:
        """Where the rows of this stage go; of a stage whose rows are no result, where those of the first one go."""
        pairs = zip(self.pipeline.results, self.sinks, strict=True)
        return next((sink for result, sink in pairs if result.stage == self.number), self.sinks[0])

    @property
    def state(self) -> Path:
        """The folder of this stage's segments."""
        return state_folder(self.states, self.number)

    @property
    def looked_up(self) -> tuple[TableTask, ...]:
        """The tables that this stage's rows are enriched with."""
        return tuple(table for table in self.tables if table.stage == self.number)

    def levels(self) -> "tuple[tuple[JoinTask, ...], ...]":
        """Return the tasks of every stage, by level."""
        return tuple(tuple(replace(self, number=n) for n in level) for level in self.pipeline.levels)

    @property
    def exchange(self) -> Path:
        """The folder, on this machine, of what processes exchange that run batches without Spark."""
        return local_folder(self.states)

    def forget_local(self) -> None:
        """Delete what lies on this machine: the indexes of every stage, which are caches, and what was exchanged."""
        shutil.rmtree(self.exchange, ignore_errors=True)
        for task in chain.from_iterable(self.levels()):
            shutil.rmtree(local_folder(task.state), ignore_errors=True)
