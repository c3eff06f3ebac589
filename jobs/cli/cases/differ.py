"""How do found rows differ from those expected? Rows have no order; numbers of type DOUBLE may differ by a rounding.

Cost: a pass over the rows; those that have no equal are compared with each other.
"""

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joinlib.expr.equality import key

Row = tuple[Any, ...]
_NEAR = 1e-9  # relative
_SHOWN = 10  # rows of each side


@dataclass(frozen=True)
class Difference:
    """The first difference, and all rows that are only on one side.

    `row`: number of the expected row, from 0; None: a row more than expected has come. `column`: the first one that
    differs from the nearest row; None: there is none near.
    """

    columns: tuple[str, ...]
    missing: tuple[Row, ...]
    more: tuple[Row, ...]
    row: int | None = None
    column: str | None = None
    expected: Any = None
    found: Any = None

    @property
    def text(self) -> str:
        """The first difference in words."""
        if self.row is None:
            return f"a row more than expected: {self._row(self.more[0])}"
        if self.column is None:
            return f"row {self.row + 1} has not come: {self._row(self.missing[0])}"
        return (
            f"row {self.row + 1}, column {self.column}: expected {shown(self.expected)},"
            f" got {shown(self.found)}"
        )

    @property
    def lines(self) -> list[str]:
        """The rows of one side alone: `-` is expected and has not come, `+` has come and is not expected."""
        both = [("-", row) for row in self.missing[:_SHOWN]] + [("+", row) for row in self.more[:_SHOWN]]
        left = max(len(self.missing) - _SHOWN, 0) + max(len(self.more) - _SHOWN, 0)
        return [f"{sign} {self._row(row)}" for sign, row in both] + ([f"… {left} rows more"] if left else [])

    def _row(self, row: Row) -> str:
        return f"{{{', '.join(f'{n}: {shown(v)}' for n, v in zip(self.columns, row, strict=True))}}}"


def difference(columns: Sequence[str], expected: Sequence[Row], found: Sequence[Row]) -> Difference | None:
    """Return how the found rows differ from the expected ones; None if they do not."""
    missing, more = _apart(expected, found)
    if not missing and not more:
        return None
    sides = tuple(columns), tuple(row for _, row in missing), tuple(more)
    if not missing:
        return Difference(*sides)
    number, row = missing[0]
    near = max(more, key=lambda other: _alike(row, other), default=None)
    if near is None or (len(columns) > 1 and not _alike(row, near)):
        return Difference(*sides, number)
    at = next(n for n, (a, b) in enumerate(zip(row, near, strict=True)) if not _equal(a, b))
    return Difference(*sides, number, columns[at], row[at], near[at])


def _apart(expected: Sequence[Row], found: Sequence[Row]) -> tuple[list[tuple[int, Row]], list[Row]]:
    """Return the rows of either side that have no equal on the other, those expected with their numbers."""
    there: dict[Any, list[Row]] = defaultdict(list)
    for row in found:
        there[key(row)].append(row)
    missing = []
    for number, row in enumerate(expected):
        if equal := there.get(key(row)):
            equal.pop()
        else:
            missing.append((number, row))
    more = [row for rows in there.values() for row in rows]
    left = []
    for number, row in missing:
        at = next((n for n, other in enumerate(more) if all(map(_equal, row, other))), None)
        if at is None:
            left.append((number, row))
        else:
            del more[at]
    return left, more


def _alike(row: Row, other: Row) -> int:
    return sum(map(_equal, row, other))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isfinite(one) and math.isfinite(other):
        return math.isclose(one, other, rel_tol=_NEAR)
    return bool(key(one) == key(other))


def shown(value: Any) -> str:
    """Return a value as YAML has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.date):  # datetime too
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k}: {shown(v)}' for k, v in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown, value))}]"
    return repr(value) if isinstance(value, str | bytes) else str(value)
