"""Makes a subquery that reads columns of the query around it into one that does not.

    (SELECT max(i.x) FROM i WHERE i.k = o.k AND i.y > 1)
    (SELECT i.k AS _k, max(i.x) AS x FROM i WHERE i.y > 1 GROUP BY i.k) AS s, on s._k = o.k

Law: for each row of the outer query, the rows that `on` selects are those that the subquery returned.
Conditions of any kind are taken out of a subquery that only joins and filters; out of one that groups,
numbers rows or takes the first ones, equalities only.
"""

from dataclasses import dataclass, field

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.common import factored
from joinlib.sql.rewrite.domain import needs_domain, single_row, with_domain
from joinlib.sql.rewrite.limits import limited
from joinlib.sql.rewrite.names import Names

_COUNTS = frozenset(("count", "count_if", "approx_count_distinct", "regr_count"))


@dataclass
class Pulled:
    """A subquery that stands alone: `query AS alias`, whose rows belong to an outer row by `on`."""

    query: trees.Query
    alias: str
    on: list[exp.Expr]
    values: list[exp.Expr]  # of its columns; also where no row belongs, if the alias is then filled with NULL
    keys: list[str] = field(default_factory=list)  # columns that `on` equates with a value of the outer row
    one: bool = False  # at most one row belongs to an outer row
    counts: bool = False  # some value is not NULL where no row belongs
    having: exp.Expr | None = None  # like the values, also where no row belongs: whether the one row is there
    equal: bool = True  # `on` are equalities only
    always: bool = False  # SQL has one row for each outer row, also where no row belongs, if `having` is TRUE

    def there(self, value: exp.Expr, otherwise: exp.Expr | None = None) -> exp.Expr:
        """A value where the one row is there, and another where it is not."""
        if self.having is None:
            return value
        return exp.Case(ifs=[exp.If(this=self.having.copy(), true=value)], default=otherwise)


def pulled(query: trees.Query, around: exp.Select, names: Names, equal: bool = False) -> Pulled:
    """Return the subquery without columns of the query around it.

    `equal`: it is to be related by equalities only.

    Raises:
        SqlError: if it reads them where that cannot be done.
    """
    outer = trees.outer_columns(query)
    if not outer and isinstance(query, exp.Select) and single_row(query):
        return _Pull(query, around, names).done(equal)  # there is no group of no rows
    if not outer:
        alias = names.fresh("s")
        values = [trees.column(alias, name) for name in trees.output_names(query)]
        return Pulled(query, alias, [], list(values), one=_number_one(query))
    if not isinstance(query, exp.Select):
        raise names.error(
            f"{query.key.upper()} in a subquery that reads {trees.text(outer[0])} of the query around it is"
            " not supported; write a subquery for each part",
            outer[0],
        )
    return _Pull(query, around, names).done(equal)


