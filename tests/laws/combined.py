"""What is drawn for the law of combinations: joins of streams and tables of any kind, and what is asked of the joined rows.

A question is told twice, as SQL for the product and DuckDB, and as plain loops: over pairs of rows (`oracle`), then over groups.
"""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations
from statistics import median
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.laws.harness import counted
from tests.laws.oracle import (
    Condition,
    Query,
    Row,
    Tree,
    apart,
    compared,
    differ,
    joined,
    missing,
    near,
    next_to,
    odd,
    rank,
    same,
    unsure,
)

STREAMS, TABLES = "abcd", "pq"
KEYS: dict[tuple[str, str], Sequence[object]] = {  # types of k in streams and in tables: what it may be
    ("BIGINT", "BIGINT"): [0, 1, 2, None],
    ("BIGINT", "INT"): [0, -1, 7, None],
    ("STRING", "STRING"): ["", "a", "b" * 9, None],
    ("DOUBLE", "DOUBLE"): [0.0, -0.0, float("nan"), 1.5, None],
    ("DECIMAL(5,2)", "DECIMAL(7,3)"): [Decimal("0.00"), Decimal("-1.50"), None],
    ("DATE", "DATE"): [dt.date(2024, 1, 1), dt.date(1969, 12, 31), None],
}
TYPES = {
    "BIGINT": pa.int64(),
    "INT": pa.int32(),
    "STRING": pa.string(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "DECIMAL(5,2)": pa.decimal128(5, 2),
    "DECIMAL(7,3)": pa.decimal128(7, 3),
}
STRANGERS = {  # values of k that no row has
    "BIGINT": 99,
    "STRING": "none",
    "DOUBLE": 99.5,
    "DECIMAL(5,2)": Decimal("9.99"),
    "DATE": dt.date(2000, 1, 1),
}
INNER = ("inner",)
ANY = ("inner", "inner", "left", "right", "full", "semi", "anti")
LOOKED_UP = ("inner", "left", "semi", "anti")
ASKED_OF = {
    "exists": "semi",
    "in": "semi",
    "not exists": "anti",
    "not in": "anti",
}  # subqueries in WHERE, and the joins that they are


@dataclass(frozen=True)
class Value:
    """A column of joined rows, or what is computed of one."""

    sql: str
    of: Callable[[Row], object]


def column(name: str) -> Value:
    return Value(name, lambda row: row.get(name))


@dataclass(frozen=True)
class Call:
    """An aggregate function; of all rows of a group if there is no argument. `where`: only of rows for which this is true."""

    function: str
    argument: Value | None = None
    distinct: bool = False
    where: Value | None = None

    @property
    def sql(self) -> str:
        of = f"{'DISTINCT ' * self.distinct}{self.argument.sql if self.argument else '*'}"
        return f"{self.function}({of})" + (f" FILTER (WHERE {self.where.sql})" if self.where else "")

    def of(self, rows: Sequence[Row]) -> object:
        rows = [r for r in rows if self.where is None or self.where.of(r)]
        if self.argument is None:
            return len(rows)
        values = [v for r in rows if (v := self.argument.of(r)) is not None]
        if self.distinct:
            values = [*dict(zip(_alike(values), values, strict=True)).values()]
        if self.function == "count":
            return len(values)
        return _FUNCTIONS[self.function](values) if values else None


_FUNCTIONS: dict[str, Callable[[list[Any]], object]] = {
    "sum": sum,
    "min": lambda v: min(v, key=rank),
    "max": lambda v: max(v, key=rank),
    "avg": lambda v: sum(v) / len(v),
    "median": lambda v: float(median(v)),
}


@dataclass(frozen=True)
class Subquery:
    """A condition of WHERE over an input that is named there only."""

    kind: str
    name: str
    on: tuple[Condition, ...]

    @property
    def sql(self) -> str:
        if self.kind in ("in", "not in"):
            equality = self.on[0].sql.removeprefix("coalesce(").removesuffix(", TRUE)")
            left, right = equality.split(" = ")
            where = f" WHERE {' AND '.join(c.sql for c in self.on[1:])}" if self.on[1:] else ""
            return f"{left} {self.kind.upper()} (SELECT {right} FROM {self.name}{where})"
        return f"{self.kind.upper()} (SELECT 1 FROM {self.name} WHERE {' AND '.join(c.sql for c in self.on)})"


@dataclass(frozen=True)
class Question:
    """A SELECT: its joins, the subqueries of its WHERE, and what is asked of the rows: themselves, or groups."""

    joins: Query
    subqueries: tuple[Subquery, ...]
    keys: tuple[Value, ...]  # or the columns, where nothing is grouped
    calls: tuple[Call, ...] = ()
    grouped: bool = False
    distinct: bool = False
    having: tuple[Call, int] | None = None  # it is greater than that

    @property
    def sql(self) -> str:
        items = [f"{value.sql} AS c{at}" for at, value in enumerate((*self.keys, *self.calls))]
        text = f"SELECT {'DISTINCT ' * self.distinct}{', '.join(items)} {self.joins.source}"
        where = [*(c.sql for c in self.joins.where), *(s.sql for s in self.subqueries)]
        text += f" WHERE {' AND '.join(where)}" if where else ""
        text += f" GROUP BY {', '.join(k.sql for k in self.keys)}" if self.grouped and self.keys else ""
        return text + (f" HAVING {self.having[0].sql} > {self.having[1]}" if self.having else "")

    @property
    def inputs(self) -> str:
        """All that it names."""
        return "".join(_leaves(self._whole))

    @property
    def waits(self) -> bool:
        """Does a stream's row come out only when no partner of another can come any more?"""
        return _waits(self._whole)

    def within(self, seconds: int) -> "Question":
        """The same, of streams' rows whose times are no further apart: all that join.retention asks for."""
        streams = [n for n in self.inputs if n in STREAMS]
        more = [apart(f"{one}.t", f"{two}.t", -seconds, seconds) for one, two in combinations(streams, 2)]
        return replace(self, joins=replace(self.joins, where=(*self.joins.where, *more)))

    def loops(self, rows: Mapping[str, Sequence[Row]]) -> Counter[tuple[object, ...]]:
        """By definition."""
        found = [r for r in joined(self._whole, rows) if all(c.test(r) for c in self.joins.where)]
        if not self.grouped:
            all_ = counted([tuple(k.of(r) for k in self.keys) for r in found])
            return Counter(list(all_)) if self.distinct else all_
        groups: dict[tuple[object, ...], list[Row]] = {} if self.keys else {(): []}
        for row in found:
            groups.setdefault(_alike([k.of(row) for k in self.keys]), []).append(row)
        return counted(
            [(*key, *(c.of(own) for c in self.calls)) for key, own in groups.items() if self._kept(own)]
        )

    def _kept(self, rows: Sequence[Row]) -> bool:
        if self.having is None:
            return True
        value = self.having[0].of(rows)
        return value is not None and value > self.having[1]  # type: ignore[operator]

    @property
    def _whole(self) -> Tree:
        tree = self.joins.tree
        for asked in self.subqueries:
            tree = (ASKED_OF[asked.kind], tree, asked.name, asked.on)
        return tree


def _alike(key: Sequence[object]) -> tuple[object, ...]:
    """NaN is a value of a key."""
    return tuple("NaN" if v != v else v for v in key)


def _leaves(tree: Tree) -> list[str]:
    return [tree] if isinstance(tree, str) else [*_leaves(tree[1]), *_leaves(tree[2])]


def shown(tree: Tree) -> list[str]:
    """The inputs whose columns can be named above."""
    if isinstance(tree, str):
        return [tree]
    kind, left, right, _ = tree
    return [*shown(left), *([] if kind in ("semi", "anti") else shown(right))]


def _waits(tree: Tree) -> bool:
    if isinstance(tree, str):
        return False
    kind, left, right, _ = tree
    looked_up = left in [*TABLES] or right in [*TABLES]
    return (kind in ("left", "right", "full", "anti") and not looked_up) or _waits(left) or _waits(right)


# --- joins -----------------------------------------------------------------------------------------------------------


@st.composite
def _equality(draw: st.DrawFn, left: str, right: str) -> Condition:
    if draw(st.integers(0, 5)) == 0:
        return next_to(f"{left}.v", f"{right}.v")
    return draw(_same(left, right))


@st.composite
def _same(draw: st.DrawFn, left: str, right: str) -> Condition:
    name = draw(st.sampled_from("kkjv"))
    return same(f"{left}.{name}", f"{right}.{name}")


@st.composite
def _streams(draw: st.DrawFn, seen: str, name: str, timed: bool) -> tuple[Condition, ...]:
    """What relates another stream to those whose columns can be named."""
    on = [draw(_equality(draw(st.sampled_from(seen)), name))]
    if draw(st.integers(0, 3)) == 0:
        on.append(draw(_equality(draw(st.sampled_from(seen)), name)))
    if draw(st.integers(0, 4)) == 0:
        on.append(differ(f"{draw(st.sampled_from(seen))}.v", f"{name}.v"))
    if timed and draw(st.integers(0, 4)):
        low, high = draw(st.sampled_from([(-1, 2), (0, 0), (0, 3), (-4, -1), (-2, None), (None, 1)]))
        on.append(apart(f"{draw(st.sampled_from(seen))}.t", f"{name}.t", low, high))
    return tuple(on)


@st.composite
def _lookups(draw: st.DrawFn, seen: str, tables: str, name: str) -> tuple[Condition, ...]:
    """What relates a table to streams and tables before: equality, a range, or both, and more."""
    left = draw(st.sampled_from(seen + tables))
    how = draw(st.sampled_from(["key", "key", "keys", "range", "both", "low"]))
    on: list[Condition] = []
    if how in ("key", "keys", "both"):
        on.append(draw(_equality(left, name)))
    if how == "keys":
        on.append(draw(_equality(draw(st.sampled_from(seen)), name)))
    if how in ("range", "both", "low"):
        on.append(compared(f"{left}.v", ">=", f"{name}.low"))
    if how in ("range", "both"):
        on.append(compared(f"{left}.v", draw(st.sampled_from(["<=", "<"])), f"{name}.high"))
    if draw(st.integers(0, 3)) == 0:
        on.append(differ(f"{draw(st.sampled_from(seen))}.v", f"{name}.v"))
    return tuple(on)


@st.composite
def _memberships(draw: st.DrawFn, seen: str, name: str, kind: str) -> tuple[Condition, ...]:
    """What IN and NOT IN ask: of NULLs in a table only where it is asked by a key."""
    column, test = draw(st.sampled_from("kkjv")), {"in": same, "not in": unsure}[kind]
    on = [test(f"{draw(st.sampled_from(seen))}.{column}", f"{name}.{column}")]
    if kind == "not in" and (name in TABLES or draw(st.integers(0, 3)) == 0):
        on.append(draw(_equality(draw(st.sampled_from(seen)), name)))
    return tuple(on)


@dataclass(frozen=True)
class Joined:
    """Joins as they are drawn: the tree, and the inputs whose columns can be named."""

    tree: Tree
    streams: str = "a"
    tables: str = ""

    def with_(self, kind: str, name: str, on: tuple[Condition, ...]) -> "Joined":
        tree: Tree = (kind, self.tree, name, on)
        shown = "" if kind in ("semi", "anti") else name
        return (
            Joined(tree, self.streams, self.tables + shown)
            if name in TABLES
            else Joined(tree, self.streams + shown, self.tables)
        )


@st.composite
def _of_streams(draw: st.DrawFn, kinds: Sequence[str], least: int, most: int, most_tables: int) -> Joined:
    """`least` to `most` streams by equality, tables between and behind them."""
    streams, tables = draw(st.integers(least, most)), draw(st.integers(0, most_tables))
    names = draw(st.permutations([*STREAMS[1:streams], *TABLES[:tables]]))
    timed = draw(st.booleans())
    found, met = Joined("a"), False
    for name in names:
        if name in TABLES:
            first = found.tree == "a" and draw(st.integers(0, 4)) == 0
            on = draw(_lookups(found.streams, found.tables, name))
            if first:
                found = Joined((draw(st.sampled_from(["inner", "right"])), name, "a", on), "a", name)
            else:
                found = found.with_(draw(st.sampled_from(LOOKED_UP)), name, on)
            met = True
            continue
        kind = draw(st.sampled_from([k for k in kinds if not met or k not in ("right", "full")]))
        found = found.with_(kind, name, draw(_streams(found.streams, name, timed)))
    return found


@st.composite
def _of_two(draw: st.DrawFn, most_tables: int) -> Joined:
    """What has strategies of its own: the INNER join of two streams, by equality or without, and tables behind it."""
    on: list[Condition] = [draw(_equality("a", "b"))] if draw(st.booleans()) else []
    how = draw(st.sampled_from(["<", "<=", ">", ">=", "<>", "near", "odd"]))
    more = {"near": near("a.v", "b.v", 1), "odd": odd("a.v", "b.v")}.get(how) or compared("a.v", how, "b.v")
    if not on or draw(st.booleans()):
        on.append(more)
    if draw(st.integers(0, 2)) == 0:
        on.append(apart("a.t", "b.t", *draw(st.sampled_from([(-1, 2), (0, 3), (-2, None)]))))
    found = Joined(("inner", "a", "b", tuple(on)), "ab")
    for name in TABLES[: draw(st.integers(0, most_tables))]:
        kind, looked = draw(st.sampled_from(LOOKED_UP)), draw(_lookups("ab", found.tables, name))
        found = found.with_(kind, name, looked)
    return found


# --- questions -------------------------------------------------------------------------------------------------------


@st.composite
def questions(
    draw: st.DrawFn,
    two: bool = False,
    inner: bool = False,
    kinds: Sequence[str] = (),
    many: bool = False,
    least: int = 2,
    bare: bool = False,
) -> Question:
    """`two`: the INNER join of two streams; `inner`: streams, `least` of them, are joined by INNER JOIN only.

    `kinds`: of subqueries, one at least. `many`: groups have aggregates of more kinds. `bare`: rows of streams, without tables,
    groups and DISTINCT; drawn so, since one in twenty is by itself, and to draw costs more than to run.
    """
    tables = "" if bare else TABLES
    most = 2 if bare and kinds else 4  # so that a stream is left for a subquery
    by_equality = _of_streams(INNER if inner else ANY, least if inner else 1, most, len(tables))
    found = draw(_of_two(len(tables)) if two else by_equality)
    tree, named = found.tree, "".join(_leaves(found.tree))
    where: list[Condition] = []
    if draw(st.integers(0, 3)) == 0:
        where.append(missing(f"{draw(st.sampled_from(found.streams + found.tables))}.v"))
    if found.tables and draw(st.integers(0, 3)) == 0:
        where.append(compared(f"{found.streams[0]}.v", "<=", f"{found.tables[-1]}.high"))
    asked: list[Subquery] = []
    rest = [n for n in STREAMS[1:3] + tables if n not in named]
    alone = named == "a"  # nothing is joined yet
    one = not (two or inner) and (alone or draw(st.integers(0, 2)) == 0)
    wanted = draw(st.integers(1, 2)) if kinds else int(one)
    for name in draw(st.permutations(rest))[:wanted]:
        on = draw(
            _lookups(found.streams, "", name) if name in TABLES else _streams(found.streams, name, False)
        )
        kind = draw(st.sampled_from(list(kinds or ASKED_OF)))
        if kind in ("in", "not in"):
            on = draw(_memberships(found.streams, name, kind))
        asked.append(Subquery(kind, name, on))
    joins = Query((), tree, tuple(where))
    return draw(_asked(Question(joins, tuple(asked), ()), found, many, bare))


@st.composite
def _asked(draw: st.DrawFn, question: Question, found: Joined, many: bool, bare: bool) -> Question:
    """Rows, distinct ones, groups, or one group of all; `bare`: rows."""
    names = [f"{x}.{c}" for x in found.streams for c in "kjvt"] + [
        f"{x}.{c}" for x in found.tables for c in ("k", "j", "v", "high")
    ]
    more = [] if bare else ["distinct", "groups", "groups", "groups", "all"]
    how = draw(st.sampled_from(["rows", *more]))
    values = st.sampled_from([column(n) for n in names])
    if how in ("rows", "distinct"):
        keys = draw(st.lists(values, min_size=1, max_size=4, unique_by=lambda v: v.sql))
        return replace(question, keys=tuple(keys), distinct=how == "distinct")
    computed = [Value(f"{n} % 2", _half(n)) for n in names if n.endswith(".v")]
    computed += [Value(f"date_trunc('second', {n})", _second(n)) for n in names if n.endswith(".t")]
    some = st.one_of(values, st.sampled_from(computed))
    keys = draw(st.lists(some, min_size=1, max_size=2, unique_by=lambda v: v.sql)) if how == "groups" else []
    calls = draw(st.lists(_calls(names, many), min_size=not keys, max_size=3))
    having = draw(st.sampled_from([None, None, (Call("count"), 1), (Call("max", column("a.v")), 1)]))
    if not keys:
        having = None
    if having and having[0].argument and "a" not in found.streams:
        having = None
    return replace(question, keys=tuple(keys), calls=tuple(calls), grouped=True, having=having)


def _second(name: str) -> Callable[[Row], object]:
    """Some times lie between two seconds: of a row that is deleted though it never came, and after it (`histories`)."""
    return lambda row: None if row.get(name) is None else row[name].replace(microsecond=0)  # type: ignore[attr-defined]


def _half(name: str) -> Callable[[Row], object]:
    return lambda row: None if row.get(name) is None else row[name] % 2  # type: ignore[operator]


@st.composite
def _calls(draw: st.DrawFn, names: Sequence[str], many: bool) -> Call:
    """`many`: with DISTINCT and FILTER, and of more functions and columns."""
    function = draw(
        st.sampled_from(["count", "count", "sum", "min", "max", "avg", *(["median"] if many else [])])
    )
    where = None
    if many and draw(st.integers(0, 3)) == 0:
        name = draw(st.sampled_from([n for n in names if n.endswith(".v")]))
        where = Value(f"{name} > 0", lambda row: row.get(name) is not None and row[name] > 0)  # type: ignore[operator]
    if function == "count" and draw(st.booleans()):
        return Call("count", where=where)
    whole = [n for n in names if n.endswith((".v", ".high"))]
    other = [n for n in names if n.endswith((".j", ".t", *([".k"] if many else [])))]
    named = draw(st.sampled_from(whole + (other if function in ("count", "min", "max") else [])))
    distinct = many and function in ("count", "sum", "avg") and draw(st.booleans())
    return Call(function, column(named), distinct, where)
