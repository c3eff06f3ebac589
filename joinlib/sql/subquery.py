"""What do EXISTS and IN ask of another input? Law: three-valued, as SQL; what no unit of a join could know is refused.

EXISTS (q)      TRUE if q has a row                          a semi join, negated an anti join
x IN (q)        TRUE if x = y for a row of q                 the same, with x = y
x NOT IN (q)    TRUE if x = y is FALSE for every row of q    an anti join by x = y OR x IS NULL OR y IS NULL

A NULL among the values of y keeps every row of x out, wherever it lies: that is known where q and its row share a key
(`WHERE s.k = o.k`), or where no value can be NULL, so that x = y is all there is to ask.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.compare import compare
from joinlib.expr.logic import either, is_null
from joinlib.expr.nodes import no_columns
from joinlib.sql.aggregate import aggregates
from joinlib.sql.compile import compile
from joinlib.sql.graph import Clause, Tree, certain, kept, scans
from joinlib.sql.nulls import rejects_null
from joinlib.sql.parse import place
from joinlib.sql.scope import Scope
from joinlib.sql.select import starred


@dataclass(frozen=True)
class Test:
    """[NOT] EXISTS (query), or value [NOT] IN (query)."""

    query: exp.Select
    value: exp.Expr | None
    negated: bool
    at: exp.Expr


def asked(node: exp.Expr) -> Test | None:
    """The test of a subquery that a condition is, if it is one."""
    negated, inner = False, node
    while isinstance(inner, exp.Not | exp.Paren):
        negated ^= isinstance(inner, exp.Not)
        inner = inner.this
    if isinstance(inner, exp.Exists) and isinstance(inner.this, exp.Select):
        return Test(inner.this, None, negated, inner)
    query = inner.args.get("query") if isinstance(inner, exp.In) else None
    if query is None or not isinstance(query.this, exp.Select):
        return None
    return Test(query.this, inner.this, negated, inner)


def check_list(test: Test, inner: Scope) -> None:
    """Raise unless the select list of a subquery has as many rows as its FROM, and columns that are there."""
    for item in test.query.expressions:
        if call := next(aggregates(item), None):
            raise inner.error(_aggregate(test), call)
        if test.value is None and starred(item, inner) is None:
            compile(item.unalias(), inner)


def _aggregate(test: Test) -> str:
    if test.value is not None:
        return "an aggregate in IN (SELECT ...) is not supported"
    always = "FALSE" if test.negated else "TRUE"
    word = "NOT EXISTS" if test.negated else "EXISTS"
    reason = f"an aggregate without GROUP BY has a row even of no rows, so that {word} is always {always}"
    return f"{reason}; write {word} (SELECT 1 ...)"


def membership(test: Test, scope: Scope, inner: Scope, tree: Tree, rows: Tree, true: "Known") -> list[Clause]:
    """What makes a row of `rows` (the subquery's FROM) one that decides x [NOT] IN."""
    pairs = _pairs(test, scope, inner)
    where = place(scope.sql, test.at)
    if not test.negated:
        return [Clause(compare("=", x, y), where) for x, y in pairs]
    unsure = [
        (_never_null(x, (*true.outer, *true.inner, *certain(tree)), tree), _never_null(y, true.inner, rows))
        for x, y in pairs
    ]
    if all(not (x and y) for x, y in unsure) and not _correlated(true.inner, rows):
        nulls = [e.sql for pair, sure in zip(pairs, unsure) for e, known in zip(pair, sure) if not known]
        raise scope.error(_unknowable(nulls), test.at)
    return [
        Clause(compare("=", x, y) if all(sure) else _maybe(x, y), where)
        for (x, y), sure in zip(pairs, unsure)
    ]


@dataclass(frozen=True)
class Known:
    """What is TRUE of the rows that matter: of those that come out in the end, and of those of the subquery."""

    outer: Sequence[Clause]
    inner: Sequence[Clause]


def _pairs(test: Test, scope: Scope, inner: Scope) -> list[tuple[Expr, Expr]]:
    """The values, and the columns that they are compared with."""
    assert test.value is not None
    left = test.value.unnest()
    lefts = left.expressions if isinstance(left, exp.Tuple) else [left]
    rights = [e.unalias() for e in test.query.expressions]
    if len(lefts) != len(rights):
        raise scope.error(f"IN compares {len(lefts)} values with {len(rights)} columns", test.at)
    pairs = [(compile(one, scope), compile(two, inner)) for one, two in zip(lefts, rights)]
    for one, two in pairs:
        if t.common(one.type, two.type) is None:
            kinds = f"{t.name(one.type)} with {t.name(two.type)}"
            raise scope.error(f"IN cannot compare {kinds}; add a CAST", test.at)
    return pairs


def _maybe(x: Expr, y: Expr) -> Expr:
    """x = y is TRUE or NULL."""
    return either(compare("=", x, y), is_null(x), is_null(y))


def _never_null(value: Expr, true: Sequence[Clause], rows: Tree) -> bool:
    """Is a column never NULL, by its schema or where all of `true` are?"""
    column = value.column
    if column is None:
        return not value.columns and value.type != t.NULL and value.evaluate(no_columns, 1).null_count == 0
    return _declared(column, rows) or any(rejects_null(c.value, lambda name: name == column) for c in true)


def _declared(column: str, rows: Tree) -> bool:
    alias, _, name = column.partition(".")
    return alias in kept(rows) and any(
        s.alias == alias and not s.table.schema.field(name).nullable for s in scans(rows)
    )


def _correlated(clauses: Sequence[Clause], rows: Tree) -> bool:
    return any(c.aliases & rows.aliases and c.aliases - rows.aliases for c in clauses)


def _unknowable(nulls: Sequence[str]) -> str:
    return (
        f"NOT IN keeps no row once the subquery has a NULL, and {' and '.join(nulls)} may be NULL, in whatever unit of the"
        " join: write ... IS NOT NULL in WHERE (that of the subquery for its column), declare NOT NULL in the schema, or write"
        " NOT EXISTS (SELECT 1 FROM ... WHERE ... = ...), which does not ask for NULLs"
    )
