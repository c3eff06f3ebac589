"""Says of every name what it means, so that later rewrites need not look around them.

Law: the same rows. Afterwards

- every source in FROM has an alias of its own in the whole text, and every column is written alias.column;
- * and input.* are columns, USING and NATURAL are ON, every output column has a name of its own;
- numbers and output names in GROUP BY, HAVING, QUALIFY and ORDER BY are the expressions they stand for;
- a CTE or view is a table `$name`, whose query is among the `definitions`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.sql.parse import place
from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.constant_keys import is_constant, without_constants
from joinlib.sql.rewrite.known import Known, Offered
from joinlib.sql.rewrite.named_windows import name_windows, no_nested
from joinlib.sql.supported import written

OUTPUT = "$output."  # what the names of the outputs' queries begin with, in a text of several
NO_PARENTHESES = frozenset(
    (
        "current_date",
        "current_timestamp",
        "current_time",
        "localtimestamp",
        "current_user",
        "current_timezone",
    )
)
UNITS = frozenset(
    (
        *("microsecond", "millisecond", "second", "minute", "hour", "day", "dayofyear"),
        *("week", "month", "quarter", "year"),
    )
)


@dataclass
class Definition:
    """A CTE or a view."""

    query: trees.Query
    rows: Offered
    title: str
    view: str = ""  # its name if it is a view, whose places are those of its own text
    uses: int = 0


@dataclass
class Names:
    """Resolves one text and the views that it reads."""

    sql: str
    tables: Mapping[str, tuple[str, ...]]  # names of columns by name of the table
    views: Mapping[str, exp.Expr]
    aliases: set[str] = field(default_factory=set)
    definitions: dict[str, Definition] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)  # what the text calls an alias
    kept: Mapping[str, Sequence[str]] = field(default_factory=dict)  # what else is read of tables, by alias
    tops: list[exp.Expr] = field(default_factory=list)  # the SELECTs whose columns are those of results
    open_views: tuple[str, ...] = ()
    streams: frozenset[str] = frozenset()  # the tables whose rows come
    read: list[str] = field(default_factory=list)  # the tables that the text reads, in order
    unknown: list[SqlError] = field(
        default_factory=list
    )  # names that mean nothing: others are looked for all the same

    def error(self, message: str, at: exp.Expr | None) -> SqlError:
        return SqlError(message, *place(self.sql, at))

    def result(self, node: exp.Expr) -> trees.Query:
        """Resolve the whole text, whose columns without a name are called by their text, as in Spark."""
        self.tops.append(_first(node))
        return self.query(node)

    def results(self, node: exp.Expr) -> dict[str, trees.Query]:
        """Resolve a text that defines the queries of several outputs (`sql.text.program`); return them by name."""
        with_ = node.args["with_"]
        named = [cte for cte in with_.expressions if cte.alias.startswith(OUTPUT)]
        self.tops += [_first(cte.this) for cte in named]
        known = self._with(with_, None)
        found = {cte.alias: self.definitions[known.ctes[cte.alias.lower()]].query for cte in named}
        return {name.removeprefix(OUTPUT): query for name, query in found.items()}

    def query(self, node: exp.Expr, outer: Known | None = None) -> trees.Query:
        """Resolve a query in place where possible; return it."""
        with_ = node.args.get("with_")
        known = self._with(with_, outer) if with_ else outer
        node.set("with_", None)
        if isinstance(node, exp.Subquery):
            if not any(node.args.get(n) for n in ("order", "limit", "offset")):
                return self.query(node.this, known)
            return self.query(self._above(node), known)
        if isinstance(node, exp.SetOperation):
            if any(node.args.get(n) for n in ("order", "limit", "offset")):
                return self.query(self._above(node), known)
            return self._both(node, known)
        if isinstance(node, exp.Values):
            from joinlib.sql.rewrite.constants import values

            return self.query(values(node, self.sql), known)
        if isinstance(node, exp.Table):
            return self.query(exp.Select(expressions=[exp.Star()]).from_(node, copy=False), known)
        if not isinstance(node, exp.Select):
            raise self.error(f"write a SELECT; {node.key.upper()} is not supported", node)
        return self._select(node, known)

    def _above(self, node: exp.Expr) -> exp.Select:
        """ORDER BY and LIMIT of a whole set operation: those of a SELECT from it."""
        above = exp.Select(expressions=[exp.Star()])
        for name in ("order", "limit", "offset"):
            above.set(name, node.args.get(name))
            node.set(name, None)
        below = node.this if isinstance(node, exp.Subquery) and not node.alias else node
        source = exp.Subquery(this=below, alias=exp.TableAlias(this=trees.identifier(self.fresh("u"))))
        above.set("from_", exp.From(this=source))
        return above

    def _both(self, node: exp.SetOperation, outer: Known | None) -> trees.Query:
        left, right = self.query(node.this, outer), self.query(node.expression, outer)
        one, two = len(trees.output_names(left)), len(trees.output_names(right))
        if one != two:
            word = node.key.upper()
            raise self.error(f"{word} takes queries of equally many columns: {one} and {two}", right)
        for side in (left, right):
            _void(side)
        node.set("this", left)
        node.set("expression", right)
        return node

    def _with(self, with_: exp.With, outer: Known | None) -> Known:
        if with_.args.get("recursive") and (cte := _recursive(with_)) is not None:
            raise self.error(
                f"{cte.alias} reads itself, and WITH RECURSIVE is not supported: a change could travel round"
                " forever; join the input to itself as often as levels are needed",
                cte,
            )
        known = Known(self, outer, ctes={})
        for cte in with_.expressions:
            if cte.alias.lower() in known.ctes:
                raise self.error(f"WITH names {cte.alias} twice; give one another name", cte)
            query = self.query(cte.this, known)
            if columns := cte.args["alias"].columns:
                self.rename(query, [c.name for c in columns], cte)
            known.ctes[cte.alias.lower()] = self.define(query, cte.alias)
        return known

    def define(self, query: trees.Query, title: str, view: str = "") -> str:
        name = f"${title}_{len(self.definitions)}"
        self.definitions[name] = Definition(query, Offered.of(query), title, view)
        return name

    def view(self, name: str) -> str:
        """The definition of a view, resolved when it is first read."""
        for key, known in self.definitions.items():
            if known.view == name:
                return key
        if name in self.open_views:
            raise SqlError(f"view {name} reads itself: {' reads '.join((*self.open_views, name))}")
        before, self.open_views = self.open_views, (*self.open_views, name)
        noted, self.unknown = self.unknown, []
        try:
            query = self.query(self.views[name].copy())
            for mistake in self.unknown[:1]:
                raise mistake
        except SqlError as error:
            raise SqlError(f"in view {name}: {error}") from error
        finally:
            self.unknown = noted
        self.open_views = before
        return self.define(query, name, name)

    def fresh(self, wanted: str) -> str:
        """An alias that nothing else has; the wanted one if it is free."""
        found, number = wanted, 1
        while found.lower() in self.aliases:
            number += 1
            found = f"{wanted}_{number}"
        self.aliases.add(found.lower())
        return found

    def again(self, alias: str) -> str:
        """An alias for a copy of a source, which the text calls as it does the source."""
        found = self.fresh(alias)
        self.titles[found] = self.titles.get(alias, "")
        return found

    def copied(self, query: trees.Query) -> None:
        """Take note that a query is read twice, and with it what it reads: that has to be computed once."""
        for table in query.find_all(exp.Table):
            if table.name in self.definitions:
                self.definitions[table.name].uses += 1

    def hidden(self, select: exp.Select) -> str:
        """A name that no output column of the query has."""
        taken, number = {i.alias.lower() for i in select.expressions}, 1
        while f"_c{number}" in taken:
            number += 1
        return f"_c{number}"

    def rename(self, query: exp.Expr, columns: list[str], at: exp.Expr) -> None:
        """Give the columns of a resolved query other names."""
        while isinstance(query, exp.SetOperation):
            query = query.this
        if len(columns) != len(query.expressions):
            have = len(query.expressions)
            raise self.error(f"{len(columns)} names for {have} columns", at)
        for item, name, new in zip(query.expressions, columns, unique(columns)):
            item.set("alias", trees.identifier(new))
            item.meta["called"] = name

    def _select(self, select: exp.Select, outer: Known | None) -> exp.Select:
        if select.args.get("from_") is None and select.args.get("joins"):
            raise self.error("there is no FROM", select)
        known = Known(self, outer)
        known.read_from(select)
        for lateral in select.args.get("laterals") or []:
            known.lateral_view(lateral)
        name_windows(select, self)
        if where := select.args.get("where"):
            known.resolve(where)
        self._outputs(select, known)
        outputs = _by_name(select)
        self._group(select, known, outputs)
        for clause in ("having", "qualify", "order"):
            if part := select.args.get(clause):
                self._positions(part, select)
                known.resolve(part, outputs, first=clause != "qualify")
        known.put_groups(select)
        no_nested(select, self)
        from joinlib.sql.rewrite.timed import timed

        return timed(select, self)

    def _outputs(self, select: exp.Select, known: Known) -> None:
        """Expand stars, resolve the select list, and name its columns."""
        items: list[tuple[str, exp.Expr]] = []
        earlier: dict[str, exp.Expr] = {}
        for item in select.expressions:
            if (columns := known.star(item)) is not None:
                items += columns
                continue
            value = trees.bare(item.unalias())
            name = item.alias or (value.name if isinstance(value, exp.Column | exp.Dot) else "")
            name = name or (
                written(value) if any(select is top for top in self.tops) else f"_c{len(items) + 1}"
            )
            box = exp.Paren(this=value.copy())
            known.resolve(box, earlier)
            items.append((name, box.this))
            if item.alias:
                earlier.setdefault(name.lower(), box.this)
        names = unique([name for name, _ in items])
        made = [trees.named(value, name) for name, (_, value) in zip(names, items)]
        for item, (name, value) in zip(made, items):
            trees.placed(item, value)
            item.meta["called"] = name
        select.set("expressions", made)
        if known.open:
            select.meta["open"] = True

    def _group(self, select: exp.Select, known: Known, outputs: Mapping[str, exp.Expr]) -> None:
        group = select.args.get("group")
        if group is None:
            return
        if group.args.get("all"):
            values = [i.this for i in select.expressions if not trees.aggregates(i)]
            if len(values) < len(select.expressions) and all(map(is_constant, values)):
                values = []  # no keys: one group, also of no rows
            elif all(map(is_constant, values)):
                raise self.error(
                    "GROUP BY ALL has constants alone: write SELECT DISTINCT, or no GROUP BY", select
                )
            select.set("group", exp.Group(expressions=[v.copy() for v in values]) if values else None)
        else:
            self._positions(group, select)
            known.resolve(group, outputs)
        without_constants(select, self)

    def _positions(self, clause: exp.Expr, select: exp.Select) -> None:
        """Replace numbers in GROUP BY and ORDER BY by the columns they count."""
        for literal in list(clause.find_all(exp.Literal)):
            direct = isinstance(literal.parent, exp.Group | exp.Ordered | exp.Rollup | exp.Cube)
            direct = direct and literal.find_ancestor(exp.Window, exp.Group, exp.Order) in (
                clause,
                clause.args.get("this"),
            )
            if literal.is_string or not direct or literal.find_ancestor(exp.Window):
                continue
            at = int(literal.name) if literal.name.isdecimal() else 0
            if not at and not literal.is_int and isinstance(clause, exp.Group):
                continue  # a constant, which counts nothing
            if not 1 <= at <= len(select.expressions):
                word = "GROUP BY" if isinstance(clause, exp.Group) else "ORDER BY"
                count = len(select.expressions)
                raise self.error(f"{word} {literal.name}: there are {count} output columns", literal)
            box = exp.Paren(this=select.expressions[at - 1].this.copy())
            box.meta["resolved"] = True
            literal.replace(box)


def _first(node: exp.Expr) -> exp.Expr:
    """Return the SELECT that names the columns of a query."""
    while isinstance(node, exp.SetOperation | exp.Subquery):
        node = node.this
    return node


def _recursive(with_: exp.With) -> exp.Expr | None:
    """The first query of a WITH that reads itself, or one after it."""
    names = [cte.alias.lower() for cte in with_.expressions]
    for at, cte in enumerate(with_.expressions):
        if any(table.name.lower() in names[at:] for table in cte.this.find_all(exp.Table)):
            return cte
    return None


def _void(side: trees.Query) -> None:
    """Mark the NULLs that have their type from the other side."""
    if isinstance(side, exp.Select):
        for item in side.expressions:
            if isinstance(trees.bare(item.this), exp.Null):
                item.this.meta["void"] = True


def unique(names: list[str]) -> list[str]:
    """Make names differ, ignoring case: a second `a` becomes a_2."""
    taken = {n.lower() for n in names}
    seen: set[str] = set()
    found = []
    for name in names:
        new, number = name, 1
        while new.lower() in seen or (number > 1 and new.lower() in taken):
            number += 1
            new = f"{name}_{number}"
        seen.add(new.lower())
        found.append(new)
    return found


def _by_name(select: exp.Select) -> dict[str, exp.Expr]:
    """The values of output columns by what the text calls them.

    A name that two values have stands for nothing: whoever names it would get one of them by chance.
    """
    found = {trees.item_name(i).lower(): i.this for i in select.expressions}
    for name in Offered.of(select).twice:
        found[name] = exp.Tuple(expressions=[i.this.copy() for i in select.expressions if _called(i) == name])
        found[name].meta["twice"] = True
    return found


def _called(item: exp.Expr) -> str:
    return str(item.meta.get("called", "")).lower()
