"""How does scaling remember? Its state as `status.scaling`, and back. Law: what is written is read as it was.

What cannot be read is forgotten: scaling then begins anew, from the number of executors that is wanted.
"""

from datetime import UTC, datetime
from typing import Any, get_args

from joinlib.scale import Decision, State
from joinlib.scale.state import Direction, Phase, Verdict
from joinop.names import Object

_TIMES = {"at", "deadline", "cool_until"}
_NAMES = {"cool_until": "coolUntil"}
_WORDS = {"phase": get_args(Phase), "direction": get_args(Direction), "verdict": get_args(Verdict)}


def written(state: State) -> Object:
    """As the status shows it: times as text, the load with four digits."""
    found = _shown(vars(state) | {"decisions": None})
    return found | {"decisions": [_shown(vars(decision)) for decision in state.decisions]}


def read(status: Object) -> State:
    """Inverse of `written`, of a whole status; the executors of one that knows no scaling yet are kept."""
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
    return f"{value:.4f}" if name == "load" else value


def _values(found: Object, of: type) -> dict[str, Any]:
    fields = {_NAMES.get(name, name): name for name in of.__dataclass_fields__}  # type: ignore[attr-defined]
    return {fields[name]: _value(fields[name], value) for name, value in found.items() if name in fields}


def _value(name: str, value: Any) -> Any:
    if name in _TIMES:
        return datetime.fromisoformat(value).timestamp()
    if name in _WORDS and value not in _WORDS[name]:
        raise ValueError(value)
    return float(value) if name == "load" else value
