"""As-of joins, which are window functions over the rows of both sides: what the join is in the words of the query.

u: a.x, NULL, a.k, a.at, FALSE        left side
   NULL, b.y, b.k, b.at, TRUE         right side; its last row before one of the left side is that one's partner
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from joinlib.model.inputs import InputPlan
from joinlib.model.stage import OverStage
from joinlib.plan.explain.asof import asof, clause_of

_SIDE = "$right"


@dataclass(frozen=True)
class AsOf:
    """An as-of join."""

    left: str  # what its sides are called
    right: str
    inner: bool
    where: str  # where the partner of a row is: before it
    clause: str  # what the partner must fulfil besides, and WHERE; empty: nothing


def asof_of(plain: OverStage, told: OverStage, shown: Callable[[InputPlan], str]) -> AsOf | None:
    """Return the as-of join that a stage computes; None if it computes none.

    told: the stage in the words of the text. shown: what an input is called that is no stage.
    """
    if not asof(told):
        return None
    sides = {
        _map(given)[_SIDE] == "TRUE": (shown(given) if given.upstream is None else named.alias, _map(given))
        for given, named in zip(plain.inputs, told.inputs, strict=True)
    }
    time, first = plain.over.calls[0].order
    inner = any(call.arguments[0][0] == call.condition for call in plain.over.calls)
    clause = clause_of(told.over.qualify.sql if told.over.qualify is not None else "", sides)
    where = f"{'after' if time.descending else 'before'} it{', or of its time' if first.descending else ''}"
    return AsOf(sides[False][0], sides[True][0], inner, where, clause)


def _map(given: InputPlan) -> Mapping[str, str]:
    """Return the expressions of a side by the names that both sides have."""
    maps = ({name: value.sql for name, value in step.columns} for step in given.maps)
    return next((known for known in maps if _SIDE in known), {})
