"""Writes subqueries as joins.

    among the ANDs of WHERE     [NOT] EXISTS and [NOT] IN over one table: semi and anti joins
    anywhere else               LEFT JOIN with a row for each value that the subquery is asked for

    x > (SELECT avg(i.y) FROM i WHERE i.k = o.k)      JOIN (SELECT k, avg(y) AS a ... GROUP BY k) s ON s.k = o.k, x > s.a
    a OR EXISTS (SELECT 1 FROM i WHERE i.k = o.k)     LEFT JOIN (SELECT DISTINCT k FROM i) s ON s.k = o.k, a OR s.k IS NOT NULL

Law: the same rows, as a bag, in three-valued logic.
"""

from collections.abc import Callable, Sequence

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.domain import single_row
from joinlib.sql.rewrite.names import Names
from joinlib.sql.rewrite.pull import Pulled, pulled
from joinlib.sql.rewrite.single import check_one, only, passed_too
from joinlib.sql.subquery import Test, subquery_test


def without_subqueries(select: exp.Select, names: Names) -> exp.Select:
    """Rewrite all subqueries outside FROM in place; return the query."""
    return _Subqueries(select, names).done()


class _Subqueries:
    def __init__(self, select: exp.Select, names: Names) -> None:
        self.select, self.names = select, names
        self.joins: list[exp.Join] = []
        self.counts: list[tuple[exp.Expr, exp.Expr]] = []  # how many rows scalars have, and their places

    def done(self) -> exp.Select:
        self._on_to_where()
        kept: list[exp.Expr] = []
        tests: list[exp.Expr] = []
        for part in trees.where_of(self.select):
            test = subquery_test(part) if trees.subqueries(part) else None
            if test is not None:
                tests += self._test(test, part)
            else:
                kept += trees.ands(self._condition(part))
        for item in self.select.expressions:
            item.set("this", self._value(item.this))
        for clause in ("group", "having", "qualify"):
            if (clauses := self.select.args.get(clause)) is not None:
                self._inside(clauses)
        trees.set_where(self.select, [*kept, *tests])
        if self.joins:
            self.select.set("joins", [*(self.select.args.get("joins") or []), *self.joins])
        for count, at in self.counts:
            check_one(self.select, count, at, self.names)
        return self.select

    def _on_to_where(self) -> None:
        joins = self.select.args.get("joins") or []
        outer = any(j.side or j.kind.upper() in ("SEMI", "ANTI") for j in joins)
        for join in joins:
            on = trees.ands(join.args.get("on"))
            away = [p for p in on if trees.subqueries(p)]
            if away and outer and join.side.upper() in ("LEFT", ""):
                on, away = self._below(join, on, away)
            if away and outer:
                raise self.names.error(
                    "a subquery in the ON of an outer join is supported if it reads nothing but the input that is joined;"
                    " write it in a derived table, JOIN (SELECT ... WHERE ...)",
                    away[0],
                )
            if away:
                join.set("on", trees.together(p for p in on if not any(p is a for a in away)))
                trees.set_where(self.select, [*trees.where_of(self.select), *away])

    def _below(
        self, join: exp.Join, on: list[exp.Expr], away: list[exp.Expr]
    ) -> tuple[list[exp.Expr], list[exp.Expr]]:
        """Let conditions with subqueries that read the joined input alone choose its rows before the join.

        Returns the condition without them, and those of `away` that are left.
        """
        node, alias = join.this, trees.alias_of(join.this)
        chosen = [part for part in away if trees.reads(part) <= {alias}]
        if not chosen:
            return on, away
        names = dict.fromkeys(
            trees.name_of(c) for c in trees.columns_in(self.select) if trees.owner(c) == alias
        )
        left = [part for part in on if not any(part is one for one in chosen)]
        join.set("on", trees.together(left) or trees.true())
        inner = self.names.again(alias)
        box = exp.Paren(this=trees.together(chosen))
        trees.with_columns(box, {(alias, name): trees.column(inner, name) for name in names})
        items = [trees.named(trees.column(inner, name), name) for name in names]
        below = exp.Select(expressions=items or [trees.named(trees.number(1), "_v0")])
        source = node.copy()
        source.set("alias", exp.TableAlias(this=trees.identifier(inner)))
        below.from_(source, copy=False)
        trees.set_where(below, trees.ands(box.this))
        join.set("this", trees.derived(below, alias))
        return left, [part for part in away if not any(part is one for one in chosen)]

    # tests among the ANDs

    def _test(self, test: Test, part: exp.Expr) -> list[exp.Expr]:
        query: trees.Query = test.query
        if test.value is None:
            reduced = _no_list(query)
            if reduced is None:
                return [exp.Boolean(this=not test.negated)]
            if single_row(query):
                return trees.ands(self._condition(part))
            query = reduced
        elif single_row(query):
            return [trees.placed(exp.Paren(this=self._single_in(test, inner=True)), test.at)]
        if not _simple(query):
            query = self._simplified(query, test)
        if test.value is None:
            made: exp.Expr = exp.Exists(this=query)
        else:
            made = exp.In(this=self._value(test.value), query=exp.Subquery(this=query))
        trees.placed(made, test.at)
        return [exp.Not(this=made) if test.negated else made]

    def _simplified(self, query: trees.Query, test: Test) -> exp.Select:
        """The subquery as a SELECT of one derived table."""
        found = pulled(query, self.select, self.names)
        items: list[exp.Expr] = [trees.named(v, f"_v{i}") for i, v in enumerate(found.values)]
        if test.value is None:
            items = [trees.named(trees.number(1), "_v0")]
        made = exp.Select(expressions=items).from_(trees.derived(found.query, found.alias), copy=False)
        trees.set_where(made, found.on)
        return made

    # values

    def _condition(self, part: exp.Expr) -> exp.Expr:
        """A condition of WHERE, which passes only what is TRUE."""
        if not trees.subqueries(part):
            return part
        box = exp.Paren(this=part.copy())
        strict, before = _strict(box.this), len(self.counts)
        for node in trees.subqueries(box.this):
            node.replace(self._joined(node, positive=_positive(node, box), inner=strict))
        return passed_too(box.this, self.counts[before:])

    def _value(self, value: exp.Expr) -> exp.Expr:
        if not trees.subqueries(value):
            return value
        box = exp.Paren(this=value.copy())
        self._inside(box)
        return box.this

    def _inside(self, node: exp.Expr) -> None:
        for part in trees.subqueries(node):
            part.replace(self._joined(part, positive=False, inner=False))

    def _joined(self, node: exp.Expr, positive: bool, inner: bool) -> exp.Expr:
        """Join what a subquery computes; return the value that stands for it."""
        if isinstance(node, exp.Exists):
            return exp.Paren(this=self._exists(node.this, positive))
        test = subquery_test(node)
        if test is not None and test.value is not None:
            if single_row(test.query):
                return exp.Paren(this=self._single_in(test))
            if isinstance(test.value.unnest(), exp.Tuple):
                return exp.Paren(this=self._in_several(test, positive or _chooses(node)))
            made = self._positive_in(test) if positive and not test.negated else self._in(test)
            return exp.Paren(this=made)
        if isinstance(node.args.get("expression"), exp.Any | exp.All):
            return exp.Paren(this=self._quantified(node))
        return self._scalar(node.unnest(), node, inner)

    def _scalar(self, query: exp.Expr, at: exp.Expr, inner: bool) -> exp.Expr:
        assert isinstance(query, trees.Query)
        if len(trees.output_names(query)) != 1:
            raise self.names.error("a subquery that is a value has one column", at)
        query.set("order", query.args.get("order") if query.args.get("limit") else None)
        found = self._one(pulled(query, self.select, self.names, equal=True), at)
        self._join(found, inner and not found.counts)
        value = found.there(found.values[0])
        trees.placed(value, at)
        return value if isinstance(value, exp.Column | exp.Anonymous) else exp.Paren(this=value)

    def _one(self, found: Pulled, at: exp.Expr) -> Pulled:
        """At most one row for each outer row; several stop the batch."""
        if found.one:
            return found
        self._equalities(found)
        alias = self.names.fresh("s")
        name = trees.name_of(found.values[0])  # type: ignore[arg-type]
        items = [trees.named(trees.column(alias, k), k) for k in found.keys]
        value, count = trees.call("any_value", trees.column(alias, name)), trees.call("count", exp.Star())
        name = self._free(name, found.keys)
        if found.keys:
            rows = self._free("_n", [*found.keys, name])
            items += [trees.named(value, name), trees.named(count, rows)]
            self.counts.append((trees.column(found.alias, rows), at))
        else:
            items.append(trees.named(only(value, count, at, self.names), name))
        query = exp.Select(expressions=items).from_(trees.derived(found.query, alias), copy=False)
        if found.keys:
            query.set("group", exp.Group(expressions=[trees.column(alias, k) for k in found.keys]))
        return Pulled(query, found.alias, found.on, [trees.column(found.alias, name)], found.keys, one=True)

    def _free(self, name: str, taken: list[str]) -> str:
        while name in taken:
            name = f"_{name}"
        return name

    def _equalities(self, found: Pulled) -> None:
        if not found.equal:
            raise self.names.error(
                "a subquery that is a value, or stands under OR, NOT or CASE, is related to the query around it"
                " by equalities only; write a join with it",
                next(p for p in found.on if not isinstance(p, exp.EQ)),
            )

    def _exists(self, query: exp.Expr, positive: bool) -> exp.Expr:
        """Whether there is a row; `positive`: UNKNOWN is as good as FALSE."""
        reduced = _no_list(query)  # type: ignore[arg-type]
        if reduced is None:
            return trees.true()
        found = pulled(reduced, self.select, self.names, equal=True)
        if found.always:
            self._join(found, False)
            having = found.having if found.having is not None else trees.true()
            return having if positive else trees.call("coalesce", having, exp.Boolean(this=False))
        if not found.on:
            count = self._counted(found, [])
            self._join(count, False)
            return exp.GT(this=count.values[0], expression=trees.number(0))
        self._equalities(found)
        return self._mark(found, found.keys, found.on)

    def _mark(self, found: Pulled, columns: list[str], on: list[exp.Expr]) -> exp.Expr:
        """Join the distinct values of some columns; whether a row has them."""
        below = self.names.fresh("s")
        columns = list(dict.fromkeys(columns))
        items = [trees.named(trees.column(below, c), c) for c in columns]
        strict = next(
            (p.this for p in on if isinstance(p, exp.EQ) and trees.owner(p.this) == found.alias), None
        )
        if strict is None:  # a row that is there may have NULLs alone
            there = self._free("_there", columns)
            items.append(trees.named(trees.number(1), there))
            strict = trees.column(found.alias, there)
        query = exp.Select(expressions=items, distinct=exp.Distinct())
        query.from_(trees.derived(found.query, below), copy=False)
        self._join(Pulled(query, found.alias, on, []), False)
        return exp.Not(this=exp.Is(this=strict.copy(), expression=exp.Null()))

    def _counted(self, found: Pulled, of: list[str]) -> Pulled:
        """The number of rows for each outer row, and the numbers of values in some columns."""
        below, alias = self.names.fresh("s"), self.names.fresh("s")
        items = [trees.named(trees.column(below, k), k) for k in found.keys]
        names = [self._free("_n", found.keys), *(self._free(f"_n{i}", found.keys) for i, _ in enumerate(of))]
        counts = [exp.Star(), *(trees.column(below, c) for c in of)]
        items += [trees.named(trees.call("count", c), n) for n, c in zip(names, counts)]
        query = exp.Select(expressions=items).from_(trees.derived(found.query, below), copy=False)
        if found.keys:
            query.set("group", exp.Group(expressions=[trees.column(below, k) for k in found.keys]))
        on = [trees.with_columns(p.copy(), _moved(found, alias)) for p in found.on]
        zero = [trees.call("coalesce", trees.column(alias, n), trees.number(0)) for n in names]
        return Pulled(query, alias, on, list(zero), found.keys, one=True, counts=True)

    def _single_in(self, test: Test, inner: bool = False) -> exp.Expr:
        """IN over the one row of aggregates, or over none: TRUE, FALSE or NULL.

        `inner`: only TRUE matters.
        """
        assert test.value is not None
        found = pulled(test.query, self.select, self.names, equal=True)
        left = test.value.unnest()
        lefts = left.expressions if isinstance(left, exp.Tuple) else [test.value]
        if len(lefts) != len(found.values):
            raise self.names.error(
                f"IN compares {len(lefts)} values with {len(found.values)} columns", test.at
            )
        pairs = zip([_tight(self._value(v)) for v in lefts], found.values)
        equal = trees.together(exp.EQ(this=one, expression=_tight(two)) for one, two in pairs)
        assert equal is not None
        self._join(found, inner and not found.counts and (found.having is None or not test.negated))
        made = found.there(equal, exp.Boolean(this=False))
        return exp.Not(this=exp.Paren(this=made)) if test.negated else made

    def _positive_in(self, test: Test) -> exp.Expr:
        """IN where UNKNOWN is as good as FALSE."""
        found = pulled(test.query, self.select, self.names, equal=True)
        self._equalities(found)
        assert test.value is not None
        left = test.value.unnest()
        lefts = left.expressions if isinstance(left, exp.Tuple) else [test.value]
        if len(lefts) != len(found.values):
            raise self.names.error(
                f"IN compares {len(lefts)} values with {len(found.values)} columns", test.at
            )
        on = list(found.on)
        columns = list(found.keys)
        for one, two in zip(lefts, found.values):
            assert isinstance(two, exp.Column)
            on.append(exp.EQ(this=two.copy(), expression=_tight(self._value(one))))
            columns.append(trees.name_of(two))
        return self._mark(found, columns, on)

    def _in(self, test: Test) -> exp.Expr:
        """IN as a value: TRUE, FALSE or NULL."""
        assert test.value is not None
        again = self._again(test.query)
        value = _tight(self._value(test.value))
        one, two = (pulled(q, self.select, self.names, equal=True) for q in (test.query, again))
        self._equalities(one)
        column = one.values[0]
        assert isinstance(column, exp.Column) and isinstance(two.values[0], exp.Column)
        equal = exp.EQ(this=column.copy(), expression=value.copy())
        hit = self._mark(one, [*one.keys, trees.name_of(column)], [*one.on, equal])
        counts = self._counted(two, [trees.name_of(two.values[0])])
        self._join(counts, False)
        rows, known = counts.values
        none = exp.EQ(this=rows, expression=trees.number(0))
        null = exp.Or(
            this=exp.Is(this=value.copy(), expression=exp.Null()),
            expression=exp.LT(this=known, expression=rows.copy()),
        )
        ifs = [
            exp.If(this=hit, true=trees.true()),
            exp.If(this=none, true=exp.Boolean(this=False)),
            exp.If(this=null, true=exp.Null()),
        ]
        made: exp.Expr = exp.Case(ifs=ifs, default=exp.Boolean(this=False))
        return exp.Not(this=made) if test.negated else made

    def _in_several(self, test: Test, positive: bool) -> exp.Expr:
        """IN of several values: TRUE if a row equals all of them, else NULL if a row differs from them in none.

        `positive`: UNKNOWN is as good as FALSE.
        """
        assert test.value is not None
        if positive and not test.negated:
            return self._positive_in(test)
        values = [_tight(self._value(value)) for value in test.value.unnest().expressions]
        if len(values) != len(trees.output_names(test.query)):
            columns = len(trees.output_names(test.query))
            raise self.names.error(f"IN compares {len(values)} values with {columns} columns", test.at)
        again = self._again(test.query)
        alike = self._exists(self._of_rows(again, values, test, _not_unlike), True)
        if positive:
            return exp.Not(this=exp.Paren(this=alike))
        equal = self._exists(self._of_rows(test.query, values, test, _equal), True)
        ifs = [exp.If(this=equal, true=trees.true()), exp.If(this=alike, true=exp.Null())]
        made: exp.Expr = exp.Case(ifs=ifs, default=exp.Boolean(this=False))
        return exp.Not(this=made) if test.negated else made

    def _of_rows(
        self,
        query: exp.Select,
        values: Sequence[exp.Expr],
        test: Test,
        asked: Callable[[exp.Expr, exp.Expr], exp.Expr],
    ) -> exp.Select:
        """Return the rows of a subquery of which each column meets what is asked of it and of a value."""
        if not _filters(query):
            if trees.outer_columns(query):
                raise self.names.error(
                    "IN with several values under OR, NOT or CASE is not supported over groups, limits or window functions"
                    " that read the query around them; write the condition within EXISTS (SELECT ... WHERE ...)",
                    test.at,
                )
            alias = self.names.fresh("q")
            items: list[exp.Expr] = [trees.column(alias, name) for name in trees.output_names(query)]
            query = exp.Select(expressions=items).from_(trees.derived(query, alias), copy=False)
        columns = [item.unalias() for item in query.expressions]
        met = [asked(_tight(column), value.copy()) for column, value in zip(columns, values, strict=True)]
        trees.set_where(query, [*trees.where_of(query), *met])
        return query

    def _again(self, query: exp.Select) -> exp.Select:
        """Return a copy of a subquery that is read once more."""
        again = query.copy()
        self.names.copied(again)
        self._rename_sources(again)
        return again

    def _quantified(self, node: exp.Expr) -> exp.Expr:
        """x > ALL (q) is x > max(q), except where q is empty or has NULLs."""
        every = isinstance(node.expression, exp.All)
        query = node.expression.this.unnest()
        low = isinstance(node, exp.LT | exp.LTE)
        if single_row(query):
            return self._single_quantified(node, query)
        if isinstance(node, exp.EQ | exp.NEQ):
            raise self.names.error("= ALL and <> ANY are not supported; write min and max", node)
        extreme = "min" if low == every else "max"
        alias = self.names.fresh("q")
        name = trees.output_names(query)[0]
        if trees.outer_columns(query):
            raise self.names.error(
                "ALL and ANY of a subquery that reads the query around it are not supported; write the condition within"
                " [NOT] EXISTS (SELECT ... WHERE ...)",
                node,
            )
        values = [trees.call("count", exp.Star()), trees.call("count", trees.column(alias, name))]
        values.append(trees.call(extreme, trees.column(alias, name)))
        items = [trees.named(v, f"_n{i}") for i, v in enumerate(values)]
        found = pulled(
            exp.Select(expressions=items).from_(trees.derived(query, alias), copy=False),
            self.select,
            self.names,
        )
        self._join(found, False)
        rows, known, value = found.values
        zero = trees.number(0)
        none = exp.EQ(this=trees.call("coalesce", rows, zero.copy()), expression=zero)
        decided = type(node)(this=_tight(self._value(node.this)), expression=value)
        sure = decided if not every else exp.Not(this=decided)
        ifs = [
            exp.If(this=none, true=exp.Boolean(this=every)),
            exp.If(this=sure, true=exp.Boolean(this=not every)),
            exp.If(this=exp.LT(this=known, expression=rows.copy()), true=exp.Null()),
        ]
        return exp.Case(ifs=ifs, default=decided.copy())

    def _single_quantified(self, node: exp.Expr, query: exp.Select) -> exp.Expr:
        """ALL and ANY of one row compare with it; of none ALL is TRUE and ANY is FALSE."""
        found = pulled(query, self.select, self.names, equal=True)
        if len(found.values) != 1:
            raise self.names.error("a subquery that is a value has one column", node)
        left = _tight(self._value(node.this))
        self._join(found, False)
        compared = type(node)(this=left, expression=_tight(found.values[0]))
        return found.there(compared, exp.Boolean(this=isinstance(node.expression, exp.All)))

    def _rename_sources(self, query: exp.Expr) -> None:
        """Give the sources of a copied query aliases of their own."""
        new: dict[str, str] = {}
        for select in query.find_all(exp.Select):
            for node in trees.source_nodes(select):
                old = trees.alias_of(node)
                new[old] = self.names.again(old)
                node.args["alias"].set("this", trees.identifier(new[old]))
        for column in query.find_all(exp.Column):
            if column.table and trees.owner(column) in new:
                column.parts[0].replace(trees.identifier(new[trees.owner(column)]))

    def _join(self, found: Pulled, inner: bool) -> None:
        on = trees.together(found.on) or trees.true()
        join = exp.Join(this=trees.derived(found.query, found.alias), on=on)
        if not inner:
            join.set("side", "LEFT")
        self.joins.append(join)


