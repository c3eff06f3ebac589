"""What does one run of one system say? A system prints its outcome as one JSON line; this is that line, read.

Warm-up is the same for all: the first two batches' worth of rows (JIT, imports) are left out of the rate.
"""

from dataclasses import dataclass, field
from typing import Any

WARM_UP_BATCHES = 2


@dataclass(frozen=True)
class Batch:
    """Rows of all inputs that were joined in one batch, and the wall time it took."""

    rows: int
    seconds: float
    results: int | None = None


@dataclass(frozen=True)
class Outcome:
    """One finished run."""

    system: str
    rows: int
    results: int | None  # None: of a changelog that is dropped, nobody counted what is left
    seconds_total: float  # from the start of the query (session up) to its end, commits included
    seconds_first_result: float  # from the launch of the command
    batches: tuple[Batch, ...]
    state_mb: float | None = None  # memory that state takes at the end, as the system itself says
    disk_mb: float | None = None  # state and checkpoint that the run leaves behind
    notes: str = ""
    stopped: bool = False  # told to end before all rows were joined: its answer cannot be checked
    peak_rss_mb: float | None = None  # whole process tree, shared pages counted once; measured from outside
    seconds_command: float = 0.0  # the whole command; measured from outside
    extra: dict[str, Any] = field(default_factory=dict)  # whatever else the system printed

    @property
    def rate(self) -> float:
        """Rows per second after the warm-up."""
        counted = self.batches[WARM_UP_BATCHES:]
        return sum(batch.rows for batch in counted) / sum(batch.seconds for batch in counted)


@dataclass(frozen=True)
class Failure:
    """One run that gave no outcome, or a wrong one."""

    system: str
    reason: str


def read(printed: dict[str, Any]) -> Outcome:
    """An outcome from the JSON that a system printed, or that `run.py` kept."""
    known = {name: value for name, value in printed.items() if name in Outcome.__dataclass_fields__}
    unknown = {name: value for name, value in printed.items() if name not in known}
    known["batches"] = tuple(Batch(**batch) for batch in printed["batches"])
    return Outcome(**{**known, "extra": known.get("extra", {}) | unknown})
