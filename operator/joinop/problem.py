"""What keeps a job from being as it should? One word for programs, one sentence for people, with the field and the fix."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """Goes into the condition Degraded."""

    reason: str
    message: str
    fatal: bool = False  # the driver gave up: only another spec can help
