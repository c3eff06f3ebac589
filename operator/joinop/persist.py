"""Persist the state of scaling in `status.scaling`. Law: what is written is read back unchanged.

Fields that are not known are ignored, and each but `wanted` may be missing: an operator of another version may
have written it.
A state that cannot be read is dropped: scaling then starts over from the desired number of executors.
"""

from datetime import UTC, datetime
from typing import Any, get_args

from joinlib.scale import Decision, State
from joinlib.scale.state import Backlog, By, Direction, Learnt, Phase, Verdict, Wants
from joinop.names import Object

_TIMES = {"at", "deadline", "cool_until"}
_NAMES = {"cool_until": "coolUntil", "tried_rate": "triedRate"}
_WORDS = {
    "by": get_args(By),
    "phase": get_args(Phase),
    "direction": get_args(Direction),
    "verdict": get_args(Verdict),
}
_DIGITS = {"load": 4, "arrival": 3, "rate": 3, "seconds": 3, "able": 3, "tried_rate": 3}  # fractions, as text
_PARTS: dict[str, type] = {"wants": Wants, "backlog": Backlog, "learnt": Learnt}


def to_status(state: State) -> Object:
    """Return the state as the status shows it: times as text, the load with four digits."""
    found = _shown(vars(state) | {"decisions": None})
    return found | {"decisions": [_shown(vars(decision)) for decision in state.decisions]}


def from_status(status: Object) -> State:
    """Read the state from a whole status. Without one, the number of executors in the status is kept."""
    wanted = (status.get("executors") or {}).get("wanted")
    unknown = State(wanted=wanted if isinstance(wanted, int) and wanted > 0 else None)
    found = status.get("scaling")
    if not found:
        return unknown
    try:
        decisions = tuple(Decision(**_values(each, Decision)) for each in found.get("decisions", ()))
        state = State(**(_values(found, State) | {"decisions": decisions}))
    except (TypeError, ValueError, KeyError):
        return unknown
    return state if state.wanted is not None and state.wanted > 0 else unknown


def _shown(values: dict[str, Any]) -> Object:
    return {
        _NAMES.get(name, name): _text(name, value)
        for name, value in values.items()
        if value is not None and not (name == "cool_until" and value == 0)
    }


def _text(name: str, value: Any) -> Any:
    if name in _TIMES:
        moment = datetime.fromtimestamp(value, UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if name in _PARTS:
        return _shown(vars(value))
    return f"{value:.{_DIGITS[name]}f}" if name in _DIGITS else value


def _values(found: Object, of: type) -> dict[str, Any]:
    fields = {_NAMES.get(name, name): name for name in of.__dataclass_fields__}  # type: ignore[attr-defined]
    return {fields[name]: _value(fields[name], value) for name, value in found.items() if name in fields}


def _value(name: str, value: Any) -> Any:
    if name in _TIMES:
        return datetime.fromisoformat(value).timestamp()
    if name in _WORDS and value not in _WORDS[name]:
        raise ValueError(value)
    if name in _PARTS:
        return _PARTS[name](**_values(value, _PARTS[name]))
    return float(value) if name in _DIGITS else value