def _moved(found: Pulled, alias: str) -> dict[tuple[str, str], exp.Expr]:
    return {(found.alias, k): trees.column(alias, k) for k in found.keys}


def _tight(value: exp.Expr) -> exp.Expr:
    value = value.unnest().copy()
    return value if isinstance(value, exp.Column | exp.Literal | exp.Anonymous) else exp.Paren(this=value)


def _equal(one: exp.Expr, two: exp.Expr) -> exp.Expr:
    return exp.EQ(this=one, expression=two)


def _not_unlike(one: exp.Expr, two: exp.Expr) -> exp.Expr:
    """The condition that one = two is TRUE or NULL."""
    nulls = [exp.Is(this=value.copy(), expression=exp.Null()) for value in (one, two)]
    either = exp.Or(this=exp.Or(this=_equal(one, two), expression=nulls[0]), expression=nulls[1])
    return exp.Paren(this=either)


def _chooses(node: exp.Expr) -> bool:
    """Whether a part is a condition of CASE, for which UNKNOWN is as good as FALSE."""
    while isinstance(node.parent, exp.And | exp.Or | exp.Paren):
        node = node.parent
    choice = node.parent
    return (
        isinstance(choice, exp.If)
        and choice.this is node
        and isinstance(choice.parent, exp.Case)
        and choice.parent.this is None
    )


