"""Puts window functions into queries of their own, one for each PARTITION BY.

    SELECT t.a + 1 AS b, t.a - avg(t.a) OVER (PARTITION BY t.k) AS d FROM t JOIN ...
    SELECT w2.b, w2._c1 - w2._n AS d FROM (
        SELECT w.b, w._c1, avg(w._c1) OVER (PARTITION BY w.k) AS _n FROM (
            SELECT t.a + 1 AS b, t.a AS _c1, t.k AS k FROM t JOIN ...) w) w2

Law: the same rows, as a bag: SQL computes window functions after everything but DISTINCT and LIMIT.
"""

from dataclasses import dataclass, field

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.layers import Below, clause_of
from joinlib.sql.rewrite.names import Names


def windows_below(select: exp.Select, names: Names) -> exp.Select:
    """Return a query without window functions, or one that is made of columns and window functions only."""
    return _Windows(
        select, names, Below(names.fresh("w"), {i.alias.lower() for i in select.expressions})
    ).done()


@dataclass
class _Windows:
    select: exp.Select
    names: Names
    below: Below
    functions: dict[str, exp.Window] = field(default_factory=dict)  # by their text, over columns of `below`
    given: dict[str, str] = field(default_factory=dict)  # names of their columns

    def done(self) -> exp.Select:
        for item in self.select.expressions:
            if not trees.windows(item) and _varies(item.this):
                self.below.name(item.this, item.alias, owned=True)
        items = [
            trees.named(self._above(i.this, i.alias if isinstance(i.this, exp.Window) else ""), i.alias)
            for i in self.select.expressions
        ]
        qualify = [self._above(part) for part in trees.ands(clause_of(self.select, "qualify"))]
        base = exp.Select(expressions=self.below.items or [trees.named(trees.number(1), "_c1")])
        for clause in ("from_", "joins", "laterals", "where", "group", "having"):
            base.set(clause, self.select.args.get(clause))
        self._name({i.alias.lower() for i in items})
        return self._chain(base, items, qualify)

    def _above(self, value: exp.Expr, wanted: str = "") -> exp.Expr:
        """The value over columns of `below`, with a placeholder for each function."""
        box = exp.Paren(this=value.copy())

        def change(node: exp.Expr) -> exp.Expr | None:
            if isinstance(node, exp.Window):
                return self._function(node, wanted)
            if isinstance(node, exp.Any | exp.All) or node.arg_key == "query":
                return self._compared(node)
            if _varies(node) and not trees.windows(node):
                return self.below.read(node)
            return None

        trees.replaced(box.this, change)
        return box.this

    def _compared(self, rows: exp.Expr) -> exp.Expr:
        """The rows that a window function is compared with, as in IN: what they read of this query is below."""
        read = {(trees.owner(c), trees.name_of(c)): c for c in trees.outer_columns(rows)}
        values = {key: self.below.read(trees.column(*key, like=column)) for key, column in read.items()}
        return trees.with_columns(rows.copy(), values)

    def _function(self, node: exp.Window, wanted: str) -> exp.Expr:
        made = _over_columns(node, self.below)
        words = trees.text(made)
        self.functions.setdefault(words, made)
        if wanted or words not in self.given:
            self.given[words] = self.given.get(words) or wanted
        return exp.Placeholder(this=words)

    def _name(self, outputs: set[str]) -> None:
        """Name the functions' columns; those that are output columns are called as these."""
        taken = {i.alias.lower() for i in self.below.items}
        for words, wanted in self.given.items():
            name, number = wanted or "_n", 1
            while name.lower() in taken or (not wanted and name.lower() in outputs):
                number += 1
                name = f"{wanted or '_n'}_{number}"
            taken.add(name.lower())
            self.given[words] = name

    def _chain(self, base: exp.Select, items: list[exp.Alias], qualify: list[exp.Expr]) -> exp.Select:
        """Build the queries above `base`: one for each PARTITION BY, and what is computed from them."""
        groups: dict[str, list[str]] = {}
        for words, window in self.functions.items():
            keys = sorted(trees.text(p) for p in window.args.get("partition_by") or [])
            groups.setdefault(" ".join(keys), []).append(words)
        asked = {p.this for part in qualify for p in part.find_all(exp.Placeholder)}
        order = sorted(groups.values(), key=lambda g: bool(asked & set(g)))
        last = set(order[-1])
        mine = [
            p
            for p in qualify
            if {x.this for x in p.find_all(exp.Placeholder)} <= last and not trees.subqueries(p)
        ]
        rest = [p for p in qualify if not any(p is m for m in mine)]
        source, alias = base, self.below.alias
        for at, group in enumerate(order):
            later = [self.functions[w] for g in order[at + 1 :] for w in g]
            final = at == len(order) - 1
            above = [*items, *rest, *later, *([] if final else mine)]
            source = self._over(source, alias, group, above, mine if final else [])
            alias = self.names.fresh("w")
        return self._top(source, alias, items, rest)

    def _over(
        self, source: exp.Select, alias: str, group: list[str], above: list[exp.Expr], qualify: list[exp.Expr]
    ) -> exp.Select:
        """The functions of one PARTITION BY, and the columns that something above reads."""
        read = {trees.name_of(c) for node in above for c in trees.columns_in(node)}
        read |= {self.given[p.this] for node in above for p in node.find_all(exp.Placeholder)}
        wanted = [i.alias for i in source.expressions if i.alias in read]
        over = exp.Select(expressions=[trees.named(trees.column(alias, c), c) for c in wanted])
        for words in group:
            over.append(
                "expressions", trees.named(self._at(self.functions[words].copy(), alias), self.given[words])
            )
        over.meta["over"] = True
        condition = trees.together(self._filled(part, alias, own=group) for part in qualify)
        if condition is not None:
            over.set("qualify", exp.Qualify(this=condition))
        return over.from_(trees.derived(source, alias), copy=False)

    def _filled(self, node: exp.Expr, alias: str, own: list[str]) -> exp.Expr:
        """Read columns of `alias`, or of the query itself for its own functions, instead of placeholders."""
        box = exp.Paren(this=self._at(node.copy(), alias))
        for mark in list(box.find_all(exp.Placeholder)):
            name = self.given[mark.this]
            if mark.this in own:
                mark.replace(exp.Column(this=trees.identifier(name)))
            else:
                mark.replace(trees.column(alias, name))
        return box.this

    def _at(self, node: exp.Expr, alias: str) -> exp.Expr:
        """Let columns of `below` be read from another query that passes them on."""
        for column in trees.columns_in(node):
            if trees.owner(column) == self.below.alias:
                first = ("table", "db", "catalog")[len(column.parts) - 2]
                column.set(first, trees.identifier(alias))
        return node

    def _top(
        self, source: exp.Select, alias: str, items: list[exp.Alias], rest: list[exp.Expr]
    ) -> exp.Select:
        """Return the query that computes the output columns; `source` itself if it has just these."""
        made = [trees.named(self._filled(i.this, alias, []), i.alias) for i in items]
        same = [(trees.name_of(c), i.alias) for i in made if (c := trees.plain_column(i.this)) is not None]
        whole = len(same) == len(made) == len(source.expressions) and all(a == b for a, b in same)
        if whole and not rest:
            by_name = {i.alias: i for i in source.expressions}
            source.set("expressions", [by_name[i.alias] for i in made])
            return source
        top = exp.Select(expressions=made).from_(trees.derived(source, alias), copy=False)
        trees.set_where(top, [self._filled(part, alias, []) for part in rest])
        return top


