"""Finds what clauses say of the time between two inputs.

    s.t <= o.t + INTERVAL 2 HOURS              s.t - o.t <= 2 h
    timestampdiff(MINUTE, o.t, s.t) <= 5       s.t - o.t < 6 min, and the clause is still to be checked
    CAST(s.t AS DATE) = CAST(o.t AS DATE)      they are less than a day apart, and so on

Law: a bound that is exact means what its clause means, so the clause can be dropped; `<` is `<=` less one
microsecond. Other bounds hold wherever their clauses do.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from joinlib.expr import Node, Ref, cast, dates, nodes, time, units
from joinlib.expr.bound import Bound
from joinlib.expr.calendar import DAY_US
from joinlib.expr.compare import MIRROR, Comparison
from joinlib.expr.nodes import Call, Literal, argument_of
from joinlib.expr.rows import Rule, by_rows
from joinlib.expr.time import Interval
from joinlib.sql.graph import Clause

_SECOND = 1_000_000
_ABS = "abs_checked"
_MONTHS = {"month": 31 * DAY_US, "quarter": 92 * DAY_US, "year": 366 * DAY_US}
_LONGEST = {
    name.lower(): size for name, size in units.SIZES.items()
} | _MONTHS  # what date_trunc cuts to, in microseconds


@dataclass(frozen=True)
class _Sum:
    """Event times, added or subtracted, and from `low` to `high` besides; all in microseconds.

    unit: The microseconds that 1 stands for, as in a number of seconds. None: it is a number, `low` and `high`, of whatever
        it is compared with.
    """

    signs: dict[str, int]
    low: int | Fraction
    high: int | Fraction
    unit: int | None = 1

    def wider(self, low: int, high: int, unit: int = 1) -> "_Sum":
        """Return what differs from this by `low` to `high`."""
        return _Sum(self.signs, self.low + low, self.high + high, unit)

    def minus(self, other: "_Sum") -> "_Sum | None":
        unit = other.unit if self.unit is None else self.unit
        if other.unit not in (unit, None):
            return None
        left, right = self._of(unit), other._of(unit)
        signs = {c: left.signs.get(c, 0) - right.signs.get(c, 0) for c in {**left.signs, **right.signs}}
        return _Sum({c: s for c, s in signs.items() if s}, left.low - right.high, left.high - right.low, unit)

    def plus(self, other: "_Sum") -> "_Sum | None":
        negative = _ZERO.minus(other)
        return negative and self.minus(negative)

    def _of(self, unit: int | None) -> "_Sum":
        if self.unit is not None or unit is None:
            return self
        return _Sum({}, math.floor(self.low * unit), math.ceil(self.high * unit), unit)


_ZERO = _Sum({}, 0, 0, None)


def time_bounds(clause: Clause, order: dict[str, int]) -> tuple[tuple[Bound, ...], bool]:
    """Return the bounds that follow from a clause, and whether they say all that it says.

    `order` numbers the event-time columns: the column with the lower number is the left one of a bound.
    """
    node = clause.value.node
    if not isinstance(node, Comparison):
        return (), False
    found: list[Bound] = []
    exact = True
    for total, sign in _compared(node, order):
        if sorted(total.signs.values()) != [-1, 1]:
            return (), False
        plus, minus = (next(c for c, s in total.signs.items() if s == one) for one in (1, -1))
        if total.low == total.high and total.unit == 1:
            found.append(_oriented(sign, plus, minus, -int(total.low), order))
            continue
        exact = False
        if sign in ("<", "<=", "="):
            found.append(_oriented("<=", plus, minus, -int(total.low), order))
        if sign in (">", ">=", "="):
            found.append(_oriented(">=", plus, minus, -int(total.high), order))
    return tuple(found), exact and bool(found)


def _compared(node: Comparison, order: dict[str, int]) -> Iterator[tuple[_Sum, str]]:
    """Yield sums and how they compare with zero: what the comparison says, of ABS both ends."""
    left, sign, right = node.left.node, node.sign, node.right.node
    if argument_of(right, _ABS) is not None:
        left, sign, right = right, MIRROR[sign], left
    inner = argument_of(left, _ABS)
    one, two = _sum(left if inner is None else inner, order), _sum(right, order)
    if one is None or two is None or sign in ("<>", "<=>"):
        return
    ends = [(one.minus(two), sign)]
    if inner is not None:
        ends = [*ends, (one.plus(two), MIRROR[sign])] if sign in ("<", "<=") else []
    yield from ((total, sign) for total, sign in ends if total is not None)


def _oriented(sign: str, plus: str, minus: str, limit: int, order: dict[str, int]) -> Bound:
    """The bound that `plus - minus sign limit` means, with its columns in order."""
    low = {"=": limit, ">=": limit, ">": limit + 1}.get(sign)
    high = {"=": limit, "<=": limit, "<": limit - 1}.get(sign)
    if order[minus] < order[plus]:
        return Bound(minus, plus, low, high)
    return Bound(plus, minus, None if high is None else -high, None if low is None else -low)


def _sum(node: Node, order: dict[str, int]) -> _Sum | None:
    if isinstance(node, Ref):
        return _Sum({node.name: 1}, 0, 0) if node.name in order else None
    if isinstance(node, Interval):
        return None if node.months else _Sum({}, node.micros, node.micros)
    if isinstance(node, Literal):
        return _literal(node)
    if not isinstance(node, Call) or node.kernel not in _KERNELS:
        return None
    of = [part for a in node.arguments if (part := _sum(a, order)) is not None]
    return _KERNELS[node.kernel](of, *node.parameters) if len(of) == len(node.arguments) else None


def _literal(node: Literal) -> _Sum | None:
    kind, value = node.value.type, node.value.as_py()
    if value is None:
        return None
    if pa.types.is_duration(kind):
        return _Sum({}, node.value.value, node.value.value)
    number = pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    if number or (pa.types.is_floating(kind) and math.isfinite(value)):
        return _Sum({}, Fraction(value), Fraction(value), None)
    return None


def _added(of: Sequence[_Sum], kernel: object) -> _Sum | None:
    if kernel == "subtract_checked":
        return of[0].minus(of[1])
    return of[0].plus(of[1]) if kernel == "add_checked" else None


def _later(of: Sequence[_Sum], micros: int) -> _Sum:
    return of[0].wider(micros, micros)


def _days_later(of: Sequence[_Sum], *by: Any) -> _Sum | None:
    """A day, and days that are added: a constant, or a number and its sign."""
    if len(of) == 1:
        return of[0].wider(by[0].as_py() * DAY_US, by[0].as_py() * DAY_US, DAY_US)
    return of[0].plus(of[1]) if by[0] == 1 else of[0].minus(of[1])


def _cut(of: Sequence[_Sum], unit: str) -> _Sum | None:
    return of[0].wider(1 - _LONGEST[unit], 0) if of[0].unit == 1 else None


def _converted(of: Sequence[_Sum], kind: pa.DataType, _: bool) -> _Sum | None:
    """A moment as another one, as a day, or as whole seconds; a day as a moment."""
    (value,) = of
    if list(value.signs.values()) != [1] or value.unit not in (1, DAY_US):
        return None
    if pa.types.is_timestamp(kind):
        return replace(value, unit=1)
    if pa.types.is_date32(kind):
        return value.wider(1 - DAY_US, 0, DAY_US) if value.unit == 1 else value
    return _whole(value, _SECOND) if pa.types.is_int64(kind) else None


def _whole(value: _Sum, size: int) -> _Sum | None:
    """How many times a size fits."""
    return value.wider(1 - size, size - 1, size) if value.unit == 1 else None


def _by_rows(of: Sequence[_Sum], rule: Rule) -> _Sum | None:
    more: tuple[Any, ...] = rule.more
    if rule.of is units.units_between:
        apart = of[1].minus(of[0])
        return None if apart is None else _whole(apart, more[0])
    if rule.of is units.moved_by and of[0].unit is None and not more[0]:
        return of[1].plus(_Sum({}, of[0].low * more[1], of[0].high * more[1]))
    if rule.of is units.product and not of[0].signs and of[1].unit is None:
        micros = units.product(int(of[0].low), float(of[1].low))
        return _Sum({}, micros, micros)
    return _whole(of[0], _COUNTED[rule.of]) if rule.of in _COUNTED else None


_COUNTED = {dates.cut_seconds: _SECOND, dates.seconds_of: _SECOND, dates.millis_of: 1_000}  # in microseconds
_KERNELS: dict[Callable[..., Any], Callable[..., _Sum | None]] = {
    nodes.compute: _added, by_rows: _by_rows, time.add_micros: _later, time.floor_time: _cut, cast.convert: _converted,
    time.add_days: _days_later, time.subtract_days: lambda of: of[0].minus(of[1]),
}  # fmt: skip


def intersect(bounds: Iterable[Bound]) -> tuple[Bound, ...]:
    """Merge the bounds of each pair of columns into one."""
    found: dict[tuple[str, str], Bound] = {}
    for b in bounds:
        known = found.get((b.left, b.right), Bound(b.left, b.right, None, None))
        lows = [x for x in (known.low_us, b.low_us) if x is not None]
        highs = [x for x in (known.high_us, b.high_us) if x is not None]
        found[b.left, b.right] = Bound(b.left, b.right, max(lows, default=None), min(highs, default=None))
    return tuple(found.values())