def _filters(query: exp.Select) -> bool:
    """Whether a subquery only joins and filters."""
    if not query.args.get("from_"):
        return False
    clauses = ("group", "having", "qualify", "limit", "offset", "laterals")
    return not (
        any(query.args.get(c) for c in clauses) or trees.is_grouped(query) or trees.has_windows(query)
    )


def _simple(query: exp.Expr) -> bool:
    """Whether a subquery reads one table and only filters."""
    if not isinstance(query, exp.Select) or not _filters(query) or query.args.get("joins"):
        return False
    if any(trees.subqueries(p) for p in (*query.expressions, *trees.where_of(query))):
        return False
    query.set("order", None)
    query.set("distinct", None)
    return not trees.outer_columns(query.args["from_"])


def _no_list(query: trees.Query) -> trees.Query | None:
    """EXISTS does not care for the columns, their order, and how often a row is there; None: always TRUE."""
    if not isinstance(query, exp.Select):
        return query
    limit = query.args.get("limit")
    if isinstance(limit, exp.Limit) and limit.expression.name.isdecimal() and int(limit.expression.name):
        query.set("limit", None)
    if query.args.get("limit") or query.args.get("offset") or query.args.get("qualify"):
        return query
    query.set("order", None)
    if single_row(query) and not query.args.get("having"):
        return None
    query.set("distinct", None)
    query.set("expressions", [trees.named(trees.number(1), "_v0")])
    if query.args.get("group") and not query.args.get("having"):
        query.set("group", None)
    return query


def _positive(node: exp.Expr, box: exp.Expr) -> bool:
    """Whether UNKNOWN is as good as FALSE for a part of a condition: only AND and OR are above it."""
    parent = node.parent
    while parent is not None and parent is not box:
        if not isinstance(parent, exp.And | exp.Or | exp.Paren):
            return False
        parent = parent.parent
    return True


def _strict(part: exp.Expr) -> bool:
    """Whether a condition is never TRUE if one of its subqueries is NULL."""
    if isinstance(part, exp.Between):
        return all(_passes(side) for side in (part.this, part.args["low"], part.args["high"]))
    if not isinstance(part, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return False
    return _passes(part.this) and _passes(part.expression)


def _passes(node: exp.Expr) -> bool:
    """Whether a value is NULL if a subquery in it is."""
    if isinstance(node, exp.Subquery) or not trees.subqueries(node):
        return True
    kinds = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Paren, exp.Neg, exp.Cast)
    return isinstance(node, kinds) and all(_passes(child) for child in node.iter_expressions())
