"""How far behind the watermark a value can be.

Law: if no column of a row is further behind the watermark than given, then neither is the value than returned.

    SELECT at, $tumble(at, 10 min) AS begin, begin + 10 min AS end FROM t      at: 0   begin: 10 min   end: 0
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from joinlib.expr import Expr, Node, Ref
from joinlib.expr.cast import DAY, convert
from joinlib.expr.nodes import Call, Literal
from joinlib.expr.time import add_days, add_micros, floor_time
from joinlib.expr.types import is_time, is_timestamp
from joinlib.expr.windows import cumulate_ends, hop_starts, tumble_start


@dataclass(frozen=True)
class Rising:
    """A column that is an event time, or follows one: of rows to come it is never further behind than this."""

    column: str
    behind_us: int  # µs behind the watermark; negative: it is always ahead
    family: str  # columns of one family differ by constants: the column less its offset is the same in all
    offset_us: int = 0


def risen(columns: Iterable[tuple[str, Expr]], below: Mapping[str, Rising], layer: str) -> tuple[Rising, ...]:
    """Return which computed columns rise, and how far behind they may be.

    below: the rising columns that they are computed of, by name; layer: text that tells these columns from those
    below.
    """
    known = {name: rising.behind_us for name, rising in below.items()}
    found = []
    for name, value in columns:
        if not is_timestamp(value.type) or (late := behind(value, known)) is None:
            continue
        node, offset = value.node, 0
        while isinstance(node, Call) and node.kernel is add_micros:
            offset += int(str(node.parameters[0]))
            (node,) = node.arguments
        if isinstance(node, Ref):
            base = below[node.name]
            found.append(Rising(name, late, base.family, base.offset_us + offset))
        else:
            assert isinstance(node, Call)
            found.append(Rising(name, late, f"{layer}{node.text}", offset))
    return tuple(found)


_LONGEST = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000,
    "day": DAY, "week": 7 * DAY, "month": 31 * DAY, "quarter": 92 * DAY, "year": 366 * DAY,
}  # fmt: skip


def behind(value: Expr, known: Mapping[str, int]) -> int | None:
    """Return by how many µs at most a value is behind the watermark; None if it may be any time.

    known: for columns, µs that they may be behind it. Of a list it is the first and least element that counts.
    It is negative if the value is always ahead of the watermark.
    """
    return _behind(value.node, known)


def _behind(node: Node, known: Mapping[str, int]) -> int | None:
    if isinstance(node, Ref):
        return known.get(node.name)
    if not isinstance(node, Call) or not all(isinstance(a, Literal) for a in node.arguments[1:]):
        return None
    below = _behind(node.arguments[0], known)
    if below is None:
        return None
    more = _falls(node)
    return None if more is None else below + more


def _falls(node: Call) -> int | None:
    """By how many µs at most the value of a call is less than its argument."""
    kernel, given = node.kernel, node.parameters
    if kernel is floor_time:
        return _LONGEST[str(given[0])] - 1
    if kernel is add_micros:
        return -int(str(given[0]))
    if kernel is add_days and isinstance(days := node.arguments[1], Literal):
        return -days.value.as_py() * int(str(given[0])) * DAY
    if kernel in (tumble_start, hop_starts):
        return int(str(given[0])) - 1
    if kernel is cumulate_ends:
        return -1
    if kernel is convert:
        return DAY - 1 if is_time(given[0]) else None  # to DATE: the start of the day
    return None
