"""Small pieces of syntax trees that the rewrites take apart and put together."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from sqlglot import exp

from joinlib.expr.functions import AGGREGATES

Query = exp.Select | exp.SetOperation
Change = Callable[[exp.Expr], exp.Expr | None]
_OUTSIDE = (exp.Select, exp.SetOperation, exp.Subquery)


def owner(column: exp.Column) -> str:
    """The alias that a resolved column belongs to."""
    return str(column.parts[0].name)


def name_of(column: exp.Column) -> str:
    """The name of a resolved column, without the fields that are taken from it."""
    return str(column.parts[1].name)


def fields_of(column: exp.Column) -> list[exp.Expr]:
    """The fields that are taken from a resolved column."""
    return list(column.parts[2:])


def placed(node: exp.Expr, like: exp.Expr | None) -> exp.Expr:
    """Give a new node the place of an old one; return it."""
    starts = [n.meta["start"] for n in like.walk() if "start" in n.meta] if like is not None else []
    if starts:
        node.meta["start"] = min(starts)
    return node


def identifier(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def column(alias: str, name: str, like: exp.Expr | None = None) -> exp.Column:
    """The column `alias.name`, at the place of `like`."""
    made = exp.Column(this=identifier(name), table=identifier(alias))
    placed(made.this, like)
    return made


def table(name: str, alias: str, like: exp.Expr | None = None) -> exp.Table:
    """The table `name AS alias` in FROM."""
    made = exp.Table(this=identifier(name), alias=exp.TableAlias(this=identifier(alias)))
    placed(made.this, like)
    return made


def derived(query: Query, alias: str) -> exp.Subquery:
    """`(query) AS alias` in FROM."""
    return exp.Subquery(this=query, alias=exp.TableAlias(this=identifier(alias)))


def named(value: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=value, alias=identifier(name))


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


def number(value: int) -> exp.Literal:
    return exp.Literal(this=str(value), is_string=False)


def true() -> exp.Boolean:
    return exp.Boolean(this=True)


def ands(node: exp.Expr | None) -> list[exp.Expr]:
    """Split a condition at its ANDs, in order, without surrounding parentheses."""
    found, todo = [], [] if node is None else [node]
    while todo:
        part = todo.pop().unnest()
        if isinstance(part, exp.And):
            todo += [part.expression, part.this]
        else:
            found.append(part)
    return found


def ors(node: exp.Expr) -> list[exp.Expr]:
    """Split a condition at its ORs, in order, without surrounding parentheses."""
    found, todo = [], [node]
    while todo:
        part = todo.pop().unnest()
        if isinstance(part, exp.Or):
            todo += [part.expression, part.this]
        else:
            found.append(part)
    return found


def _guarded(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node) if isinstance(node, exp.Or) else node


def together(parts: Iterable[exp.Expr]) -> exp.Expr | None:
    """Join conditions by AND, without TRUE; None for none."""
    result: exp.Expr | None = None
    for part in parts:
        if isinstance(part, exp.Boolean) and part.this:
            continue
        part = _guarded(part)
        result = part if result is None else exp.And(this=result, expression=part)
    return result


def either(parts: Iterable[exp.Expr]) -> exp.Expr:
    """Join one or more conditions by OR, in parentheses."""
    result: exp.Expr | None = None
    for part in parts:
        result = part if result is None else exp.Or(this=result, expression=part)
    assert result is not None
    return exp.Paren(this=result) if isinstance(result, exp.Or) else result


def set_where(select: exp.Select, parts: Iterable[exp.Expr]) -> None:
    """Make the WHERE of a query these conditions."""
    condition = together(parts)
    select.set("where", exp.Where(this=condition) if condition is not None else None)


def set_on(join: exp.Join, parts: Iterable[exp.Expr]) -> None:
    """Make the ON of a join these conditions; an outer, semi or anti join keeps one, TRUE if there is none."""
    needed = join.side or join.kind.upper() in ("SEMI", "ANTI")
    join.set("on", together(parts) or (true() if needed else None))


def where_of(select: exp.Select) -> list[exp.Expr]:
    """The ANDed conditions of WHERE."""
    where = select.args.get("where")
    return ands(where.this if where else None)


def source_nodes(select: exp.Select) -> list[exp.Expr]:
    """What FROM and JOIN name, in order: tables, derived tables, laterals."""
    start = select.args.get("from_")
    found = [start.this] if start else []
    found += [join.this for join in select.args.get("joins") or []]
    return [*found, *(select.args.get("laterals") or [])]


def alias_of(node: exp.Expr) -> str:
    """The name by which columns of a source are called."""
    return str(node.alias or node.name)


def sources(select: exp.Select) -> dict[str, exp.Expr]:
    """The sources of a query by alias."""
    return {alias_of(node): node for node in source_nodes(select)}


def parts_of(select: exp.Select) -> list[exp.Expr]:
    """The expressions of a query outside FROM: clauses and the conditions of joins."""
    found: list[exp.Expr] = list(select.expressions)
    found += [join.args["on"] for join in select.args.get("joins") or [] if join.args.get("on")]
    clauses = ("where", "group", "having", "qualify", "order")
    return found + [part for name in clauses if (part := select.args.get(name))]


def columns_in(node: exp.Expr) -> Iterator[exp.Column]:
    """All columns below a node, also those within subqueries."""
    return (c for c in node.find_all(exp.Column) if isinstance(c.this, exp.Identifier) and c.table)


def reads(node: exp.Expr) -> set[str]:
    """The aliases whose columns occur below a node; within its subqueries only those from outside them."""
    inner = {alias_of(s) for q in node.find_all(exp.Select) for s in source_nodes(q)}
    return {owner(c) for c in columns_in(node)} - inner


def outer_columns(query: exp.Expr) -> list[exp.Column]:
    """The columns of a subquery that belong to a query around it."""
    inner = {alias_of(s) for q in query.find_all(exp.Select) for s in source_nodes(q)}
    return [c for c in columns_in(query) if owner(c) not in inner]


def subqueries(node: exp.Expr) -> list[exp.Expr]:
    """The outermost subqueries of an expression: EXISTS, IN, ANY, ALL and scalar ones, as a whole."""
    found: list[exp.Expr] = []
    todo = [node]
    while todo:
        part = todo.pop()
        if _is_subquery(part):
            found.append(part)
        else:
            todo += reversed(list(part.iter_expressions()))
    return found


def _is_subquery(node: exp.Expr) -> bool:
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    if isinstance(node, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return isinstance(node.expression, exp.Any | exp.All)
    return isinstance(node, exp.Exists | exp.Subquery | exp.Select | exp.SetOperation)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is a call of an aggregate function; of a window's function the caller knows."""
    if isinstance(node, exp.Filter):
        return is_aggregate(node.this)
    return isinstance(node, exp.Anonymous) and str(node.name).lower() in _AGGREGATES


