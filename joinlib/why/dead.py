"""Where rows of a job lie that are dead letters."""

from dataclasses import dataclass

from joinlib.compiled import Compiled
from joinlib.model.inputs import InputPlan


@dataclass(frozen=True)
class Dead:
    """The folder of dead letters, as far as rows go there."""

    plan: Compiled

    def of_source(self, name: str) -> str | None:
        """Return the folder of the rows of an input that fail; None: they stop the job."""
        kept = {source.name for source in self.plan.source.sources if source.keeps_errors}
        return self._folder if name in kept else None

    def of_stage(self, number: int) -> str | None:
        """Return the folder of the rows of a stage that fail; None: they stop the job."""
        box = self.plan.join.letters
        return self._folder if box is not None and box.called(number) is not None else None

    def between(self, stage: int, reader: int) -> str | None:
        """Return the folder of the rows of a stage that fail on their way to another one; None: they stop the job."""
        box = self.plan.join.letters
        return self._folder if box is not None and box.called_between(stage, reader) is not None else None

    def of_late(self, plan: InputPlan) -> str | None:
        """Return the folder of the late rows of an input; None: they are only counted."""
        box, sources = self.plan.join.letters, self.plan.pipeline.late_of(plan)
        return self._folder if box is not None and box.called_late(sources) is not None else None

    @property
    def _folder(self) -> str | None:
        return str(self.plan.join.letters.folder) if self.plan.join.letters is not None else None
