"""What must come out: a nested loop over plain rows, and DuckDB over the same SQL text. Neither shares code with the engine.

A condition is told twice, as SQL and as a function, so that it can be drawn at random.
"""

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from tests.laws.harness import counted

Row = dict[str, object]  # "a.k" -> value; a missing side has all its columns None


@dataclass(frozen=True)
class Condition:
    """Something that must be true of a pair."""

    sql: str
    test: Callable[[Row], bool | None]
    keyed: bool = False  # an equality
    compared: tuple[str, ...] = ()  # columns whose NULLs are dropped where they are read, if there is no key


@dataclass(frozen=True)
class Query:
    """A tree of joins: `tree` is an alias, or (kind, left, right, conditions)."""

    select: tuple[str, ...]
    tree: "Tree"
    where: tuple[Condition, ...] = ()
    sorts: bool = False  # strategy inequality: a NULL that is compared drops the row, with a key too

    @property
    def compared(self) -> dict[str, tuple[str, ...]]:
        """Columns of each input that a join without a key compares."""
        assert isinstance(self.tree, tuple)
        on = self.tree[3]
        named = (
            []
            if any(c.keyed for c in on) and not self.sorts
            else [n.split(".") for c in on for n in c.compared]
        )
        return {alias: tuple(c for a, c in named if a == alias) for alias, _ in named}

    @property
    def sql(self) -> str:
        columns = ", ".join(f"{c} AS {c.replace('.', '_')}" for c in self.select)
        where = " AND ".join(c.sql for c in self.where)
        return f"SELECT {columns} {self.source}" + (f" WHERE {where}" if where else "")

    @property
    def source(self) -> str:
        """The joins as SQL."""
        return f"FROM {_text(self.tree)}"

    def nested_loop(self, rows: Mapping[str, Sequence[Row]]) -> Counter[tuple[object, ...]]:
        """By definition."""
        found = [r for r in joined(self.tree, rows) if all(c.test(r) for c in self.where)]
        return counted([tuple(r.get(c) for c in self.select) for r in found])

    def duckdb(self, tables: Mapping[str, pa.Table]) -> Counter[tuple[object, ...]]:
        """By another engine."""
        return duckdb_rows(self.sql, tables)


Tree = str | tuple[str, "Tree", "Tree", tuple[Condition, ...]]

_DUCKDB = duckdb.connect(config={"threads": 1})
_DUCKDB.execute("CREATE MACRO unix_timestamp(t) AS CAST(epoch(t) AS BIGINT)")
_DUCKDB.execute("SET TimeZone = 'UTC'")


def duckdb_rows(sql: str, tables: Mapping[str, pa.Table]) -> Counter[tuple[object, ...]]:
    """What DuckDB answers."""
    text = sql.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")
    with _DUCKDB.cursor() as cursor:
        for name, table in tables.items():
            cursor.register(name, table)
        return rows_of(cursor.sql(text).to_arrow_table())


def rows_of(table: pa.Table) -> Counter[tuple[object, ...]]:
    return counted(list(zip(*(c.to_pylist() for c in table.columns))))


_WORDS = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI JOIN",
}


def _text(tree: Tree) -> str:
    if isinstance(tree, str):
        return tree
    kind, left, right, on = tree
    return f"{_text(left)} {_WORDS[kind]} {_text(right)} ON {' AND '.join(c.sql for c in on)}"


def joined(tree: Tree, rows: Mapping[str, Sequence[Row]]) -> list[Row]:
    """The rows of a tree of joins."""
    if isinstance(tree, str):
        return [{f"{tree}.{name}": value for name, value in row.items()} for row in rows[tree]]
    kind, left, right, on = tree
    one, two = joined(left, rows), joined(right, rows)
    pairs = [
        (x, y) for x in range(len(one)) for y in range(len(two)) if all(c.test(one[x] | two[y]) for c in on)
    ]
    hit, met = {x for x, _ in pairs}, {y for _, y in pairs}
    if kind == "semi":
        return [r for x, r in enumerate(one) if x in hit]
    if kind == "anti":
        return [r for x, r in enumerate(one) if x not in hit]
    out = [one[x] | two[y] for x, y in pairs]
    if kind in ("left", "full"):
        out += [r for x, r in enumerate(one) if x not in hit]
    if kind in ("right", "full"):
        out += [r for y, r in enumerate(two) if y not in met]
    return out


