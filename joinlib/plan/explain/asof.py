"""Says an as-of join as the join that it is: rewrites make it a window function over the rows of both sides.

last_value(y) FILTER (WHERE right) OVER (PARTITION BY k0 ORDER BY at, right DESC ...)        NOT right
asof left join a ⟕ b on k and b.t <= a.t
"""

from collections.abc import Mapping

from joinlib.model.inputs import InputPlan
from joinlib.model.stage import OverStage

_RIGHT, _AT = "right", "at"


def asof(stage: OverStage) -> str:
    """Return the join that a stage in the words of the text computes; "" if it computes none."""
    calls = stage.over.calls
    if (
        not calls
        or len(stage.inputs) < 2
        or any(call.condition != _RIGHT or len(call.order) != 2 for call in calls)
    ):
        return ""
    sides = {_values(given).get(_RIGHT, ""): given for given in stage.inputs}
    if sides.keys() != {"TRUE", "FALSE"}:
        return ""
    left, right = sides["FALSE"], sides["TRUE"]
    inner = any(call.arguments[0][0] == _RIGHT for call in calls)  # asks whether there is a row
    at, first = calls[0].order
    sign = f"{'>' if at.descending else '<'}{'=' if first.descending else ''}"
    on = [_equal(left, right, key) for key in stage.over.partition]
    on.append(f"{_value(right, _AT)} {sign} {_value(left, _AT)}")
    word, mark = ("asof join", "⋈") if inner else ("asof left join", "⟕")
    return f"{word} {left.alias} {mark} {right.alias} on {' and '.join(on)}"


def _values(given: InputPlan) -> Mapping[str, str]:
    """What the map that makes the sides alike computes."""
    maps = ({name: value.sql for name, value in step.columns} for step in given.maps)
    return next((known for known in maps if _RIGHT in known), {})


def _value(given: InputPlan, name: str) -> str:
    value = _values(given)[name]
    return f"{given.alias}.{value}" if value.isidentifier() else value


def _equal(left: InputPlan, right: InputPlan, key: str) -> str:
    one, two = _values(left)[key], _values(right)[key]
    return one if one == two else f"{_value(left, key)} = {_value(right, key)}"
