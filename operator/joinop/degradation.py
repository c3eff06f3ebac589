"""What degrades a job: one word for programs and one sentence for people, with the field and the fix."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Degradation:
    """Reason and message of the condition Degraded."""

    reason: str
    message: str
    fatal: bool = False  # only a change of the spec can help
