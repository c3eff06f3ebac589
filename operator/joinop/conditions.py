"""What is true of a job, since when? Law: to say the same again changes nothing, also not the times."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from joinop.names import Object

Truth = Literal["True", "False", "Unknown"]
_MESSAGE_MAX = 4_000  # characters; the API takes 32768


@dataclass(frozen=True)
class Condition:
    """One aspect of a job."""

    type: str
    status: Truth
    reason: str
    message: str = ""


def truth(value: bool) -> Truth:
    return "True" if value else "False"


def merged(before: Iterable[Object], now: Iterable[Condition], generation: int, at: str) -> list[Object]:
    """The conditions as the API shows them. The time is that of the last change of `status`."""
    known = {condition["type"]: condition for condition in before}
    return [_shown(condition, known.get(condition.type, {}), generation, at) for condition in now]


def _shown(condition: Condition, before: Object, generation: int, at: str) -> Object:
    same = before.get("status") == condition.status
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message[:_MESSAGE_MAX],
        "lastTransitionTime": before.get("lastTransitionTime", at) if same else at,
        "observedGeneration": generation,
    }
