"""Stops a batch after which a subquery that stands for a value has several rows.

    SELECT a, (SELECT x FROM u WHERE u.k = t.k) AS x FROM t WHERE a > (SELECT y FROM v)
    SELECT $one(a, s.n, ...) AS a, s.x FROM t LEFT JOIN (SELECT k, any_value(x) AS x, count(*) AS n ... GROUP BY k) s ...

$one(value, rows, line, column, view) is the value, and an error if there are several rows. One that is not related to
the query around it is counted in its own group. Of others only rows that somebody asks for count: they pass WHERE and
HAVING, and are an error in the select list, which is computed of what remains at the end of a batch.
"""

from sqlglot import exp

from joinlib.sql.parse import place
from joinlib.sql.pieces import written_at
from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.names import Names

ONE = "$one"
Counts = list[tuple[exp.Expr, exp.Expr]]


def only(value: exp.Expr, count: exp.Expr, at: exp.Expr, names: Names) -> exp.Expr:
    """Write a value that there is of one row only."""
    line, column, view = written_at(*place(names.sql, at))
    return trees.call(ONE, value, count, trees.number(line), trees.number(column), exp.Literal.string(view))


def passed_too(condition: exp.Expr, counts: Counts) -> exp.Expr:
    """A condition that rows with several values pass, too."""
    for count, _ in counts:
        several = exp.GT(this=count.copy(), expression=trees.number(1))
        condition = exp.Paren(this=exp.Or(this=several, expression=condition))
    return condition


def check_one(select: exp.Select, count: exp.Expr, at: exp.Expr, names: Names) -> None:
    """Let the select list, computed of each row or group, fail for several values."""
    if trees.is_grouped(select):
        count = trees.call("max", count.copy())
        if having := select.args.get("having"):
            having.set("this", passed_too(having.this, [(count, at)]))
    first = select.expressions[0]
    first.set("this", only(first.this.copy(), count.copy(), at, names))
