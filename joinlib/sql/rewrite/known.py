"""Which names can be used at some point of a text, and what they mean."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.sql.rewrite import trees
from joinlib.sql.scope import nearest
from joinlib.sql.supported import written

_READ = ("this", "alias", "with_", "order", "limit", "offset")  # what is read of a query in parentheses
_HIDDEN = re.compile(r"\$g\d+")  # the aliases that `generators` gives

if TYPE_CHECKING:
    from joinlib.sql.rewrite.names import Names


@dataclass(frozen=True)
class Offered:
    """What can be named of a source."""

    columns: tuple[str, ...]
    called: tuple[str, ...] = ()  # as the text calls them, if two may have one name
    twice: frozenset[str] = frozenset()  # lower-case names that several values have
    open: bool = False  # it is unknown, or has all columns of something unknown: any column may be named

    @staticmethod
    def of(query: exp.Expr) -> "Offered":
        first = query
        while isinstance(first, exp.SetOperation):
            first = first.this
        called = tuple(str(i.meta.get("called", i.alias)) for i in first.expressions)
        values: dict[str, set[str]] = {}
        for name, item in zip(called, first.expressions):
            values.setdefault(name.lower(), set()).add(trees.text(trees.bare(item.this)))
        same = not isinstance(query, exp.SetOperation)
        several = [n.lower() for n in called]
        twice = {n for n, v in values.items() if len(v) > 1 or (not same and several.count(n) > 1)}
        return Offered(
            tuple(trees.output_names(query)), called, frozenset(twice), bool(first.meta.get("open"))
        )

    def find(self, name: str) -> str | None:
        """The column of that name in any case, preferring an exact match."""
        exact = [c for c in self.columns if c == name] or [
            c for c in self.columns if c.lower() == name.lower()
        ]
        return exact[0] if exact else name if self.open else None


@dataclass
class Source:
    alias: str  # unique in the whole text
    rows: Offered
    hidden: bool = False  # made by a rewrite: only its full name reads it


@dataclass(frozen=True)
class Merged:
    """A column of USING."""

    value: exp.Expr
    parts: frozenset[tuple[str, str]]  # alias and name of the columns that it stands for


@dataclass
class _Group:
    """Joins in parentheses, whose columns are named by their own aliases until all names are resolved."""

    held: exp.Table  # stands for the query
    query: exp.Select
    columns: list[tuple[str, str]]  # alias and name


@dataclass
class Known:
    """The names of one SELECT, and those around it."""

    names: "Names"
    outer: "Known | None" = None
    ctes: dict[str, str] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)  # by the name in the text, in lower case
    hidden: dict[str, str] = field(default_factory=dict)  # name -> why it cannot be named any more
    merged: dict[str, Merged] = field(default_factory=dict)  # columns of USING, by lower-case name
    groups: list["_Group"] = field(default_factory=list)  # joins in parentheses
    open: bool = False  # a star stands for columns of something unknown

    # FROM

    def read_from(self, select: exp.Select) -> None:
        """Resolve FROM and JOIN."""
        start = select.args.get("from_")
        if start is None:
            return
        start.set("this", self.source(start.this))
        for join in list(select.args.get("joins") or []):
            self._join(join)

    def source(self, node: exp.Expr) -> exp.Expr:
        """Resolve what FROM or JOIN names; return it with an alias of its own."""
        if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
            return self._lateral(node)
        if isinstance(node, exp.Lateral):
            self.lateral_view(node)
            return node
        if node.args.get("pivots"):
            return self._turned(node)
        if isinstance(node, exp.Values):
            from joinlib.sql.rewrite.constants import values

            alias = node.args.get("alias")
            node = exp.Subquery(this=values(node, self.names.sql), alias=alias.copy() if alias else None)
        if isinstance(node, exp.Subquery):
            return self._group_of_joins(node) if node.args.get("joins") else self._subquery(node)
        if not isinstance(node, exp.Table):
            raise self.names.error(f"{written(node)} in FROM is not supported; name an input", node)
        for part in ("when", "version", "system_time", "sample"):
            if node.args.get(part):
                from joinlib.sql.supported import check_part

                check_part(self.names.sql, node, part)
        if node.args.get("joins"):
            return self._group_of_joins(node)
        return self._table(node)

    def _table(self, node: exp.Table) -> exp.Expr:
        if isinstance(node.this, exp.Values):  # first in a join in parentheses
            alias = node.args["alias"]
            return self.source(exp.Values(expressions=node.this.expressions, alias=alias))
        if not isinstance(node.this, exp.Identifier):
            raise self.names.error(f"{written(node.this)} in FROM is not supported; name an input", node)
        name, names = node.name, self.names
        definition = None if node.args.get("db") else self._cte(name)
        if definition is None and not node.args.get("db"):
            view = next((v for v in names.views if v.lower() == name.lower()), None)
            definition = names.view(view) if view is not None else None
        if definition is not None:
            names.definitions[definition].uses += 1
            rows, found = names.definitions[definition].rows, definition
        else:
            by_case = {n.lower(): n for n in names.tables}
            if node.args.get("db") or name.lower() not in by_case:
                full = ".".join(p.name for p in node.parts)
                names.unknown.append(
                    names.error(f"there is no input {full}{nearest(name, self._every_input())}", node)
                )
                found, rows = name, Offered((), open=True)
            else:
                found = name if name in names.tables else by_case[name.lower()]
                rows = Offered(tuple(names.tables[found]))
                names.read.append(found)
        columns = node.alias_column_names
        alias = self.add(node.alias or name, rows, node, columns)
        made = trees.table(found, alias, node)
        if not columns:
            return made
        items = [trees.named(trees.column(alias, old), new) for old, new in zip(rows.columns, columns)]
        inner = trees.table(found, names.again(alias), node)
        for item in items:
            item.this.set("table", trees.identifier(inner.alias))
        query = exp.Select(expressions=items).from_(inner, copy=False)
        return trees.derived(query, alias)

    def _every_input(self) -> list[str]:
        ctes = list(self.ctes) + (self.outer._every_input() if self.outer else [])
        return [*ctes, *(() if self.outer else (*self.names.views, *self.names.tables))]

    def _cte(self, name: str) -> str | None:
        if name.lower() in self.ctes:
            return self.ctes[name.lower()]
        return self.outer._cte(name) if self.outer else None

    def _subquery(self, node: exp.Subquery) -> exp.Expr:
        inner = node.this
        for part, value in node.args.items():
            if value and part not in _READ:
                from joinlib.sql.supported import check_part

                check_part(self.names.sql, node, part)
        if not node.alias and isinstance(inner, exp.Table | exp.Subquery) and not _is_query(inner):
            return self.source(inner)
        context = Known(self.names, self.outer, dict(self.ctes))  # its siblings cannot be named
        query = self.names.query(inner, context)
        columns = node.alias_column_names
        if columns:
            self.names.rename(query, columns, node)
        alias = self.add(node.alias or self.names.fresh("q"), Offered.of(query), node)
        return trees.derived(query, alias)

    def _lateral(self, node: exp.Lateral) -> exp.Expr:
        query = self.names.query(node.this.this, self)
        columns = node.args["alias"].columns if node.args.get("alias") else []
        if columns:
            self.names.rename(query, [c.name for c in columns], node)
        alias = self.add(node.alias or self.names.fresh("q"), Offered.of(query), node)
        return exp.Lateral(this=exp.Subquery(this=query), alias=exp.TableAlias(this=trees.identifier(alias)))

    def _turned(self, node: exp.Expr) -> exp.Expr:
        """PIVOT and UNPIVOT: a query over the rows of the source, read as a CTE is."""
        from joinlib.sql.rewrite.pivots import turned

        names, pivots = self.names, node.args["pivots"]
        node.set("pivots", None)
        name = node.alias or node.name or "pivot"
        for pivot in pivots:
            context = Known(names, self.outer, dict(self.ctes))
            query = names.query(exp.Select(expressions=[exp.Star()]).from_(node, copy=False), context)
            source = names.define(query, name)
            columns = names.definitions[source].rows.columns
            select = turned(pivot, source, columns, names.sql)
            alias = pivot.args.get("alias") or exp.TableAlias(this=trees.identifier(name))
            self.ctes = {**self.ctes, source.lower(): source}
            node = exp.Subquery(this=select, alias=alias)
        assert isinstance(node, exp.Subquery)
        return self._subquery(node)

    def _group_of_joins(self, node: exp.Expr) -> exp.Expr:
        """(a JOIN b ON ...): a query over both, whose columns can still be named a.x."""
        context = Known(self.names, self.outer, dict(self.ctes))
        joins = node.args["joins"]
        node.set("joins", None)
        select = exp.Select(expressions=[], from_=exp.From(this=node), joins=joins)
        context.read_from(select)
        for name, source in context.sources.items():
            self._free(name, name, node)
            self.sources[name] = source
        self.hidden.update(context.hidden)
        self.merged.update(context.merged)
        alias = self.names.fresh("j")
        held = trees.table(alias, alias, node)
        inner = [(s.alias, c) for s in context.sources.values() for c in s.rows.columns]
        self.groups.append(_Group(held, select, inner))
        self.groups += context.groups
        return held

    def put_groups(self, select: exp.Select) -> None:
        """Put the joins in parentheses in their places, once all names around them are resolved."""
        from joinlib.sql.rewrite.below import columns, items, values

        for group in self.groups:
            named = columns(group.columns)
            trees.with_columns(select, values(named, group.held.alias))
            group.query.set("expressions", items(named))
            group.held.replace(trees.derived(group.query, group.held.alias))

    def add(self, name: str, rows: Offered, at: exp.Expr, columns: list[str] | None = None) -> str:
        """Make a source known; return its alias."""
        if "." in name:
            raise self.names.error(f"the alias {name} has a dot; use another", at)
        self._free(name, name, at)
        if columns:
            if len(columns) != len(rows.columns):
                raise self.names.error(f"{name}: {len(columns)} names for {len(rows.columns)} columns", at)
            self._differ(columns, at)
            rows = Offered(tuple(columns))
        wanted = name.removeprefix("$")
        alias = self.names.fresh(wanted)
        self.names.titles[alias] = name
        self.sources[name.lower()] = Source(alias, rows, _HIDDEN.fullmatch(name) is not None)
        return alias

    def _free(self, key: str, name: str, at: exp.Expr) -> None:
        if key.lower() in self.sources or key.lower() in self.hidden:
            raise self.names.error(
                f"the name {name} is used twice; give one an alias: {name} AS {name}_2", at
            )

    def _differ(self, columns: list[str], at: exp.Expr) -> None:
        twice = [c for c in columns if [d.lower() for d in columns].count(c.lower()) > 1]
        if twice:
            raise self.names.error(f"two columns are called {twice[0]}; give one another name", at)

    def lateral_view(self, node: exp.Lateral) -> None:
        """Resolve LATERAL VIEW, whose argument may read everything before it."""
        box = exp.Paren(this=node.this)
        self.resolve(box)
        node.set("this", box.this)
        alias = node.args.get("alias")
        given = [c.name for c in alias.columns] if alias else []
        function = str(node.this.name).lower()
        default = {"posexplode": ["pos", "col"], "posexplode_outer": ["pos", "col"]}.get(function, ["col"])
        if not given and function.startswith("inline"):
            raise self.names.error("write the names of the columns: LATERAL VIEW inline(...) t AS a, b", node)
        columns = given or default
        self._differ(columns, node)
        name = self.add(alias.name or "v" if alias else "v", Offered(tuple(columns)), node)
        node.set(
            "alias",
            exp.TableAlias(this=trees.identifier(name), columns=[trees.identifier(c) for c in columns]),
        )

    # JOIN

    def _join(self, join: exp.Join) -> None:
        left = Known(
            self.names, self.outer, self.ctes, dict(self.sources), dict(self.hidden), dict(self.merged)
        )
        before = set(self.sources)
        node = self.source(join.this)
        join.set("this", node)
        new = [name for name in self.sources if name not in before]
        self._check(join)
        if len(new) > 1 and (join.args.get("using") or join.meta.get("natural")):
            raise self.names.error("USING and NATURAL take one input on the right; write ON", join.this)
        on = self._equal(join, left, self.sources[new[0]])
        if join.args.get("on"):
            box = exp.Paren(this=join.args["on"])
            self.resolve(box)
            on += trees.ands(box.this)
        join.set("on", trees.together(on) or (trees.true() if on else None))
        kind = join.kind.upper()
        for name in new if kind in ("SEMI", "ANTI") else ():
            del self.sources[name]
            self.hidden[name] = f"LEFT {kind} JOIN does not return columns of {name}"

    def _check(self, join: exp.Join) -> None:
        from joinlib.sql.supported import check_join

        natural = join.method.upper() == "NATURAL"
        if natural:
            join.set("method", None)
            join.meta["natural"] = True
        lateral = isinstance(join.this, exp.Lateral)
        if natural or (lateral and not join.args.get("on")):
            join = join.copy()
            join.set("on", trees.true())
        check_join(self.names.sql, join)

    def _equal(self, join: exp.Join, left: "Known", right: Source) -> list[exp.Expr]:
        """ON of USING and NATURAL; an unqualified name then means the value that is not NULL."""
        using = join.args.get("using") or []
        if join.meta.pop("natural", False):
            here = {c.lower() for s in left.sources.values() for c in s.rows.columns}
            using = [trees.identifier(c) for c in right.rows.columns if c.lower() in here]
        join.set("using", None)
        equal: list[exp.Expr] = []
        for at in using:
            one = left._own([at.name], at)
            if one is None:
                self.names.unknown.append(left.unknown([at.name], at))
                continue
            two = self._column(right, at.name, at)
            if two is None:
                self.names.unknown.append(
                    self.names.error(
                        f"{right.alias} has no column {at.name}{nearest(at.name, right.rows.columns)}", at
                    )
                )
                continue
            other = trees.column(right.alias, two, at)
            equal.append(exp.EQ(this=trees.placed(one, at), expression=other))
            if join.kind.upper() not in ("SEMI", "ANTI"):
                side = join.side.upper()
                both = trees.call("coalesce", one.copy(), other.copy())
                value = both if side == "FULL" else other.copy() if side == "RIGHT" else one.copy()
                before = left.merged.get(at.name.lower())
                parts = (
                    before.parts
                    if before
                    else {(trees.owner(c), trees.name_of(c)) for c in trees.columns_in(one)}
                )
                self.merged[at.name.lower()] = Merged(value, frozenset({*parts, (right.alias, two)}))
        return equal

    # columns

    def resolve(
        self, node: exp.Expr, outputs: Mapping[str, exp.Expr] | None = None, first: bool = False
    ) -> None:
        """Resolve the columns and subqueries below a node.

        `outputs`: what names of output columns stand for; `first`: they come before columns of the inputs,
        except within aggregates.
        """
        for child in list(node.iter_expressions()):
            if child.meta.pop("resolved", False):
                continue
            if isinstance(child, exp.In):
                _listed(child, self.names.sql)
            if isinstance(child, exp.DataType) and child.args.get("collate"):
                from joinlib.sql.supported import check_part

                check_part(self.names.sql, child, "collate")
            if isinstance(child, exp.Column) and isinstance(child.this, exp.Identifier):
                child.replace(self._meaning(child, outputs or {}, first))
            elif isinstance(child, exp.Select | exp.SetOperation):
                child.replace(self._nested(child))
            elif isinstance(child, exp.Subquery):
                query = self._nested(child)
                if query is not child.this:
                    child.set("this", query)
                for part in ("order", "limit", "offset"):
                    child.set(part, None)
            else:
                self.resolve(child, outputs, first and not trees.is_aggregate(child))

    def _nested(self, node: exp.Expr) -> exp.Select:
        """A subquery, as a SELECT."""
        query = self.names.query(node, self)
        if isinstance(query, exp.Select):
            return query
        alias = self.names.fresh("q")
        items = [trees.named(trees.column(alias, n), n) for n in trees.output_names(query)]
        return exp.Select(expressions=items).from_(trees.derived(query, alias), copy=False)

    def _meaning(self, column: exp.Column, outputs: Mapping[str, exp.Expr], first: bool) -> exp.Expr:
        parts = [p for p in column.parts if isinstance(p, exp.Identifier)]
        names = [p.name for p in parts]
        output = outputs.get(names[0].lower()) if len(names) == 1 else None
        if first and output is not None:
            return self._output(output, column)
        try:
            found = self._own(names, column)
            if found is None and output is not None:
                return self._output(output, column)
            if found is None and self.outer:
                found = self.outer.find(names, column)
        except SqlError as ambiguous:
            self.names.unknown.append(ambiguous)
            found = exp.Null()
        if found is not None:
            return trees.placed(found, column)
        if len(names) == 1 and self._is_word(column, names[0].lower()):
            return column.copy()
        self.names.unknown.append(self.unknown(names, column))
        return trees.placed(exp.Null(), column)

    def _is_word(self, column: exp.Column, name: str) -> bool:
        from joinlib.sql.rewrite.names import NO_PARENTHESES, UNITS

        called = isinstance(column.parent, exp.Anonymous) and column.parent.expressions[0] is column
        return name in NO_PARENTHESES or (called and name.rstrip("s") in UNITS)

    def _output(self, output: exp.Expr, at: exp.Column) -> exp.Expr:
        if output.meta.get("twice"):
            raise self.names.error(
                f"column {at.name} is ambiguous: the query returns several of that name", at
            )
        return _copied(output, at)

    def _column(self, source: Source, name: str, at: exp.Expr) -> str | None:
        """The column of a source; refused if the source has several of that name."""
        found = source.rows.find(name)
        if found is not None and name.lower() in source.rows.twice:
            raise self.names.error(
                f"column {name} is ambiguous: {source.alias} has several; give them names by AS", at
            )
        return found

    def find(self, names: list[str], at: exp.Expr) -> exp.Expr | None:
        """What a dotted name means; None if it is unknown."""
        found = self._own(names, at)
        return found if found is not None or not self.outer else self.outer.find(names, at)

    def _own(self, names: list[str], at: exp.Expr) -> exp.Expr | None:
        """What a dotted name means by the sources of this query."""
        source = self.sources.get(names[0].lower())
        if source is not None and len(names) > 1:
            found = self._column(source, names[1], at)
            if found is not None:
                return _dotted(trees.column(source.alias, found, at), names[2:])
        seen = [s for s in self.sources.values() if not s.hidden]
        merged = self.merged.get(names[0].lower())
        if merged is not None:
            return _dotted(merged.value.copy(), names[1:])
        known = [s for s in seen if not s.rows.open or names[0].lower() in map(str.lower, s.rows.columns)]
        hits = [(s, c) for s in known if (c := self._column(s, names[0], at)) is not None]
        if not hits and (len(names) == 1 or names[0].lower() not in self._all_sources()):
            hits = [(s, names[0]) for s in seen if s.rows.open][:1]
        if len(hits) > 1:
            where = " or ".join(f"{self.names.titles.get(s.alias) or s.alias}.{c}" for s, c in hits)
            raise self.names.error(f"column {names[0]} is ambiguous; write {where}", at)
        if hits:
            return _dotted(trees.column(hits[0][0].alias, hits[0][1], at), names[1:])
        return None

    def unknown(self, names: list[str], at: exp.Expr) -> SqlError:
        first, name = names[0], names[-1]
        if len(names) > 1 and first.lower() in self.hidden:
            return self.names.error(self.hidden[first.lower()], at)
        if len(names) > 1 and first.lower() in self.sources:
            source = self.sources[first.lower()]
            return self.names.error(f"{first} has no column {name}{nearest(name, source.rows.columns)}", at)
        if len(names) > 1 and self.outer is not None and first.lower() in self.outer._all_sources():
            return self.outer.unknown(names, at)
        if len(names) > 1:
            return self.names.error(
                f"{first} is not an input of this query{nearest(first, self._all_sources())}", at
            )
        known = [c for s in self.sources.values() if not s.hidden for c in s.rows.columns]
        return self.names.error(f"column {name} is in no input{nearest(name, known)}", at)

    def _all_sources(self) -> list[str]:
        return list(self.sources) + (self.outer._all_sources() if self.outer else [])

    # stars

    def star(self, item: exp.Expr) -> list[tuple[str, exp.Expr]] | None:
        """The columns that * or input.* stands for; None for any other item."""
        if isinstance(item, exp.Star):
            merged = [(self._spelled(n), m.value.copy()) for n, m in self.merged.items()]
            stood = {part for m in self.merged.values() for part in m.parts}
            seen = [s for s in self.sources.values() if not s.hidden]
            self.open = self.open or any(s.rows.open for s in seen)
            plain = [
                item for s in seen for item, c in zip(_all(s), s.rows.columns) if (s.alias, c) not in stood
            ]
            return self._but(item, merged + plain, self)
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            source = self.sources.get(item.table.lower())
            if source is None:
                why = self.hidden.get(item.table.lower())
                near = nearest(item.table, self._all_sources())
                self.names.unknown.append(
                    self.names.error(why or f"{item.table} is not an input of this query{near}", item)
                )
                self.open = True
                return []
            self.open = self.open or source.rows.open
            alone = Known(self.names, sources={item.table.lower(): source})
            return self._but(item.this, _all(source), alone)
        return None

    def _but(
        self, star: exp.Expr, columns: list[tuple[str, exp.Expr]], known: "Known"
    ) -> list[tuple[str, exp.Expr]]:
        less = []
        for name in star.args.get("except_") or []:
            column = name if isinstance(name, exp.Column) else exp.Column(this=name.copy())
            value = known._meaning(column, {}, False)
            if value not in [v for _, v in columns]:
                raise self.names.error(f"EXCEPT takes names of columns, not {written(value)}", name)
            less.append(value)
        found = [(name, value) for name, value in columns if value not in less]
        if not found and not known.open and not self.open:
            raise self.names.error("EXCEPT leaves no column", star)
        for _, value in found:
            trees.placed(value, star)
        return self._renamed(star, self._replaced(star, found))

    def _replaced(self, star: exp.Expr, columns: list[tuple[str, exp.Expr]]) -> list[tuple[str, exp.Expr]]:
        """REPLACE (value AS column, ...)."""
        for item in star.args.get("replace") or []:
            at = self._of_star("REPLACE", item, item.alias, columns)
            box = exp.Paren(this=item.this.copy())
            self.resolve(box)
            columns[at] = (columns[at][0], trees.placed(box.this, item))
        return columns

    def _renamed(self, star: exp.Expr, columns: list[tuple[str, exp.Expr]]) -> list[tuple[str, exp.Expr]]:
        """RENAME (column AS name, ...)."""
        places = [
            (self._of_star("RENAME", i, i.this.name, columns), i.alias) for i in star.args.get("rename") or []
        ]
        for at, name in places:
            columns[at] = (name, columns[at][1])
        return columns

    def _of_star(self, word: str, item: exp.Expr, name: str, columns: list[tuple[str, exp.Expr]]) -> int:
        """The place of the one column of a star that has a name."""
        known = [n.lower() for n, _ in columns]
        if known.count(name.lower()) != 1:
            why = (
                f"several columns are called {name}; write them out"
                if name.lower() in known
                else (f"* has no column {name}{nearest(name, known)}")
            )
            raise self.names.error(f"{word}: {why}", item)
        return known.index(name.lower())

    def _spelled(self, name: str) -> str:
        every = (c for s in self.sources.values() for c in s.rows.columns)
        return next(c for c in every if c.lower() == name)


def _is_query(node: exp.Expr) -> bool:
    """Whether what stands in parentheses is a query in parentheses of its own."""
    return isinstance(node, exp.Subquery) and not node.alias and not node.args.get("joins")


def _listed(node: exp.In, sql: str) -> None:
    """x IN (VALUES ...): a subquery, which the parser takes for a list."""
    from joinlib.sql.rewrite.constants import values

    only = node.expressions[0] if len(node.expressions) == 1 else None
    if isinstance(only, exp.Values):
        node.set("expressions", None)
        node.set("query", exp.Subquery(this=values(only, sql)))


def _copied(output: exp.Expr, at: exp.Expr) -> exp.Expr:
    tight = isinstance(output, exp.Column | exp.Literal | exp.Anonymous)
    return output.copy() if tight else exp.Paren(this=output.copy())


def _all(source: Source) -> list[tuple[str, exp.Expr]]:
    called = source.rows.called or source.rows.columns
    return [(n, trees.column(source.alias, c)) for n, c in zip(called, source.rows.columns)]


def _dotted(value: exp.Expr, fields: list[str]) -> exp.Expr:
    for name in fields:
        parts = list(value.parts) if isinstance(value, exp.Column) else []
        if parts and len(parts) < 4:
            value = trees.column_of([*parts, trees.identifier(name)])
        else:
            value = exp.Dot(this=value, expression=trees.identifier(name))
    return value
