"""Translates EXISTS and IN to joins. Law: three-valued logic, as in SQL.

    EXISTS (q)      TRUE if q has a row                          a semi join, negated an anti join
    x IN (q)        TRUE if x = y for a row of q                 the same, with x = y
    x NOT IN (q)    TRUE if x = y is FALSE for every row of q    anti joins: `not_in`

x = ANY (q) is x IN (q), and x <> ALL (q) is x NOT IN (q).
"""

from dataclasses import dataclass

from sqlglot import exp

from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.compare import compare
from joinlib.sql.calls import aggregates
from joinlib.sql.compile import compile
from joinlib.sql.graph import Clause, Joined, Kind, Scan, Tree
from joinlib.sql.parse import place
from joinlib.sql.scope import Scope
from joinlib.sql.select import starred


@dataclass(frozen=True)
class Test:
    """A test by a subquery: [NOT] EXISTS (query), or value [NOT] IN (query)."""

    query: exp.Select
    value: exp.Expr | None
    negated: bool
    at: exp.Expr


def subquery_test(node: exp.Expr) -> Test | None:
    """Return the subquery test that a condition consists of; None for any other condition."""
    negated, inner = False, node
    while isinstance(inner, exp.Not | exp.Paren):
        negated ^= isinstance(inner, exp.Not)
        inner = inner.this
    if isinstance(inner, exp.Exists) and isinstance(inner.this, exp.Select):
        return Test(inner.this, None, negated, inner)
    if isinstance(inner, exp.In):
        return _compared(inner.this, inner.args.get("query"), negated, inner)
    if isinstance(inner, exp.EQ) and isinstance(inner.expression, exp.Any):
        return _compared(inner.this, inner.expression.this, negated, inner)
    if isinstance(inner, exp.NEQ) and isinstance(inner.expression, exp.All):
        return _compared(inner.this, inner.expression.this, not negated, inner)
    return None


def _compared(value: exp.Expr, query: exp.Expr | None, negated: bool, at: exp.Expr) -> Test | None:
    """Return the test that compares a value with a subquery; None if `query` is not one."""
    query = query.unnest() if query is not None else None
    return Test(query, value, negated, at) if isinstance(query, exp.Select) else None


def check_list(test: Test, inner: Scope) -> None:
    """Check that a subquery's select list keeps one row for each row of its FROM, and that its columns exist.

    Raises:
        SqlError: if it does not.
    """
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
    reason = (
        f"an aggregate without GROUP BY returns a row even for no rows, so that {word} is always {always}"
    )
    return f"{reason}; write {word} (SELECT 1 ...)"


@dataclass(frozen=True)
class Reading:
    """One use of a subquery: its names, its input, and its conditions."""

    scope: Scope
    rows: Scan
    on: tuple[Clause, ...]


def included(tree: Tree, test: Test, scope: Scope, once: Reading) -> Joined:
    """Return the semi or anti join that keeps the rows which pass [NOT] EXISTS, or IN."""
    where = place(scope.sql, test.at)
    values = pairs(test, scope, once.scope) if test.value is not None else []
    equal = [Clause(compare("=", x, y), where) for x, y in values]
    kind: Kind = "anti" if test.negated else "semi"
    return Joined(kind, (tree, once.rows), (*once.on, *equal), (), where)


def pairs(test: Test, scope: Scope, inner: Scope) -> list[tuple[Expr, Expr]]:
    """Pair the values of IN with the columns that they are compared with.

    Raises:
        SqlError: if their numbers differ, or two cannot be compared.
    """
    assert test.value is not None
    left = test.value.unnest()
    lefts = left.expressions if isinstance(left, exp.Tuple) else [left]
    rights = [e.unalias() for e in test.query.expressions]
    if len(lefts) != len(rights):
        raise scope.error(f"IN compares {len(lefts)} values with {len(rights)} columns", test.at)
    found = [(compile(one, scope), compile(two, inner)) for one, two in zip(lefts, rights)]
    for one, two in found:
        if t.common(one.type, two.type) is None:
            kinds = f"{t.name(one.type)} with {t.name(two.type)}"
            raise scope.error(f"IN cannot compare {kinds}; add a CAST", test.at)
    return found
