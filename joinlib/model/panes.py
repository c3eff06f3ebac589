"""Panes: the pieces of time of which all windows are made. A row is counted once in its pane, not once in each window.

    GROUP BY auction, window_start over HOP(slide 2 s, size 10 s)

    rows ─► partials by auction and pane of 2 s ─► for each of a pane's five windows ─► partials by auction and window

Law: the partials are those that the rows of all windows give. (J. Li and others, "No pane, no gain", SIGMOD Record 34,
2005.)
"""

from dataclasses import dataclass, replace
from math import gcd

from joinlib.expr import Expr, ref
from joinlib.expr.nodes import Call, call, composed
from joinlib.expr.windows import cumulate_ends, hop_starts, tumble_start
from joinlib.model.bags import bags_of
from joinlib.model.grouping import Grouping, GroupKey
from joinlib.model.inputs import InputPlan, StoredColumn
from joinlib.model.maps import Expand, Map

PANE = "$pane"


@dataclass(frozen=True)
class Panes:
    """How partials are made by panes."""

    size_us: int
    rows: InputPlan  # the input, with the pane of a row in place of its windows
    grouping: Grouping  # its groups: the keys that are no windows, and the pane
    windows: Map  # from a partial of a pane to the keys of its groups


def panes_of(plan: InputPlan, grouping: Grouping) -> Panes | None:
    """Return how the partials of an input are made by panes; None where windows are more than keys, or there are none."""
    if plan.changes or grouping.changes or bags_of(grouping) or not plan.maps:
        return None
    *before, step = plan.maps
    if len(step.expands) != 1 or (size := _size(step.expands[0])) is None:
        return None
    (windows,) = step.expands
    (window,) = windows.columns
    values = {c.name: _composed(plan, step, c.value) for c in plan.columns}
    conditions = [step.filter, plan.filter and _composed(plan, step, plan.filter)]
    if any(condition is not None and window in condition.columns for condition in conditions):
        return None
    keys = {name: value for name, value in values.items() if window in value.columns}
    if not keys.keys() <= {k.name for k in grouping.keys} or any(
        v.columns != (window,) for v in keys.values()
    ):
        return None
    kind = windows.value.type.value_type
    columns = tuple((name, value) for name, value in step.columns if window not in value.columns)
    pane = StoredColumn(PANE, ref(f"{plan.alias}.{PANE}", kind))
    return Panes(
        size,
        replace(
            plan,
            maps=(*before, Map(step.filter, (), (*columns, (PANE, _pane(windows, size))))),
            columns=(*(c for c in plan.columns if c.name not in keys), pane),
        ),
        replace(
            grouping, keys=(*(k for k in grouping.keys if k.name not in keys), GroupKey(PANE, kind, "pane"))
        ),
        Map(
            None,
            (replace(windows, value=_of_pane(windows)),),
            tuple((k.name, keys.get(k.name) or ref(k.name, k.type)) for k in grouping.keys),
        ),
    )


def _size(windows: Expand) -> int | None:
    """Return the length of panes, µs; None if the list is not one of windows."""
    node = windows.value.node
    if windows.outer or windows.position or not isinstance(node, Call):
        return None
    if node.kernel not in (hop_starts, cumulate_ends):
        return None
    size, every, _ = node.parameters
    assert isinstance(size, int) and isinstance(every, int)
    return gcd(size, every)


def _composed(plan: InputPlan, step: Map, value: Expr) -> Expr:
    """Return a value of an input as one over the rows below its last map, and their windows."""
    below = dict(step.columns)
    return composed(value, {name: below[name.removeprefix(f"{plan.alias}.")] for name in value.columns})


def _pane(windows: Expand, size: int) -> Expr:
    """Return the start of a row's pane."""
    node, kind = windows.value.node, windows.value.type.value_type
    assert isinstance(node, Call)
    at = Expr(node.text, windows.value.columns, kind, node.arguments[0])
    return call(tumble_start, (at,), kind, f"pane of {node.text}", size, node.parameters[-1])


def _of_pane(windows: Expand) -> Expr:
    """Return the windows of a pane: those of each moment in it."""
    node, kind = windows.value.node, windows.value.type
    assert isinstance(node, Call)
    return call(node.kernel, (ref(PANE, kind.value_type),), kind, node.text, *node.parameters)