_AGGREGATES = frozenset((*AGGREGATES, "grouping", "grouping_id"))


def aggregates(node: exp.Expr) -> list[exp.Expr]:
    """The outermost calls of aggregate functions, with FILTER, that no OVER follows."""
    found, todo = [], [(node, False)]
    while todo:
        part, windowed = todo.pop()
        if isinstance(part, _OUTSIDE):
            continue
        if is_aggregate(part) and not windowed:
            found.append(part)
            continue
        over = isinstance(part, exp.Window)
        passing = windowed and isinstance(part, exp.IgnoreNulls | exp.RespectNulls | exp.Filter)
        below = reversed(list(part.iter_expressions()))
        todo += [(child, (over or passing) and child is part.this) for child in below]
    return found


def windows(node: exp.Expr) -> list[exp.Window]:
    """The outermost window functions of an expression."""
    found: list[exp.Window] = []
    todo = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, exp.Window):
            found.append(part)
        elif not isinstance(part, _OUTSIDE):
            todo += reversed(list(part.iter_expressions()))
    return found


def is_grouped(select: exp.Select) -> bool:
    """Whether a query groups: by GROUP BY, HAVING or an aggregate."""
    if select.args.get("group") or select.args.get("having"):
        return True
    clauses = [*select.expressions, *(select.args[n] for n in ("qualify", "order") if select.args.get(n))]
    return any(aggregates(part) for part in clauses)


