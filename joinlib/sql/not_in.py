"""Translates x NOT IN (SELECT y ...) to anti joins.

Law: as in SQL, a row passes if x = y is FALSE for every row of the subquery.

So x IS NULL passes only an empty subquery, and a single NULL among the y rejects every row, wherever that y
is. One anti join is therefore enough only where no value can be NULL, or where the subquery shares a key with
the outer row (`WHERE s.k = o.k`), which brings everything that decides about a row into one unit. Otherwise
there are up to three, one above the other:

    rows of the subquery        reject                   where they meet
    all of them                 x that equals y          by the key, as in any anti join
    all of them, once more      x that is NULL           such x in one unit, with a copy of these rows
    those in which y is NULL    every x                  in every unit

The first keeps its rows until no partner can arrive any more; the others decide at once about the rows that
it emits. The second is omitted where x cannot be NULL, the third where y cannot, by the schema or by IS NOT
NULL. So a query over values that are not NULL costs what it would cost anyway, plus a copy of the subquery's
times, which the plan shows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.compare import Comparison, compare
from joinlib.expr.logic import either, is_null, negate
from joinlib.expr.nodes import no_columns
from joinlib.sql.graph import Clause, Joined, Right, Scan, Tree, aliases, certain, preserved, scans
from joinlib.sql.nulls import rejects_null
from joinlib.sql.parse import place
from joinlib.sql.scope import Scope
from joinlib.sql.subquery import Reading, Test, pairs

Pair = tuple[Expr, Expr]
_CONSTANT = (
    "NOT IN compares constants here, but it needs a column of an input and one of the subquery, which say"
    " where their rows meet; write ... NOT IN (SELECT a column ...)"
)


def excluded(
    tree: Tree, test: Test, scope: Scope, read: Callable[[], Reading], true: Sequence[Clause]
) -> Joined:
    """Return the anti joins that keep the rows of `tree` which pass NOT IN.

    `read` reads the subquery as another input; `true`: clauses that hold for every row that is emitted.

    Raises:
        SqlError: if no condition relates the rows, or the subquery reads a table whose NULLs cannot be known.
    """
    found = _NotIn(test, scope, read)
    once = read()
    values = pairs(test, scope, once.scope)
    known = (*true, *once.on, *certain(tree))
    xs = [at for at, (x, _) in enumerate(values) if not _never_null(x, known, tree)]
    ys = [at for at, (_, y) in enumerate(values) if not _never_null(y, once.on, once.rows)]
    unsure = {*xs, *ys}
    if len(unsure) < len(values) or any(_is_key(clause, once.rows) for clause in once.on):
        on = [_maybe(*pair) if at in unsure else compare("=", *pair) for at, pair in enumerate(values)]
        return found.anti(tree, once, on)
    if not any(x.columns and y.columns for x, y in values):
        raise scope.error(_CONSTANT, test.at)
    if not once.rows.table.stream:
        raise scope.error(
            _of_table(once.rows, [values[at][0] for at in xs], [values[at][1] for at in ys]), test.at
        )
    apart = either(*(is_null(values[at][0]) for at in xs)) if xs else None
    result = found.anti(tree, once, [compare("=", *pair) for pair in values], apart=apart)
    if apart is not None:
        result = found.of_null_x(result, apart, ys)
    return found.of_null_y(result, ys) if ys else result


@dataclass(frozen=True)
class _NotIn:
    """A NOT IN test, and how to read its subquery again: each join needs an input of its own."""

    test: Test
    scope: Scope
    read: Callable[[], Reading]

    def of_null_x(self, left: Tree, apart: Expr, ys: Sequence[int]) -> Joined:
        """Drop rows for which `apart` is true if the subquery has a row that differs from
        them in no value.
        """
        more = self.read()
        values = pairs(self.test, self.scope, more.scope)
        there = [negate(is_null(values[at][1])) for at in ys]
        return self.anti(left, more, [apart, *there, *_not_false(values)], "apart")

    def of_null_y(self, left: Tree, ys: Sequence[int]) -> Joined:
        """Drop rows if some row of the subquery with a NULL differs from them in no value."""
        more = self.read()
        values = pairs(self.test, self.scope, more.scope)
        null = either(*(is_null(values[at][1]) for at in ys))
        return self.anti(left, more, [null, *_not_false(values)], "everywhere")

    def anti(
        self, left: Tree, once: Reading, on: Sequence[Expr], right: Right = "keyed", apart: Expr | None = None
    ) -> Joined:
        """Make the anti join of `left` with these rows of the subquery."""
        where = place(self.scope.sql, self.test.at)
        clauses = (*once.on, *(Clause(one, where) for one in on))
        return Joined("anti", (left, once.rows), clauses, (), where, right, apart)


def _not_false(values: Sequence[Pair]) -> list[Expr]:
    """The conditions that remain when some values are NULL: none if there is a single value."""
    return [_maybe(*pair) for pair in values] if len(values) > 1 else []


def _maybe(x: Expr, y: Expr) -> Expr:
    """The condition that x = y is TRUE or NULL."""
    return either(compare("=", x, y), is_null(x), is_null(y))


def _is_key(clause: Clause, rows: Scan) -> bool:
    """Whether the clause equates a value of the subquery's row with one of the outer row."""
    node = clause.value.node
    if not isinstance(node, Comparison) or node.sign != "=":
        return False
    sides = [aliases(node.left), aliases(node.right)]
    return rows.aliases in sides and all(sides) and sides[0].isdisjoint(sides[1])


def _never_null(value: Expr, true: Sequence[Clause], rows: Tree) -> bool:
    """Whether a value is never NULL, by the schema or because all clauses of `true` hold."""
    column = value.column
    if column is None:
        return not value.columns and value.type != t.NULL and value.evaluate(no_columns, 1).null_count == 0
    return _declared(column, rows) or any(rejects_null(c.value, lambda name: name == column) for c in true)


def _declared(column: str, rows: Tree) -> bool:
    alias, _, name = column.partition(".")
    return alias in preserved(rows) and any(
        s.alias == alias and not s.table.schema.field(name).nullable for s in scans(rows)
    )


def _of_table(table: Scan, xs: Sequence[Expr], ys: Sequence[Expr]) -> str:
    nulls = " and ".join(e.sql for e in (*xs, *ys))
    return (
        f"{table.alias} is a table, whose rows are looked up by key: a lookup cannot tell whether it has any"
        f" row, or one with a NULL, and {nulls} may be NULL; write ... IS NOT NULL in WHERE (that of the"
        " subquery for its column), declare NOT NULL in the schema, or write NOT EXISTS (SELECT 1 FROM ..."
        " WHERE ... = ...), for which NULLs do not matter"
    )