def _varies(node: exp.Expr) -> bool:
    """Whether a value has to be computed below: it has columns, or is not a constant."""
    return node.find(exp.Column, exp.Select, exp.Anonymous) is not None


# functions whose second argument is a number, and aggregates, whose first argument is a column here
_VALUES = frozenset(
    [
        "sum",
        "avg",
        "mean",
        "min",
        "max",
        "any_value",
        "lag",
        "lead",
        "first",
        "first_value",
        "last",
        "last_value",
        "nth_value",
    ]
)
_PLACED = frozenset(("first", "first_value", "last", "last_value", "nth_value"))  # NULLs are values to these


def _over_columns(node: exp.Window, below: Below) -> exp.Window:
    """The function over columns of `below`."""
    made = node.copy()
    for condition in list(made.find_all(exp.Filter)):
        _filter(condition, below)
    call = made.this
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        call = call.this
    first = True
    for argument in list(call.expressions):
        distinct = isinstance(argument, exp.Distinct)
        for value in list(argument.expressions) if distinct else [argument]:
            if _varies(value) or (first and not distinct and str(call.name).lower() in _VALUES):
                value.replace(below.read(value))
        first = False
    made.set("partition_by", [below.read(p) for p in made.args.get("partition_by") or [] if _varies(p)])
    if order := made.args.get("order"):
        keys = [key for key in order.expressions if _varies(key.this)]
        for key in keys:
            key.set("this", below.read(key.this))
        made.set("order", exp.Order(expressions=keys) if keys else None)
    return made


def _filter(node: exp.Filter, below: Below) -> None:
    """Write FILTER into the argument of an aggregate, which skips NULLs; keep it elsewhere, over a column."""
    call, condition = node.this, node.expression.this
    inner = call.this if isinstance(call, exp.IgnoreNulls | exp.RespectNulls) else call
    if str(inner.name).lower() in _PLACED:
        condition.replace(below.read(condition))
        return
    first = call.expressions[0] if call.expressions else exp.Star()
    value = trees.number(1) if isinstance(first, exp.Star) else first.copy()
    chosen = exp.Case(ifs=[exp.If(this=condition.copy(), true=value)])
    node.replace(exp.Anonymous(this=call.this, expressions=[chosen, *call.expressions[1:]]))
