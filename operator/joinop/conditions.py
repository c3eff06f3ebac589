"""Status conditions. Law: stating the same condition again changes nothing, not even its times."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from joinop.names import Object

Truth = Literal["True", "False", "Unknown"]
_MESSAGE_MAX = 4_000  # characters; the API takes 32768


@dataclass(frozen=True)
class StatusCondition:
    """One condition of a job's status."""

    type: str
    status: Truth
    reason: str
    message: str = ""


def truth(value: bool) -> Truth:
    return "True" if value else "False"


def merged(
    before: Iterable[Object], now: Iterable[StatusCondition], generation: int, at: str
) -> list[Object]:
    """Return the conditions as the API shows them, each with the time of its last transition."""
    known = {condition["type"]: condition for condition in before}
    return [_shown(condition, known.get(condition.type, {}), generation, at) for condition in now]


def _shown(condition: StatusCondition, before: Object, generation: int, at: str) -> Object:
    same = before.get("status") == condition.status
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message[:_MESSAGE_MAX],
        "lastTransitionTime": before.get("lastTransitionTime", at) if same else at,
        "observedGeneration": generation,
    }
