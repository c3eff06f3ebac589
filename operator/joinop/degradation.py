"""The reason why a job is degraded: one word for programs, and one sentence with the field and the fix."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Degradation:
    """Reason and message of the condition Degraded."""

    reason: str
    message: str
    fatal: bool = False  # only a change of the spec can help
