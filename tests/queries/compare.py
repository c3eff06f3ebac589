"""Are two answers one? Numbers that are not whole may differ by a rounding; where LIMIT cuts among equals, any of them will do."""

import datetime as dt
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

Row = tuple[object, ...]
NEAR = 1e-6  # relative; DuckDB averages decimals as doubles, Spark as decimals of six places or so
SMALL = 2e-6


@dataclass(frozen=True)
class Expected:
    """`rows` must be there; with `free`, so many of those besides."""

    rows: Sequence[Row]
    free: Sequence[Row] = field(default=())
    count: int = 0  # how many of `free`


def differences(expected: Expected, found: Counter[Row]) -> str:
    """What is wrong, in words; empty: nothing."""
    left = [_plain(row) for row in found.elements()]
    wanted = len(expected.rows) + expected.count
    missing, left = matched([_plain(row) for row in expected.rows], left)
    if expected.count:
        unknown = matched(left, [_plain(row) for row in expected.free])[0]
        left = left if len(left) != expected.count or unknown else []
    if not missing and not left:
        return ""
    return f"{found.total()} rows for {wanted}; missing: {missing[:3]}; not expected: {left[:3]}"


def matched(wanted: Sequence[Row], there: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Those of either side that have no partner on the other one."""
    groups: dict[Row, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((wanted, there)):
        for row in rows:
            groups[tuple("#" if isinstance(v, float) else v for v in row)][side].append(row)
    apart: tuple[list[Row], list[Row]] = ([], [])
    for one, two in groups.values():
        two = sorted(two, key=_order)
        for row in sorted(one, key=_order):
            at = next((n for n, other in enumerate(two) if _close(row, other)), None)
            if at is None:
                apart[0].append(row)
            else:
                del two[at]
        apart[1].extend(two)
    return apart


def _order(row: Row) -> list[float]:
    return [v for v in row if isinstance(v, float)]


def _close(one: Row, two: Row) -> bool:
    return all(
        not isinstance(a, float) or math.isclose(a, b, rel_tol=NEAR, abs_tol=SMALL)  # type: ignore[arg-type]
        for a, b in zip(one, two, strict=True)
    )


def _plain(row: Row) -> Row:
    return tuple(map(plain, row))


def plain(value: object) -> object:
    """Numbers are of one kind, times without a zone."""
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return "NaN" if value != value else float(value)
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    return value
