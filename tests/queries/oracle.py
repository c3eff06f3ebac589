"""What DuckDB answers: to the same text, or for windows of time to one that is written for it (`nexmark/duckdb`).

A query that ends with ORDER BY and LIMIT is asked without its LIMIT, with the rank that each row has by the query's order:

    rank of the last equal row <= n    must be there
    rank <= n                          some of these are
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from tests.queries.compare import Expected, Row
from tests.queries.corpus import HERE, Query

_RANKS = (
    "SELECT *, rank() OVER ($order) AS first_rank, count(*) OVER ($order) AS last_rank FROM ($query) AS asked"
    " QUALIFY first_rank <= $limit"
)


@dataclass(frozen=True)
class Ranked:
    """The query whose rows say their ranks."""

    sql: str
    limit: int  # 0: the query has none, and its rows no ranks
    more: int  # columns behind its own that the order needs


@cache
def text(query: Query) -> str:
    """The query in DuckDB's words, for a reader of it."""
    own = HERE / query.benchmark / "duckdb" / f"{query.name}.sql"
    return own.read_text() if own.exists() else _tree(query).sql(dialect="duckdb")


@cache
def _tree(query: Query) -> exp.Expression:
    """Of no rows, Spark's ROLLUP, CUBE and GROUPING SETS make none; DuckDB's make the total. As INT, Spark cuts, DuckDB rounds."""
    tree = sqlglot.parse_one(query.text, dialect="spark")
    for group in tree.find_all(exp.Group):
        if group.find(exp.Rollup, exp.Cube, exp.GroupingSets):
            group.parent_select.having("count(*) > 0", copy=False)
    for cast in list(tree.find_all(exp.Cast)):
        if cast.is_type("int", "bigint") and cast.find(exp.Div):
            cast.set("this", exp.func("trunc", cast.this.copy()))
    return tree


@cache
def _ranked(query: Query) -> Ranked:
    own = HERE / query.benchmark / "duckdb" / f"{query.name}.sql"
    tree = None if own.exists() else _tree(query).copy()
    if tree is None or not tree.args.get("limit"):
        return Ranked(text(query), 0, 0)
    order, limit = tree.args.get("order"), int(tree.args["limit"].expression.name)
    for part in ("order", "limit"):
        tree.set(part, None)
    outputs, width = _named(tree), len(tree.selects)
    keys = [ordered.copy() for ordered in order.expressions] if order else []
    for ordered in keys:
        ordered.set("this", _key(ordered.this, tree, outputs))
    by = exp.Order(expressions=keys).sql(dialect="duckdb") if keys else ""
    ranks = _RANKS.replace("$order", by).replace("$query", tree.sql(dialect="duckdb"))
    return Ranked(ranks.replace("$limit", str(limit)), limit, len(tree.selects) - width)


def _named(tree: exp.Query) -> dict[str, exp.Expression]:
    """Its columns by their names: those of a star or a union are as they are, others become `out0`, ..."""
    if any(select.is_star for select in tree.selects):
        source = tree.find(exp.From).this.name
        ctes = [cte.this.selects for cte in tree.ctes if cte.alias == source]
        return {select.alias_or_name: select.copy() for select in (ctes[0] if ctes else [])}
    if not isinstance(tree, exp.Select):
        return {select.alias_or_name: select.copy() for select in tree.selects}
    named = {f"out{at}": select.copy() for at, select in enumerate(tree.selects)}
    shown = [exp.alias_(select.unalias(), name) for name, select in named.items()]
    tree.set("expressions", shown)
    return named


def _key(key: exp.Expression, tree: exp.Query, outputs: dict[str, exp.Expression]) -> exp.Expression:
    """A key of the order over the named columns: one of them, an expression of them, or one column more."""
    if isinstance(key, exp.Literal):
        return exp.column(list(outputs)[int(key.name) - 1])
    for name, shown in outputs.items():
        named = isinstance(key, exp.Column) and shown.alias_or_name.lower() == key.name.lower()
        if named or key in (shown.unalias(), exp.column(shown.alias)):
            return exp.column(name)
    shown_names = {s.alias for s in outputs.values()}
    if not isinstance(key, exp.Column) and any(c.name in shown_names for c in key.find_all(exp.Column)):
        return key.transform(lambda n: _key(n, tree, outputs) if isinstance(n, exp.Column) else n)
    more = f"more{len(tree.selects)}"
    tree.select(exp.alias_(key.copy(), more), copy=False)
    return exp.column(more)


def answer(sql: str, tables: dict[str, pa.Table]) -> list[Row]:
    """DuckDB's answer over these tables."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(sql).fetchall()


def expected(query: Query, tables: dict[str, pa.Table]) -> Expected:
    """What the query must give over these tables."""
    asked = _ranked(query)
    rows = answer(asked.sql, tables)
    return cut(rows, asked) if asked.limit else Expected(rows)


def cut(rows: Sequence[Row], asked: Ranked) -> Expected:
    """`rows` end with the ranks of the first and of the last row that is equal by the order."""
    width = len(rows[0]) - 2 - asked.more if rows else 0
    sure = [row[:width] for row in rows if row[-1] <= asked.limit]  # type: ignore[operator]
    some = [row[:width] for row in rows if row[-1] > asked.limit]  # type: ignore[operator]
    return Expected(sure, some, asked.limit - len(sure) if some else 0)