def has_windows(select: exp.Select) -> bool:
    clauses = [*select.expressions, *(select.args[n] for n in ("qualify", "order") if select.args.get(n))]
    return any(windows(part) for part in clauses)


def replaced(node: exp.Expr, change: Change) -> exp.Expr:
    """Replace, from the top, each node for which `change` returns another; what it returns is left alone."""
    new = change(node)
    if new is not None:
        if node.parent is not None:
            node.replace(new)
        return new
    for child in list(node.iter_expressions()):
        replaced(child, change)
    return node


def with_columns(node: exp.Expr, values: Mapping[tuple[str, str], exp.Expr]) -> exp.Expr:
    """Replace columns by values, also within subqueries; fields stay taken from them."""

    def change(part: exp.Expr) -> exp.Expr | None:
        if (
            not isinstance(part, exp.Column)
            or len(part.parts) < 2
            or not isinstance(part.this, exp.Identifier)
        ):
            return None
        value = values.get((owner(part), name_of(part)))
        if value is None:
            return None
        return _with_fields(value.copy(), fields_of(part), part)

    return replaced(node, change)


def _with_fields(value: exp.Expr, fields: list[exp.Expr], like: exp.Expr) -> exp.Expr:
    if not fields:
        return value if isinstance(value, _TIGHT) else exp.Paren(this=value)
    if isinstance(value, exp.Column) and len(value.parts) + len(fields) <= 4:
        return column_of([*value.parts, *fields])
    made: exp.Expr = value if isinstance(value, _TIGHT) else exp.Paren(this=value)
    for field in fields:
        made = exp.Dot(this=made, expression=field.copy())
    return made


_TIGHT = (
    *(exp.Window, exp.Column, exp.Literal, exp.Anonymous, exp.Paren, exp.Null, exp.Boolean),
    *(exp.Cast, exp.Case, exp.Subquery),
)


def column_of(parts: list[exp.Expr]) -> exp.Column:
    """The column whose dotted name has these parts, two to four."""
    kinds = ("this", "table", "db", "catalog")
    return exp.Column(**{kind: part.copy() for kind, part in zip(kinds, reversed(parts))})


def item_name(item: exp.Expr) -> str:
    """The name of an output column of a resolved query."""
    return str(item.alias)


def output_names(query: exp.Expr) -> list[str]:
    """The names of the columns of a resolved query."""
    while isinstance(query, exp.SetOperation):
        query = query.this
    return [item_name(item) for item in query.expressions]


def plain_column(node: exp.Expr) -> exp.Column | None:
    """The column that an expression consists of, without fields; None for any other."""
    node = node.unnest()
    if isinstance(node, exp.Column) and len(node.parts) == 2 and isinstance(node.this, exp.Identifier):
        return node
    return None


def text(node: exp.Expr) -> str:
    """A text that is equal for equal expressions."""
    return node.sql(dialect="spark", normalize_functions=False, comments=False)


def bare(node: exp.Expr) -> exp.Expr:
    """A value without the parentheses around it; a subquery keeps its own."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def is_value(node: exp.Expr) -> bool:
    """Whether a node is a value, so that its text says what it is; ORDER BY's keys, for example, are not."""
    return not isinstance(node, exp.Ordered | exp.Order | exp.Identifier | exp.Literal | exp.Alias | exp.Var)
