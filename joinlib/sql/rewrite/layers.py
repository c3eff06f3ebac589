"""Takes a query apart where it does more than one operator can: groups, windows, DISTINCT.

    SELECT DISTINCT g, rank() OVER (ORDER BY sum(x)) AS r FROM t GROUP BY g
    SELECT DISTINCT g, r FROM (SELECT g, rank() OVER (ORDER BY s) AS r FROM (SELECT g, sum(x) AS s FROM t GROUP BY g))

    SELECT (SELECT max(x) FROM u) AS m, count(*) FROM t GROUP BY (SELECT max(x) FROM u)
    SELECT _k AS m, count(*) FROM (SELECT (SELECT max(x) FROM u) AS _k FROM t) GROUP BY _k

Law: the same rows, as a bag: this is the order in which SQL defines the clauses.
"""

from dataclasses import dataclass, field

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.below import read_of
from joinlib.sql.rewrite.names import Names


def distinct_above(select: exp.Select, names: Names) -> exp.Select:
    """Put DISTINCT into a query of its own if groups or windows come before it."""
    if not select.args.get("distinct") or not (trees.is_grouped(select) or trees.has_windows(select)):
        return select
    select.set("distinct", None)
    alias = names.fresh("q")
    items = [trees.named(trees.column(alias, i.alias, i), i.alias) for i in select.expressions]
    above = exp.Select(expressions=items, distinct=exp.Distinct())
    return above.from_(trees.derived(select, alias), copy=False)


@dataclass
class Below:
    """A query under construction, whose columns another one reads."""

    alias: str
    reserved: set[str]  # names that its columns may only have for the output columns of that name
    names: dict[str, str] = field(default_factory=dict)  # by the text of the value
    items: list[exp.Alias] = field(default_factory=list)

    def name(self, value: exp.Expr, wanted: str = "", owned: bool = False) -> str:
        """The name of the column that has this value."""
        words = trees.text(trees.bare(value))
        if words not in self.names:
            taken = {i.alias.lower() for i in self.items} | (set() if owned else self.reserved)
            base, number = wanted or "_c1", 1
            found = base
            while found.lower() in taken:
                number += 1
                found = f"{wanted}_{number}" if wanted else f"_c{number}"
            self.names[words] = found
            self.items.append(trees.named(value.copy(), found))
        return self.names[words]

    def read(self, value: exp.Expr, wanted: str = "", owned: bool = False) -> exp.Column:
        return trees.column(self.alias, self.name(value, wanted, owned), value)


def keys_below(select: exp.Select, names: Names) -> exp.Select:
    """Compute keys of groups that ask a subquery in a query of their own, of which this one is made."""
    group = select.args.get("group")
    keys = [key for key in (group.expressions if group else []) if trees.subqueries(key)]
    if not keys:
        return select
    own, below = set(trees.sources(select)), Below(names.fresh("k"), set())
    base = exp.Select()
    for clause in ("from_", "joins", "laterals", "where"):
        base.set(clause, select.args.get(clause))
        select.set(clause, None)
    for key in keys:
        below.name(key, "_k")

    def change(node: exp.Expr) -> exp.Expr | None:
        return below.read(node) if trees.text(trees.bare(node)) in below.names else None

    for part in trees.parts_of(select):
        trees.replaced(part, change)
    read = read_of(trees.parts_of(select), own)
    trees.with_columns(select, {pair: below.read(trees.column(*pair), pair[1]) for pair in read})
    base.set("expressions", below.items)
    return select.from_(trees.derived(base, below.alias), copy=False)


def groups_below(select: exp.Select, names: Names) -> exp.Select:
    """Put groups into a query of their own: the query above computes from keys and aggregates."""
    group = select.args.get("group")
    keys = list(group.expressions) if group else []
    below = Below(names.fresh("g"), set())
    by_text = {trees.text(trees.bare(k)): k for k in keys}
    for key in keys:
        plain = trees.plain_column(key)
        below.name(key, trees.name_of(plain) if plain is not None else "")

    def change(node: exp.Expr) -> exp.Expr | None:
        own = node.find_ancestor(exp.Select) is None
        if own and trees.is_aggregate(node) and not _of_window(node):
            return below.read(node)
        if trees.is_value(node) and trees.text(trees.bare(node)) in by_text:
            return below.read(node)
        return None

    above = exp.Select(expressions=[_changed(item, change) for item in select.expressions])
    parts = [_changed(part, change) for part in trees.ands(clause_of(select, "having"))]
    if qualify := clause_of(select, "qualify"):
        above.set("qualify", exp.Qualify(this=_changed(qualify, change)))
    base = exp.Select(expressions=below.items or [trees.named(trees.call("count", exp.Star()), "_c1")])
    for clause in ("from_", "joins", "laterals", "where", "group"):
        base.set(clause, select.args.get(clause))
    above.from_(trees.derived(base, below.alias), copy=False)
    trees.set_where(above, parts)
    return above


def clause_of(select: exp.Select, clause: str) -> exp.Expr | None:
    part = select.args.get(clause)
    return part.this if part else None


def _changed(node: exp.Expr, change: "trees.Change") -> exp.Expr:
    box = exp.Paren(this=node.copy())
    trees.replaced(box.this, change)
    return box.this


def _of_window(node: exp.Expr) -> bool:
    parent = node.parent
    while isinstance(parent, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        node, parent = parent, parent.parent
    return isinstance(parent, exp.Window) and parent.this is node