class _Pull:
    def __init__(self, query: exp.Select, around: exp.Select, names: Names) -> None:
        self.query, self.around, self.names = factored(query), around, names
        self.alias = names.fresh("s")
        self.own = set(trees.sources(query))
        self.exported: dict[str, str] = {}
        self.items: list[exp.Alias] = []
        self.counts = False
        self.domain: dict[tuple[str, str], exp.Column] = {}

    def done(self, equal: bool) -> Pulled:
        self._conditions_to_where()
        if needs_domain(self.query, self.own, self._pair, equal):
            self.domain = with_domain(self.query, self.around, self.names)
            self.own = set(trees.sources(self.query))
        parts = trees.where_of(self.query)
        outside = [p for p in parts if self._outer(p)]
        trees.set_where(self.query, [p for p in parts if not self._outer(p)])
        grouped = trees.is_grouped(self.query)
        framed = any(self.query.args.get(n) for n in ("limit", "offset", "qualify"))
        if grouped or framed or trees.has_windows(self.query):
            return self._by_equalities(outside, grouped)
        self._check_rest(("items",))
        values = [self._value(item.this, item.alias) for item in self.query.expressions]
        on = [self._shown(part) for part in outside]
        pairs = [self._pair(part) for part in outside]
        keys = [self.exported[trees.text(p[0])] for p in pairs if p and trees.text(p[0]) in self.exported]
        self.query.set("order", None)
        self._select()
        equal, keys = all(p is not None for p in pairs), list(dict.fromkeys(keys))
        return Pulled(self.query, self.alias, on, values, keys, equal=equal)

    def _by_equalities(self, outside: list[exp.Expr], grouped: bool) -> Pulled:
        query = self.query
        one = single_row(query)
        self._check_rest(("items", "having") if one else ())
        keys: list[exp.Expr] = []
        on: list[exp.Expr] = []
        for part in outside:
            pair = self._pair(part)
            if pair is None:
                raise self.names.error(
                    f"{_short(part)} relates the subquery to the query around it, but is no equality of a value"
                    " of each: what the subquery groups or counts would be another for every row",
                    part,
                )
            inner, outer = pair
            keys.append(inner)
            on.append(type(part)(this=self._export(inner), expression=outer.copy()))
        values, having = self._grouped_values(one)
        if one and not keys and not self.items:
            self._export(trees.call("count", exp.Star()))  # without an aggregate it would have every row
        if grouped:
            group = query.args.get("group")
            more = list(group.expressions) if group else []
            query.set(
                "group", exp.Group(expressions=[k.copy() for k in keys] + more) if keys or more else None
            )
        self._select()
        always, one = one, one or _number_one(query)
        limited(query, self.names)
        self._partition(keys)
        names = list(dict.fromkeys(self.exported[trees.text(k)] for k in keys))
        return Pulled(query, self.alias, on, values, names, one, self.counts, having, always=always)

    def _grouped_values(self, one: bool) -> tuple[list[exp.Expr], exp.Expr | None]:
        if not one:
            return [self._export(item.this, item.alias) for item in self.query.expressions], None
        windowed = [*(w for i in self.query.expressions for w in trees.windows(i))]
        windowed += [q] if (q := self.query.args.get("qualify")) is not None else []
        if windowed:
            raise self.names.error(
                "a window function over aggregates without GROUP BY, whose row is the only one, is not"
                " supported in a subquery",
                windowed[0],
            )
        having = self.query.args.get("having")
        self.query.set("having", None)
        values = [self._computed(item.this, item.alias) for item in self.query.expressions]
        self.counts = not all(_null_of_none(item.this) for item in self.query.expressions)
        if self._skipped():
            return values, exp.Boolean(this=False)
        return values, self._computed(having.this, "") if having else None

    def _skipped(self) -> bool:
        """Whether LIMIT or OFFSET leaves out the one row; take both away."""
        limit, offset = (_number(self.query.args.get(n), self.names) for n in ("limit", "offset"))
        for name in ("limit", "offset"):
            self.query.set(name, None)
        return limit == 0 or bool(offset)

    def _computed(self, value: exp.Expr, name: str) -> exp.Expr:
        """A value computed from aggregates, each of which becomes a column."""
        box = exp.Paren(this=value.copy())

        def change(node: exp.Expr) -> exp.Expr | None:
            if isinstance(node, exp.Column) and node.table:
                return self._around(node)
            if isinstance(node, trees.Query):
                raise self.names.error(
                    "a subquery beside aggregates without GROUP BY is not supported in a subquery; write it"
                    " in the query around them",
                    node,
                )
            if not trees.is_aggregate(node):
                return None
            call = node.this if isinstance(node, exp.Filter) else node
            column = self._export(node, name if node is box.this else "")
            if str(call.name).lower() in _COUNTS:
                return trees.call("coalesce", column, trees.number(0))
            return column

        trees.replaced(box.this, change)
        return box.this

    def _around(self, column: exp.Column) -> exp.Column:
        """A column beside aggregates, which is one of the query around them."""
        if trees.owner(column) not in self.own:
            return column.copy()
        found = self.domain.get((trees.owner(column), trees.name_of(column)))
        if found is None:
            raise self.names.error(
                f"{trees.text(column)} is neither within an aggregate nor in GROUP BY", column
            )
        return trees.with_columns(column.copy(), {(trees.owner(column), trees.name_of(column)): found})  # type: ignore[return-value]

    def _partition(self, keys: list[exp.Expr]) -> None:
        for part in (*self.query.expressions, self.query.args.get("qualify")):
            for window in trees.windows(part) if part is not None else []:
                given = window.args.get("partition_by") or []
                window.set("partition_by", [*given, *(k.copy() for k in keys)])

    def _select(self) -> None:
        self.query.set("expressions", self.items or [trees.named(trees.number(1), "_c1")])

    def _export(self, value: exp.Expr, name: str = "") -> exp.Column:
        """Make a value of the subquery a column of it."""
        words = trees.text(value)
        if words not in self.exported:
            taken = {i.alias.lower() for i in self.items} | {i.alias.lower() for i in self.query.expressions}
            plain = trees.plain_column(value)
            wanted = name or (trees.name_of(plain) if plain is not None else "_k")
            if name:
                taken = {i.alias.lower() for i in self.items}
            found, number = wanted, 1
            while found.lower() in taken:
                number += 1
                found = f"{wanted}_{number}"
            self.exported[words] = found
            self.items.append(trees.named(value.copy(), found))
        return trees.column(self.alias, self.exported[words], value)

    def _value(self, value: exp.Expr, name: str) -> exp.Expr:
        return self._shown(value) if self._outer(value) else self._export(value, name)

    def _shown(self, node: exp.Expr) -> exp.Expr:
        """A value of both queries, over columns of both."""
        pair = self._pair(node)
        if pair is not None:
            return type(node)(this=self._export(pair[0]), expression=pair[1].copy())
        box = exp.Paren(this=node.copy())

        def change(part: exp.Expr) -> exp.Expr | None:
            if isinstance(part, exp.Column) and part.table and trees.owner(part) in self.own:
                return self._export(part)
            return None

        trees.replaced(box.this, change)
        return box.this

    def _pair(self, part: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
        """The inner and the outer side of an equality; None for any other condition."""
        if not isinstance(part, exp.EQ | exp.NullSafeEQ):
            return None
        sides = part.this.unnest(), part.expression.unnest()
        for inner, outer in (sides, sides[::-1]):
            one, two = self._mine(inner), self._mine(outer)
            if one == {True} and two == {False}:
                return inner, outer
        return None

    def _mine(self, node: exp.Expr) -> set[bool]:
        if trees.subqueries(node):
            return set()
        return {trees.owner(c) in self.own for c in trees.columns_in(node)}

    def _outer(self, node: exp.Expr) -> bool:
        return any(owner not in self.own for owner in _read(node))

    def _conditions_to_where(self) -> None:
        """Move ON that reads outer columns to WHERE, where all joins are inner."""
        joins = self.query.args.get("joins") or []
        moved: list[exp.Expr] = []
        for join in joins:
            on = trees.ands(join.args.get("on"))
            away = [p for p in on if self._outer(p)]
            if away and any(j.side or j.kind.upper() in ("SEMI", "ANTI") for j in joins):
                raise self.names.error(
                    f"{_short(away[0])} in the ON of a subquery reads the query around it; write it in WHERE",
                    away[0],
                )
            trees.set_on(join, (p for p in on if not any(p is a for a in away)))
            moved += away
        if moved:
            trees.set_where(self.query, [*trees.where_of(self.query), *moved])

    def _check_rest(self, allowed: tuple[str, ...]) -> None:
        """Check that outer columns are read nowhere else."""
        clauses = ("group", "having", "qualify", "order")
        rest = [p for n in clauses if n not in allowed and (p := self.query.args.get(n))]
        if "items" not in allowed:
            rest += self.query.expressions
        rest += trees.source_nodes(self.query)
        for part in rest:
            for column in trees.outer_columns(part):
                if trees.owner(column) not in self.own and not _within(column, part, self.own):
                    raise self.names.error(
                        f"{trees.text(column)} of the query around is read within {_short(part)}; a subquery"
                        " may compare it in its WHERE",
                        column,
                    )


def _within(column: exp.Column, part: exp.Expr, own: set[str]) -> bool:
    inner = {trees.alias_of(s) for q in part.find_all(exp.Select) for s in trees.source_nodes(q)}
    return trees.owner(column) in inner | own


def _read(node: exp.Expr) -> set[str]:
    inner = {trees.alias_of(s) for q in node.find_all(exp.Select) for s in trees.source_nodes(q)}
    return {trees.owner(c) for c in trees.columns_in(node)} - inner


def _null_of_none(value: exp.Expr) -> bool:
    """Whether a value computed from aggregates is certainly NULL where they have no rows."""
    if trees.is_aggregate(value):
        call = value.this if isinstance(value, exp.Filter) else value
        return str(call.name).lower() not in _COUNTS
    if isinstance(value, exp.Paren | exp.Neg | exp.Cast):
        return _null_of_none(value.this)
    if isinstance(value, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return _null_of_none(value.this) or _null_of_none(value.expression)
    return False


def _number(node: exp.Expr | None, names: Names) -> int | None:
    if node is None:
        return None
    value = node.args.get("expression") or node.this
    if isinstance(value, exp.Literal) and not value.is_string and value.name.isdecimal():
        return int(value.name)
    raise names.error(f"{node.key.upper()} takes a whole number", node)


def _number_one(query: trees.Query) -> bool:
    limit = query.args.get("limit")
    if limit is None or query.args.get("offset") is not None or limit.args.get("limit_options"):
        return False
    return bool(limit.expression.name == "1")


def _short(node: exp.Expr) -> str:
    words = node.sql(dialect="spark", normalize_functions=False)
    return words if len(words) <= 80 else f"{words[:77]}..."
