"""Explains NOT IN over values that may be NULL: where rows meet, what that costs, and how to avoid it."""

from collections.abc import Iterator

from joinlib.model.inputs import InputPlan
from joinlib.model.joins import Leaf
from joinlib.model.operator import Operator
from joinlib.model.stage import Stage


def not_in(stage: Stage, join: Operator) -> Iterator[str]:
    """Explain why the second input of a join without a key is read a second time."""
    if len(join.children) < 2:
        return
    given = join.children[1]
    if join.kind != "anti" or join.sides[0].keys or not isinstance(given, Leaf):
        return
    plan = stage.inputs[given.input]
    source = plan.source if plan.upstream is None else f"the result of stage {plan.upstream}"
    if join.index == "scan":
        yield (
            f"NOT IN: a NULL excludes every row, so {plan.alias} = {source} takes the rows of"
            f" {source} that have one to each of the {stage.units} units; ... IS NOT NULL in the"
            " subquery avoids that"
        )
        return
    apart = next((i.apart for i in stage.inputs if i.apart is not None), None)
    if apart is None:  # values without a key: all rows meet in one unit anyway
        return
    yield (
        f"NOT IN: rows for which {apart.sql} are excluded by any row of {source}, so they go to one"
        f" unit, and {plan.alias} = {source} takes a copy of every row there{_stored(plan, join)}; ..."
        " IS NOT NULL in WHERE avoids that"
    )


def _stored(plan: InputPlan, join: Operator) -> str:
    names = [c.name for c in plan.columns]
    if {c for bound in join.bounds for c in (bound.left, bound.right)}.issuperset(names):
        return ", of which few are stored, since they differ only in their time"
    return f" ({', '.join(names)})"
