"""UNION, INTERSECT and EXCEPT by UNION ALL and groups.

    a UNION b          the groups of a UNION ALL b
    a INTERSECT b      the groups of both, marked by side, that have a row of each
    a EXCEPT b         the groups that have a row of a and none of b
    ... ALL            as often as the smaller count of the two, or the difference of the counts

Law: the same rows, as a bag; NULLs are equal to each other, as in GROUP BY.
"""

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.names import Names


def flat(query: trees.Query) -> list[trees.Query]:
    """The parts of a chain of UNION ALL, in order."""
    found, todo = [], [query]
    while todo:
        part = todo.pop()
        if isinstance(part, exp.Union) and not part.args.get("distinct"):
            todo += [part.expression, part.this]
        else:
            found.append(part)
    return found


def as_groups(query: exp.SetOperation, names: Names) -> exp.Select:
    """Return a set operation that is not UNION ALL as a SELECT."""
    columns = trees.output_names(query)
    if isinstance(query, exp.Union):
        return _distinct(query, columns, names)
    left, right = _hidden("_left", columns), _hidden("_right", columns)
    marks = {left: (1, 0), right: (0, 1)}
    sides = [_marked(q, columns, marks, i, names) for i, q in enumerate((query.this, query.expression))]
    alias = names.fresh("q")
    counts = [trees.call("sum", trees.column(alias, side)) for side in (left, right)]
    both = exp.Union(this=sides[0], expression=sides[1], distinct=False)
    items = [trees.named(trees.column(alias, c), c) for c in columns]
    grouped = exp.Select(expressions=items).from_(trees.derived(both, alias), copy=False)
    grouped.set("group", exp.Group(expressions=[trees.column(alias, c) for c in columns]))
    if query.args.get("distinct"):
        grouped.set("having", exp.Having(this=_kept(query, counts)))
        return grouped
    return _repeated(grouped, query, counts, columns, names)


def _distinct(query: exp.Union, columns: list[str], names: Names) -> exp.Select:
    """SELECT DISTINCT of everything that is united: DISTINCT further below makes no difference."""
    parts: list[trees.Query] = []
    todo: list[trees.Query] = [query]
    while todo:
        part = todo.pop()
        if isinstance(part, exp.Union):
            todo += [part.expression, part.this]
        else:
            parts.append(part)
    alias = names.fresh("q")
    united = parts[0]
    for part in parts[1:]:
        united = exp.Union(this=united, expression=part, distinct=False)
    items = [trees.named(trees.column(alias, c), c) for c in columns]
    return exp.Select(expressions=items, distinct=exp.Distinct()).from_(
        trees.derived(united, alias), copy=False
    )


def _marked(
    query: trees.Query, columns: list[str], marks: dict[str, tuple[int, int]], side: int, names: Names
) -> exp.Select:
    alias, own = names.fresh("q"), trees.output_names(query)
    items = [trees.named(trees.column(alias, c), new) for c, new in zip(own, columns)]
    items += [trees.named(trees.number(values[side]), name) for name, values in marks.items()]
    return exp.Select(expressions=items).from_(trees.derived(query, alias), copy=False)


def _kept(query: exp.SetOperation, counts: list[exp.Anonymous]) -> exp.Expr:
    some = exp.GT(this=counts[0].copy(), expression=trees.number(0))
    sign = exp.GT if isinstance(query, exp.Intersect) else exp.EQ
    return exp.And(this=some, expression=sign(this=counts[1].copy(), expression=trees.number(0)))


def _repeated(
    grouped: exp.Select,
    query: exp.SetOperation,
    counts: list[exp.Anonymous],
    columns: list[str],
    names: Names,
) -> exp.Select:
    """Return each group as often as it counts."""
    left, right = counts
    if isinstance(query, exp.Intersect):
        times: exp.Expr = trees.call("least", left.copy(), right.copy())
    else:
        times = exp.Sub(this=left.copy(), expression=right.copy())
    name = _hidden("_times", columns)
    grouped.append("expressions", trees.named(times, name))
    grouped.set("having", exp.Having(this=exp.GT(this=times.copy(), expression=trees.number(0))))
    alias, view = names.fresh("q"), names.fresh("v")
    items = [trees.named(trees.column(alias, c), c) for c in columns]
    long = exp.DataType.build("bigint")
    ends = (trees.number(1), trees.column(alias, name))
    numbers = trees.call("sequence", *(exp.Cast(this=end, to=long.copy()) for end in ends))
    above = exp.Select(expressions=items).from_(trees.derived(grouped, alias), copy=False)
    each = exp.Lateral(
        this=trees.call("explode", numbers),
        view=True,
        outer=False,
        alias=exp.TableAlias(this=trees.identifier(view), columns=[trees.identifier("_time")]),
    )
    above.set("laterals", [each])
    return above


def _hidden(name: str, columns: list[str]) -> str:
    taken = {c.lower() for c in columns}
    while name in taken:
        name = f"_{name}"
    return name
