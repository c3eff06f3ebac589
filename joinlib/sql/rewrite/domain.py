"""Relates a subquery to the query around it by equalities only: it reads the values that rows of that query have.

    (SELECT max(i.x) FROM i WHERE i.k = o.k AND i.t < o.t)
    (SELECT max(i.x) FROM i JOIN (SELECT DISTINCT k, t FROM o) d ON TRUE
     WHERE i.k = d.k AND i.t < d.t AND d.k = o.k AND d.t = o.t)

Law: the same rows for each row of the query around it. More values than that query has make no difference.
"""

from collections.abc import Callable, Sequence

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.names import Names

_STRICT = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def needs_domain(query: exp.Select, own: set[str], pair: Callable[[exp.Expr], object], equal: bool) -> bool:
    """Whether more than equalities, or a subquery within it, relates a subquery to the query around it.

    `equal`: only equalities will do, though the subquery only joins and filters.
    """
    framed = any(query.args.get(n) for n in ("limit", "offset", "qualify"))
    strict = equal or framed or trees.is_grouped(query) or trees.has_windows(query)
    for part in trees.where_of(query):
        if all(c in own for c in _owners(part)):
            continue
        if trees.subqueries(part) or (strict and pair(part) is None):
            return True
    if single_row(query):  # what it computes from aggregates is computed in the query around it
        return any(not _owners(call) <= own for part in _computed(query) for call in trees.aggregates(part))
    return strict and any(not _owners(item) <= own for item in query.expressions)


def single_row(query: exp.Expr) -> bool:
    """Whether a query has one row, of aggregates, or none where HAVING is not TRUE."""
    return isinstance(query, exp.Select) and trees.is_grouped(query) and not query.args.get("group")


def _computed(query: exp.Select) -> list[exp.Expr]:
    having = query.args.get("having")
    return [*query.expressions, *([having] if having is not None else [])]


def _owners(node: exp.Expr) -> set[str]:
    inner = {trees.alias_of(s) for q in node.find_all(exp.Select) for s in trees.source_nodes(q)}
    return {trees.owner(c) for c in trees.columns_in(node)} - inner


def with_domain(query: exp.Select, around: exp.Select, names: Names) -> dict[tuple[str, str], exp.Column]:
    """Write the subquery over the values of the query around it, in place; return whose values they are.

    Raises:
        SqlError: if it reads columns of a query further out.
    """
    outer = trees.outer_columns(query)
    read = list(dict.fromkeys((trees.owner(c), trees.name_of(c)) for c in outer))
    sources = trees.sources(around)
    for column in outer:
        if trees.owner(column) not in sources:
            raise names.error(
                f"{trees.text(column)} is not of the query around this subquery, but of one further out; write the"
                " subquery as a join",
                column,
            )
    strict = _strict(query)
    alias = names.fresh("d")
    of = {names.titles.get(owner, owner) for owner, _ in read}
    names.titles[alias] = "_".join(("outer", *sorted(of)))  # a plan says whose values make the rows
    values = _distinct(read, around, names)
    inside = {
        pair: trees.column(alias, item.alias) for pair, item in zip(read, values.expressions, strict=True)
    }
    trees.with_columns(query, inside)
    equal: list[exp.Expr] = [
        (exp.EQ if pair in strict else exp.NullSafeEQ)(
            this=trees.column(alias, inside[pair].name), expression=trees.column(*pair)
        )
        for pair in read
    ]
    join = exp.Join(this=trees.derived(values, alias), on=trees.true())
    if query.args.get("from_") is None:
        query.set("from_", exp.From(this=join.this))
    else:
        query.append("joins", join)
    trees.set_where(query, [*trees.where_of(query), *equal])
    return {(alias, item.name): trees.column(*pair) for pair, item in inside.items()}


def _strict(query: exp.Select) -> set[tuple[str, str]]:
    """The outer columns for whose NULL no row passes WHERE."""
    found = set()
    for part in trees.where_of(query):
        for side in (part.this, part.expression) if isinstance(part, _STRICT) else ():
            column = trees.plain_column(side)
            if column is not None:
                found.add((trees.owner(column), trees.name_of(column)))
    return found


def _distinct(read: Sequence[tuple[str, str]], around: exp.Select, names: Names) -> exp.Select:
    """The values of some columns of a query, each combination once."""
    sources = trees.sources(around)
    for owner in sources:
        _share(sources[owner], names)
    sources = trees.sources(around)
    owners = {owner for owner, _ in read}
    new = {owner: names.again(owner) for owner in sources}
    if len(owners) == 1:
        made = exp.Select().from_(_renamed(sources[next(iter(owners))], new), copy=False)
    else:
        joins = [j for j in around.args.get("joins") or [] if not isinstance(j.this, exp.Lateral)]
        made = exp.Select().from_(_renamed(around.args["from_"].this, new), copy=False)
        for join in joins:
            other = join.copy()
            other.set("this", _renamed(join.this, new))
            _read_new(other, new)
            made.append("joins", other)
    taken: set[str] = set()
    for owner, name in read:
        found, number = name, 1
        while found.lower() in taken:
            number += 1
            found = f"{name}_{number}"
        taken.add(found.lower())
        made.append("expressions", trees.named(trees.column(new[owner], name), found))
    for part in trees.where_of(around):
        if not trees.subqueries(part) and trees.reads(part) <= (owners if len(owners) == 1 else set(new)):
            condition = part.copy()
            box = exp.Paren(this=condition)
            _read_new(box, new)
            trees.set_where(made, [*trees.where_of(made), box.this])
    made.set("distinct", exp.Distinct())
    return made


def _share(node: exp.Expr, names: Names) -> None:
    """Make a derived table a definition, which is computed once for both that read it."""
    if isinstance(node, exp.Subquery):
        name = names.define(node.this, names.titles.get(node.alias, ""))
        names.definitions[name].uses = 2
        node.replace(trees.table(name, node.alias, node))
    elif isinstance(node, exp.Table) and node.name in names.definitions:
        names.definitions[node.name].uses += 1


def _renamed(node: exp.Expr, new: dict[str, str]) -> exp.Table:
    return trees.table(node.name, new[trees.alias_of(node)], node)


def _read_new(node: exp.Expr, new: dict[str, str]) -> None:
    for column in node.find_all(exp.Column):
        if column.table and trees.owner(column) in new:
            column.parts[0].replace(trees.identifier(new[trees.owner(column)]))
