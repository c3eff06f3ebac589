"""The stages as an executor runs them, and where their files lie: plain values.

Spark starts several Python processes that only pass such values on. So this module, and all that
it imports, load neither numba nor pandas nor the SQL parser: that would cost each process a
second before the first result.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from joinlib.lookup.task import TableTask
from joinlib.model.grouping import Grouping
from joinlib.model.stage import Pipeline, Stage
from joinlib.model.tuning import Tuning
from joinlib.sink.config import SinkConfig
from joinlib.state import epochs
from joinlib.state.location import state_folder


@dataclass(frozen=True)
class JoinTask:
    """One stage of a pipeline as an executor runs it. Frozen, picklable."""

    pipeline: Pipeline
    states: Path  # folder of all stages' segments
    tuning: Tuning
    sink: SinkConfig
    tables: tuple[TableTask, ...] = ()  # one per lookup of the last stage
    number: int = 0  # the stage's; the number after the last stage means the groups
    run: str = ""  # id of the run, since worker processes may outlive it
    epoch: int = epochs.NONE  # the run's: tasks of an earlier epoch are fenced off

    @property
    def stage(self) -> Stage:
        return self.pipeline.stages[self.number]

    @property
    def state(self) -> Path:
        """The folder of this stage's segments."""
        return state_folder(self.states, self.number)

    @property
    def looked_up(self) -> tuple[TableTask, ...]:
        """The tables that this stage's rows are enriched with: only one stage has any."""
        return self.tables if self.stage.lookups else ()

    @property
    def grouping(self) -> Grouping | None:
        """The groups that this operator keeps, if it is the one after the stages; otherwise None."""
        return self.pipeline.grouping if self.number == len(self.pipeline.stages) else None

    @property
    def grouped(self) -> bool:
        """Whether this stage's rows become partials, because the operator after it keeps groups."""
        return self.pipeline.grouping is not None and self.number == len(self.pipeline.stages) - 1

    def chain(self) -> "tuple[JoinTask, ...]":
        """Return the task of every stage, and that of the groups."""
        return tuple(replace(self, number=n) for n in range(self.pipeline.operators))