def same(left: str, right: str) -> Condition:
    """Equal as Spark has it: NULL is nothing's equal, NaN is NaN's."""

    def test(row: Row) -> bool:
        a, b = row.get(left), row.get(right)
        return a is not None and b is not None and (a == b or (a != a and b != b))

    return Condition(f"{left} = {right}", test, keyed=True)


def unsure(left: str, right: str) -> Condition:
    """Equality is TRUE or NULL."""
    equal = same(left, right)

    def test(row: Row) -> bool | None:
        return row.get(left) is None or row.get(right) is None or equal.test(row)

    return Condition(f"coalesce({left} = {right}, TRUE)", test)


def next_to(left: str, right: str) -> Condition:
    """An equality of an expression: `right` is one more than `left`."""

    def test(row: Row) -> bool:
        a, b = row.get(left), row.get(right)
        return a is not None and b is not None and a + 1 == b  # type: ignore[operator]

    return Condition(f"{left} + 1 = {right}", test, keyed=True)


_SIGNS: dict[str, Callable[[object, object], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<>": operator.ne,
}  # fmt: skip


def compared(left: str, sign: str, right: str) -> Condition:
    """As Spark has it: NaN equals NaN and is greater than every number."""

    def test(row: Row) -> bool | None:
        a, b = row.get(left), row.get(right)
        return None if a is None or b is None else _SIGNS[sign](rank(a), rank(b))

    return Condition(f"{left} {sign} {right}", test, compared=(left, right))


def rank(value: object) -> tuple[bool, object]:
    return (True, 0) if value != value else (False, value)


def near(left: str, right: str, by: float) -> Condition:
    """A band."""

    def test(row: Row) -> bool | None:
        a, b = row.get(left), row.get(right)
        return None if a is None or b is None else abs(a - b) <= by  # type: ignore[operator]

    return Condition(f"ABS({left} - {right}) <= {by}", test)


def band_end(left: str, sign: str, right: str, by: float) -> Condition:
    """An end of a band, or both."""

    def test(row: Row) -> bool | None:
        a, b = row.get(left), row.get(right)
        return None if a is None or b is None else _SIGNS[sign](a - b, by)  # type: ignore[operator]

    return Condition(f"{left} - {right} {sign} {by}", test)


def odd(left: str, right: str) -> Condition:
    """Of both sides at once: nothing can be sorted by it."""

    def test(row: Row) -> bool | None:
        a, b = row.get(left), row.get(right)
        return None if a is None or b is None else (a + b) % 2 == 1  # type: ignore[operator]

    return Condition(f"({left} + {right}) % 2 = 1", test)


def apart(left: str, right: str, low_s: int | None, high_s: int | None, counted: bool = False) -> Condition:
    """low <= right - left <= high, in seconds. counted: as numbers; the times are whole seconds."""

    def test(row: Row) -> bool:
        a, b = row.get(left), row.get(right)
        if a is None or b is None:
            return False
        seconds = (b - a).total_seconds()  # type: ignore[operator]
        return (low_s is None or seconds >= low_s) and (high_s is None or seconds <= high_s)

    def end(sign: str, seconds: int) -> str:
        if counted:
            return f"unix_timestamp({right}) - unix_timestamp({left}) {sign} {seconds}"
        return f"{right} {sign} {left} + INTERVAL '{seconds}' SECONDS"

    sides = [end(sign, s) for sign, s in ((">=", low_s), ("<=", high_s)) if s is not None]
    return Condition(" AND ".join(sides), test)


def differ(left: str, right: str) -> Condition:
    """A condition that no index knows."""
    return Condition(
        f"{left} <> {right}",
        lambda r: r.get(left) is not None and r.get(right) is not None and r[left] != r[right],
    )


def missing(column: str) -> Condition:
    return Condition(f"{column} IS NULL", lambda r: r.get(column) is None)
