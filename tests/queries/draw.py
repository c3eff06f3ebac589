"""Values drawn at random, most of them such that a query's conditions hold.

A column's pool is what the query compares it with (and numbers between), and a few values of no meaning. Columns that are
called alike but for the table's prefix (`s_zip`, `ca_zip`) share one, since queries compare them.
"""

import datetime as dt
import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random

from tests.queries.hints import Value

SHARED = ("city", "county", "state", "zip", "country")
NULLS = 0.03
FIRST = dt.date(1995, 1, 1)


@dataclass(frozen=True)
class Shape:
    """How a query's tables are drawn. Equal shapes are equal rows."""

    seed: int = 1
    rows: int = 400  # of a table of facts
    wide: float = 1.0  # tables of dimensions have so many times the rows
    spread: int = 3  # values of a pool that the query compares with
    focus: float = 0.8  # so often such a value is drawn


class Draw:
    """Draws the values of columns."""

    def __init__(self, hints: dict[str, list[Value]], shape: Shape) -> None:
        self.shape, self.hints = shape, _shared(hints)
        self.random = Random(shape.seed)
        self.pools: dict[str, list[Value]] = {}

    def value(self, name: str, kind: str, null: float = NULLS) -> Value | None:
        """A value of a column of this type; NULL so often."""
        if self.random.random() < null:
            return None
        key = family(name)
        if key not in self.pools:
            self.pools[key] = self._pool(key, kind)
        known = self.pools[key]
        if known and self.random.random() < self.shape.focus:
            return fitted(self.random.choice(known), kind)
        return self._any(key, kind)

    def _pool(self, key: str, kind: str) -> list[Value]:
        """What the query compares with, as far as the column's type has it."""
        found = [v for v in self.hints.get(key, ()) if fitted(v, kind) is not None]
        if kind == "STRING":
            return self.random.sample(found, min(len(found), self.shape.spread))
        numbers = sorted(set(found))  # type: ignore[type-var]
        return (
            numbers
            + [_between(a, b) for a, b in itertools.pairwise(numbers)]
            + [_after(n) for n in numbers[-1:]]
        )

    def _any(self, key: str, kind: str) -> Value:
        if kind == "STRING":
            return f"{key} {self.random.randint(1, 3)}"
        if kind == "DATE":
            return FIRST + dt.timedelta(days=self.random.randint(0, 900))
        if kind.startswith("DECIMAL"):
            return Decimal(self.random.randint(0, 30000)).scaleb(-2)
        return self.random.randint(0, 100)


def family(name: str) -> str:
    """The pool of a column."""
    last = name.rsplit("_", 1)[-1]
    return last if last in SHARED else name


def _shared(hints: dict[str, list[Value]]) -> dict[str, list[Value]]:
    found: dict[str, list[Value]] = defaultdict(list)
    for name, values in hints.items():
        found[family(name)] += [v for v in values if v not in found[family(name)]]
    return found


def fitted(value: Value, kind: str) -> Value | None:
    """The value as one of this type; None: it is none."""
    if kind == "STRING":
        return value if isinstance(value, str) else value.isoformat() if isinstance(value, dt.date) else None
    if kind == "DATE":
        return value if isinstance(value, dt.date) else None
    if isinstance(value, str):
        if not value.lstrip("-").isdigit():
            return None
        value = int(value)
    if not isinstance(value, int | Decimal):
        return None
    if kind in ("INT", "BIGINT"):
        return int(value)
    return Decimal(value).quantize(Decimal("0.01")) if abs(value) < 100_000 else None


def _between(low: Value, high: Value) -> Value:
    if isinstance(low, dt.date) and isinstance(high, dt.date):
        return low + (high - low) // 2
    return (low + high) / 2 if isinstance(low, Decimal) or isinstance(high, Decimal) else (low + high) // 2  # type: ignore[operator]


def _after(value: Value) -> Value:
    return value + (dt.timedelta(days=20) if isinstance(value, dt.date) else 1)  # type: ignore[operator]


def lines(random: Random, rows: int, sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Numbers of orders and of their lines: so many rows in orders of these sizes."""
    found: list[tuple[int, int]] = []
    order = 0
    while len(found) < rows:
        order += 1
        found += [(order, line) for line in range(1, random.choice(sizes) + 1)]
    return found[:rows]
