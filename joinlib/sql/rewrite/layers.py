"""Takes a query apart where it does more than one operator can: groups, windows, DISTINCT.

    SELECT DISTINCT g, rank() OVER (ORDER BY sum(x)) AS r FROM t GROUP BY g
    SELECT DISTINCT g, r FROM (SELECT g, rank() OVER (ORDER BY s) AS r FROM (SELECT g, sum(x) AS s FROM t GROUP BY g))

Law: the same rows, as a bag: this is the order in which SQL defines the clauses.
"""

from dataclasses import dataclass, field

from sqlglot import exp

from joinlib.sql.rewrite import trees
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
        words = trees.text(value.unnest())
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


def groups_below(select: exp.Select, names: Names) -> exp.Select:
    """Put groups into a query of their own: the query above computes from keys and aggregates."""
    group = select.args.get("group")
    keys = list(group.expressions) if group else []
    below = Below(names.fresh("g"), set())
    by_text = {trees.text(k.unnest()): k for k in keys}
    for key in keys:
        plain = trees.plain_column(key)
        below.name(key, trees.name_of(plain) if plain is not None else "")

    def change(node: exp.Expr) -> exp.Expr | None:
        own = node.find_ancestor(exp.Select) is None
        if own and trees.is_aggregate(node) and not _of_window(node):
            return below.read(node)
        if trees.is_value(node) and trees.text(node.unnest()) in by_text:
            return below.read(node)
        return None

    above = exp.Select(expressions=[_changed(item, change) for item in select.expressions])
    parts = [_changed(part, change) for part in trees.ands(_of(select, "having"))]
    if qualify := _of(select, "qualify"):
        above.set("qualify", exp.Qualify(this=_changed(qualify, change)))
    base = exp.Select(expressions=below.items or [trees.named(trees.call("count", exp.Star()), "_c1")])
    for clause in ("from_", "joins", "laterals", "where", "group"):
        base.set(clause, select.args.get(clause))
    above.from_(trees.derived(base, below.alias), copy=False)
    trees.set_where(above, parts)
    return above


def _of(select: exp.Select, clause: str) -> exp.Expr | None:
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


def windows_below(select: exp.Select, names: Names) -> exp.Select:
    """Put window functions into queries of their own, one for each PARTITION BY; groups come below them.

        SELECT cols, f() OVER (...) AS x FROM (everything else)      its arguments are columns
    """
    below = Below(names.fresh("w"), {i.alias.lower() for i in select.expressions})
    for item in select.expressions:
        if not trees.windows(item) and _varies(item.this):
            below.name(item.this, item.alias, owned=True)
    functions: dict[str, tuple[str, exp.Window]] = {}  # by text: name and call over columns

    def window(node: exp.Window, wanted: str) -> exp.Expr:
        made = _over_columns(node, below)
        words = trees.text(made)
        if words not in functions:
            functions[words] = (wanted, made)
        return exp.Placeholder(this=words)

    def change(wanted: str) -> "trees.Change":
        def inner(node: exp.Expr) -> exp.Expr | None:
            if isinstance(node, exp.Window):
                return window(node, wanted)
            if _varies(node) and not trees.windows(node):
                return below.read(node)
            return None

        return inner

    items = []
    for item in select.expressions:
        whole = isinstance(item.this, exp.Window)
        box = exp.Paren(this=item.this.copy())
        trees.replaced(box.this, change(item.alias if whole else ""))
        items.append(trees.named(box.this, item.alias))
    qualify = []
    for part in trees.ands(_of(select, "qualify")):
        box = exp.Paren(this=part.copy())
        trees.replaced(box.this, change(""))
        qualify.append(box.this)
    base = exp.Select(expressions=below.items or [trees.named(trees.number(1), "_c1")])
    for clause in ("from_", "joins", "laterals", "where", "group", "having"):
        base.set(clause, select.args.get(clause))
    return _chain(base, below, functions, items, qualify, names)


def _varies(node: exp.Expr) -> bool:
    """Whether a value has to be computed below: it has columns, or is not a constant."""
    return node.find(exp.Column, exp.Select, exp.Anonymous) is not None


def _over_columns(node: exp.Window, below: Below) -> exp.Window:
    made = node.copy()
    call, wrapped = made.this, None
    if isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
        wrapped, call = call, call.this
    if isinstance(call, exp.Filter):
        call = _filtered(call)
        if wrapped is not None:
            wrapped.set("this", call)
        else:
            made.set("this", call)
    for at, argument in enumerate(list(call.expressions)):
        distinct = isinstance(argument, exp.Distinct)
        values = argument.expressions if distinct else [argument]
        for value in list(values):
            if _varies(value) or (at == 0 and not distinct and str(call.name).lower() in _VALUES):
                value.replace(below.read(value))
    partition = [below.read(p) for p in made.args.get("partition_by") or [] if _varies(p)]
    made.set("partition_by", partition)
    if order := made.args.get("order"):
        keys = [key for key in order.expressions if _varies(key.this)]
        for key in keys:
            key.set("this", below.read(key.this))
        made.set("order", exp.Order(expressions=keys) if keys else None)
    return made


_VALUES = frozenset("sum avg min max lag lead first_value last_value nth_value first last any_value mean".split())


