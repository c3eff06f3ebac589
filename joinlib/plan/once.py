"""Finds self-joins that store their stream once: both inputs of an inner join are one source, alike in all but name.

    FROM trips a JOIN trips b ON a.distance > b.distance AND a.fare < b.fare
    b is a *twin* of a: its rows are not sent, and not stored, besides those of a (`state.twin`)

Law: at the end of every batch each unit would have stored the same rows of both. So they must pass the same filters,
have the same key and time, and lie in the same units. Both store the columns that one of them needs, and an index
serves both where they are compared by the same columns.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from joinlib.expr import Expr, ref
from joinlib.model.inputs import InputPlan
from joinlib.plan.columns import Need
from joinlib.plan.forms import Forms
from joinlib.plan.operator import Choice, shared
from joinlib.sql import JoinNode, Scan


def possible(tree: JoinNode | Scan, plans: Sequence[InputPlan]) -> bool:
    """Return whether a stage is an inner join of an input, whose rows only come, with itself."""
    if isinstance(tree, Scan) or tree.kind != "inner" or len(plans) != 2:
        return False
    one, other = plans
    return one.source == other.source and not any(p.upstream is not None or p.changes for p in plans)


def united(need: Need, plans: Sequence[InputPlan]) -> Need:
    """Return what is needed where each input stores the columns of both."""
    names = {_bare(c.name, plan) for plan in plans for c in plan.columns}
    stored = {plan.alias: need.of(plan.alias) | {f"{plan.alias}.{n}" for n in names} for plan in plans}
    return replace(need, stored={**need.stored, **stored})


def alike(plans: Sequence[InputPlan], choice: Choice) -> bool:
    """Return whether all that decides which rows are stored, where, and how they are found is alike."""
    cells = choice.route.cells if choice.route is not None else None
    if cells is not None and cells.low != -cells.high:
        return False  # a row's partners of one name lie elsewhere than those of the other
    if _apart(choice) == 1:
        return False  # of two units each stores one name; to search for both in each takes longer
    compared = [(m.left, m.right) for m in choice.index_conditions]
    forms = _Forms(plans)
    one, other = map(forms.stored, plans)
    pairs = (*compared, *([cells.values] if cells is not None else []))
    return one == other and all(forms.of(left) == forms.of(right) for left, right in pairs)


def twins(plans: Sequence[InputPlan]) -> tuple[InputPlan, ...]:
    """Return the inputs, the second as a twin of the first."""
    one, other = plans
    return one, replace(other, twin=one.number)


def routed(choice: Choice) -> Choice:
    """Return the choice with the rows of both inputs in one group of units.

    Rows at random are stored in half of the units, as each input was: a new row, which asks as either of two, then
    asks no more units than before.
    """
    if choice.route is None:
        return choice
    groups = shared(units, 1).groups if (units := _apart(choice)) else choice.route.groups
    return replace(choice, route=replace(choice.route, groups=groups, once=True))


def _apart(choice: Choice) -> int:
    """Return how many units store the first input where others store the second; 0: all store both."""
    route = choice.route
    return 0 if route is None or route.groups[0] == route.groups[1] else route.groups[0].units


class _Forms:
    """Tells what is the same of two inputs but for their names."""

    def __init__(self, plans: Sequence[InputPlan]) -> None:
        self._forms = Forms()
        stored = {_bare(name, plan) for plan in plans for c in plan.columns for name in c.value.columns}
        names = stored.union(*(plan.read for plan in plans))  # a row's number is not read
        known = {name: self._forms.expr(ref(name, pa.null()), {}) for name in names}
        self._columns = {f"{plan.alias}.{name}": number for plan in plans for name, number in known.items()}

    def of(self, value: Expr | None) -> int | None:
        return None if value is None else self._forms.expr(value, self._columns)

    def stored(self, plan: InputPlan) -> Any:
        """Return what an input reads, drops and stores."""
        columns = [(_bare(c.name, plan), self.of(c.value)) for c in plan.columns]
        keys = [_bare(key, plan) for key in plan.keys]
        return columns, keys, plan.time and _bare(plan.time, plan), plan.read, self.of(plan.filter)


def _bare(column: str, plan: InputPlan) -> str:
    return column.removeprefix(f"{plan.alias}.")
