"""Finds the clauses that bound the time between two inputs: `s.t <= o.t +
INTERVAL 2 HOURS` means s.t - o.t <= 2 h.

Law: a bound means exactly what its clause means, so the clause can be dropped; `<` is `<=` less one
microsecond.
"""

from collections.abc import Iterable

import pyarrow as pa

from joinlib.expr import Node, Ref
from joinlib.expr.bound import Bound
from joinlib.expr.compare import Comparison
from joinlib.expr.nodes import Call, Literal, compute
from joinlib.expr.time import Interval, add_micros
from joinlib.sql.graph import Clause

Sum = tuple[dict[str, int], int]  # the sign of each column, and a constant in microseconds


def time_bound(clause: Clause, order: dict[str, int]) -> Bound | None:
    """Return the bound that a clause means, or None.

    `order` numbers the event-time columns: the column with the lower number is the left one of the bound.
    """
    node = clause.value.node
    if not isinstance(node, Comparison) or node.sign in ("<>", "<=>"):
        return None
    left, right = _sum(node.left.node, order), _sum(node.right.node, order)
    if left is None or right is None:
        return None
    signs, micros = _minus(left, right)
    if sorted(signs.values()) != [-1, 1]:
        return None
    plus, minus = (next(c for c, s in signs.items() if s == sign) for sign in (1, -1))
    return _oriented(node.sign, plus, minus, -micros, order)


def _oriented(sign: str, plus: str, minus: str, limit: int, order: dict[str, int]) -> Bound:
    """The bound that `plus - minus sign limit` means, with its columns in order."""
    low = {"=": limit, ">=": limit, ">": limit + 1}.get(sign)
    high = {"=": limit, "<=": limit, "<": limit - 1}.get(sign)
    if order[minus] < order[plus]:
        return Bound(minus, plus, low, high)
    return Bound(plus, minus, None if high is None else -high, None if low is None else -low)


def _sum(node: Node, order: dict[str, int]) -> Sum | None:
    if isinstance(node, Ref):
        return ({node.name: 1}, 0) if node.name in order else None
    if isinstance(node, Interval):
        return None if node.months else ({}, node.micros)
    if isinstance(node, Literal) and pa.types.is_duration(node.value.type) and node.value.is_valid:
        return {}, node.value.value
    if not isinstance(node, Call):
        return None
    parts = [_sum(a, order) for a in node.arguments]
    if any(p is None for p in parts):
        return None
    known = [p for p in parts if p is not None]
    if node.kernel is add_micros and isinstance(node.parameters[0], int):
        return known[0][0], known[0][1] + node.parameters[0]
    if node.kernel is compute and node.parameters == ("subtract_checked",):
        return _minus(*known)
    if node.kernel is compute and node.parameters == ("add_checked",):
        return _minus(known[0], _minus(({}, 0), known[1]))
    return None


def _minus(left: Sum, right: Sum) -> Sum:
    signs = {c: left[0].get(c, 0) - right[0].get(c, 0) for c in {**left[0], **right[0]}}
    return {c: s for c, s in signs.items() if s}, left[1] - right[1]


def intersect(bounds: Iterable[Bound]) -> tuple[Bound, ...]:
    """Merge the bounds of each pair of columns into one."""
    found: dict[tuple[str, str], Bound] = {}
    for b in bounds:
        known = found.get((b.left, b.right), Bound(b.left, b.right, None, None))
        lows = [x for x in (known.low_us, b.low_us) if x is not None]
        highs = [x for x in (known.high_us, b.high_us) if x is not None]
        found[b.left, b.right] = Bound(b.left, b.right, max(lows, default=None), min(highs, default=None))
    return tuple(found.values())