def _filtered(node: exp.Filter) -> exp.Expr:
    """The call without FILTER: aggregates skip NULLs."""
    call, condition = node.this, node.expression.this
    first = call.expressions[0] if call.expressions else exp.Star()
    value = trees.number(1) if isinstance(first, exp.Star) else first.copy()
    chosen = exp.Case(ifs=[exp.If(this=condition.copy(), true=value)])
    return exp.Anonymous(this=call.this, expressions=[chosen, *call.expressions[1:]])


def _chain(
    base: exp.Select,
    below: Below,
    functions: dict[str, tuple[str, exp.Window]],
    items: list[exp.Alias],
    qualify: list[exp.Expr],
    names: Names,
) -> exp.Select:
    """Build the queries above `base`: one for each PARTITION BY, and what is computed from them."""
    groups: dict[str, list[str]] = {}
    for words, (_, window) in functions.items():
        keys = sorted(trees.text(p) for p in window.args.get("partition_by") or [])
        groups.setdefault(" ".join(keys), []).append(words)
    asked = {p.this for part in qualify for p in part.find_all(exp.Placeholder)}
    order = sorted(groups.values(), key=lambda g: bool(asked & set(g)))
    given = _named_functions(functions, below, {i.alias.lower() for i in items})
    source, alias, inside = base, below.alias, [i.alias for i in base.expressions]
    for at, group in enumerate(order):
        final = at == len(order) - 1
        later = [functions[w][1] for g in order[at + 1 :] for w in g]
        wanted = _wanted(inside, [*items, *([] if final else qualify), *later], given, keep=final, also=qualify)
        over = exp.Select(expressions=[trees.named(trees.column(alias, c), c) for c in wanted])
        for words in group:
            over.append("expressions", trees.named(_at(functions[words][1].copy(), alias), given[words]))
        over.meta["over"] = True
        over.from_(trees.derived(source, alias), copy=False)
        if final:
            mine = [p for p in qualify if {x.this for x in p.find_all(exp.Placeholder)} <= set(group)]
            rest = [p for p in qualify if not any(p is m for m in mine)]
            _qualify(over, mine, alias, given)
            qualify = rest
        source, alias, inside = over, names.fresh("w"), [i.alias for i in over.expressions]
    return _top(source, alias, items, qualify, given)


def _named_functions(
    functions: dict[str, tuple[str, exp.Window]], below: Below, outputs: set[str]
) -> dict[str, str]:
    taken = {i.alias.lower() for i in below.items}
    found: dict[str, str] = {}
    for words, (wanted, _) in functions.items():
        name, number = wanted or "_n", 1
        while name.lower() in taken or (not wanted and name.lower() in outputs):
            number += 1
            name = f"{wanted or '_n'}_{number}"
        taken.add(name.lower())
        found[words] = name
    return found


def _wanted(
    inside: list[str],
    above: list[exp.Expr],
    given: dict[str, str],
    keep: bool,
    also: list[exp.Expr],
) -> list[str]:
    """The columns that something above reads, in order."""
    read = {trees.name_of(c) for node in (*above, *also) for c in trees.columns_in(node)}
    read |= {given[p.this] for node in (*above, *also) for p in node.find_all(exp.Placeholder)}
    return [c for c in inside if c in read]


def _at(node: exp.Expr, alias: str) -> exp.Expr:
    for column in node.find_all(exp.Column):
        column.set("table", trees.identifier(alias))
    return node


def _filled(node: exp.Expr, alias: str, given: dict[str, str]) -> exp.Expr:
    """Read columns of `alias` instead of placeholders and the columns below."""
    box = exp.Paren(this=_at(node.copy(), alias))
    for mark in list(box.find_all(exp.Placeholder)):
        mark.replace(trees.column(alias, given[mark.this]))
    return box.this


def _qualify(over: exp.Select, parts: list[exp.Expr], alias: str, given: dict[str, str]) -> None:
    """Set QUALIFY, which names the function columns."""
    made = []
    for part in parts:
        box = exp.Paren(this=_at(part.copy(), alias))
        for mark in list(box.find_all(exp.Placeholder)):
            mark.replace(exp.Column(this=trees.identifier(given[mark.this])))
        made.append(box.this)
    condition = trees.together(made)
    if condition is not None:
        over.set("qualify", exp.Qualify(this=condition))


def _top(
    source: exp.Select, alias: str, items: list[exp.Alias], rest: list[exp.Expr], given: dict[str, str]
) -> exp.Select:
    """Return the query that computes the output columns; `source` itself if it has just these."""
    made = [trees.named(_filled(i.this, alias, given), i.alias) for i in items]
    inside = [i.alias for i in source.expressions]
    same = [(trees.name_of(c), i.alias) for i in made if (c := trees.plain_column(i.this)) is not None]
    if not rest and len(same) == len(made) and all(a == b for a, b in same) and len(inside) == len(made):
        by_name = {i.alias: i for i in source.expressions}
        source.set("expressions", [by_name[i.alias] for i in made])
        return source
    top = exp.Select(expressions=made).from_(trees.derived(source, alias), copy=False)
    trees.set_where(top, [_filled(part, alias, given) for part in rest])
    return top
