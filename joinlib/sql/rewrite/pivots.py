"""PIVOT as conditional aggregates, UNPIVOT as a generator: both before the names of the query around them are resolved.

    SELECT * FROM t PIVOT (sum(x) FOR a IN (1, 2))
    SELECT k, CASE WHEN count(*) FILTER (WHERE a <=> 1) > 0 THEN sum(x) FILTER (WHERE a <=> 1) END AS `1`, ... FROM t GROUP BY k

    SELECT * FROM t UNPIVOT (x FOR n IN (a, b))
    SELECT k, CASE i WHEN 0 THEN 'a' WHEN 1 THEN 'b' END AS n, CASE i WHEN 0 THEN a WHEN 1 THEN b END AS x
    FROM t LATERAL VIEW explode(array(0, 1)) v AS i WHERE ... IS NOT NULL

Law: the same rows, as a bag. A count is NULL, not 0, where no row has the value, as in Spark.
"""

from collections.abc import Sequence

from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.sql.parse import place
from joinlib.sql.rewrite import trees
from joinlib.sql.supported import written


def turned(pivot: exp.Pivot, source: str, columns: Sequence[str], sql: str) -> exp.Select:
    """Return the unresolved query that a PIVOT or UNPIVOT of the columns of a source is."""
    if len(pivot.args["fields"]) != 1:
        raise _error(sql, "PIVOT takes one FOR", pivot)
    form = _unpivoted if pivot.args.get("unpivot") else _pivoted
    return form(pivot, columns, sql).from_(trees.table(source, "$pivoted", pivot), copy=False)


def _error(sql: str, message: str, at: exp.Expr) -> SqlError:
    return SqlError(message, *place(sql, at))


def _pivoted(pivot: exp.Pivot, columns: Sequence[str], sql: str) -> exp.Select:
    told = pivot.args["fields"][0]
    keys = _parts(told.this)
    named = [c.name.lower() for node in (*pivot.expressions, *keys) for c in node.find_all(exp.Column)]
    groups = [_column(c) for c in columns if c.lower() not in named]
    items: list[exp.Expr] = [trees.named(g.copy(), g.name) for g in groups]
    names = iter(pivot.args["columns"])
    for value in told.expressions:
        values = _parts(value.this if isinstance(value, exp.PivotAlias) else value)
        if len(values) != len(keys) or any(v.find(exp.Column) for v in values):
            raise _error(sql, f"PIVOT takes constants for {written(told.this)}", value)
        equal = [exp.NullSafeEQ(this=k.copy(), expression=v.copy()) for k, v in zip(keys, values)]
        where = trees.together(equal)
        assert where is not None
        items += [trees.named(_where(a.unalias(), where, sql), next(names).name) for a in pivot.expressions]
    made = exp.Select(expressions=items)
    if groups:
        made.set("group", exp.Group(expressions=groups))
    return made


def _where(value: exp.Expr, condition: exp.Expr, sql: str) -> exp.Expr:
    """The value over the rows of which the condition is true; NULL if there is none."""
    box = exp.Paren(this=value.copy())
    found = trees.aggregates(box)
    if not found:
        raise _error(sql, f"PIVOT takes aggregates, not {written(value)}", value)
    for call in found:
        if isinstance(call, exp.Filter):
            raise _error(sql, "PIVOT takes aggregates without FILTER", call)
        call.replace(_filtered(call.copy(), condition))
    some = exp.GT(this=_filtered(trees.call("count", exp.Star()), condition), expression=trees.number(0))
    return exp.Case(ifs=[exp.If(this=some, true=box)])


def _filtered(call: exp.Expr, condition: exp.Expr) -> exp.Filter:
    return exp.Filter(this=call, expression=exp.Where(this=condition.copy()))


def _unpivoted(pivot: exp.Pivot, columns: Sequence[str], sql: str) -> exp.Select:
    told = pivot.args["fields"][0]
    called = [p.this if isinstance(p, exp.PivotAlias) else p for p in told.expressions]
    if len(pivot.expressions) != 1 or not all(isinstance(c, exp.Column) for c in called):
        raise _error(sql, "UNPIVOT takes one value for each name; write UNION ALL for several", pivot)
    words = [p.args["alias"].name if isinstance(p, exp.PivotAlias) else p.name for p in told.expressions]
    taken = {c.name.lower() for c in called}
    number = counter()
    value = choice(number, called)
    items = [trees.named(_column(c), c) for c in columns if c.lower() not in taken]
    texts: list[exp.Expr] = [exp.Literal.string(word) for word in words]
    items.append(trees.named(choice(number, texts), told.this.name))
    items.append(trees.named(value, pivot.expressions[0].name))
    made = exp.Select(expressions=items)
    made.set("laterals", [each(len(called))])
    if not pivot.args.get("include_nulls"):
        trees.set_where(made, [exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))])
    return made


_ALIAS, _NUMBER = "$g0", "number"  # an alias that no text can name


def counter() -> exp.Column:
    """The column of `each`."""
    return exp.Column(this=trees.identifier(_NUMBER), table=trees.identifier(_ALIAS))


def each(count: int) -> exp.Lateral:
    """A LATERAL VIEW that counts from 0."""
    numbers = trees.call("array", *map(trees.number, range(count)))
    names = exp.TableAlias(this=trees.identifier(_ALIAS), columns=[trees.identifier(_NUMBER)])
    return exp.Lateral(this=trees.call("explode", numbers), view=True, outer=False, alias=names)


def choice(number: exp.Expr, values: Sequence[exp.Expr]) -> exp.Case:
    """The value of that number."""
    ifs = [exp.If(this=trees.number(at), true=value.copy()) for at, value in enumerate(values)]
    return exp.Case(this=number.copy(), ifs=ifs)


def _column(name: str) -> exp.Column:
    return exp.Column(this=trees.identifier(name))


def _parts(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]
