"""Applies the rewrites to a query and to what it reads, and cuts the result into blocks."""

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from joinlib.model.called import Called
from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.block import Block, Kind
from joinlib.sql.rewrite.common import factored
from joinlib.sql.rewrite.grouping_sets import one_group
from joinlib.sql.rewrite.inline import inlined
from joinlib.sql.rewrite.laterals import joined_laterals, views_below
from joinlib.sql.rewrite.layers import distinct_above, groups_below, keys_below
from joinlib.sql.rewrite.limits import limited
from joinlib.sql.rewrite.names import Names
from joinlib.sql.rewrite.numbered import numbered
from joinlib.sql.rewrite.prune import pruned
from joinlib.sql.rewrite.sets import as_groups, flat
from joinlib.sql.rewrite.subqueries import without_subqueries
from joinlib.sql.rewrite.windows import windows_below
from joinlib.sql.select import RESULT


class Cutter:
    def __init__(self, names: Names) -> None:
        self.names = names
        self.made: list[Block] = []
        self.known: dict[str, str] = {}  # blocks of definitions
        self.columns: dict[str, list[str]] = {}
        self.view = ""

    def results(self, queries: Mapping[str, trees.Query]) -> tuple[Block, ...]:
        """Return the blocks of the queries of all outputs; each output has a block of its own."""
        for output, query in queries.items():
            name = self.rows(query, "", final=True)
            if not self.made or self.made[-1].name != name:
                raise AssertionError("the last block is the result")
            self.made[-1] = replace(self.made[-1], output=output)
            self.made[-1].query.meta[RESULT] = True
        return pruned(tuple(self.made), self.names.kept)

    def rows(self, query: trees.Query, title: str, final: bool = False) -> str:
        """Make the blocks of a query; return the name of the table that has its rows."""
        if isinstance(query, exp.SetOperation):
            if not isinstance(query, exp.Union) or query.args.get("distinct"):
                return self.rows(as_groups(query, self.names), title, final)
            return self._union(query, title)
        select = self.rewritten(query)
        self._sources(select)
        if not final and (name := _same(select, self.columns)) is not None:
            return name
        kind: Kind = "over" if select.meta.get("over") else "map" if _is_map(select) else "select"
        return self._emit(kind, select, title)

    def rewritten(self, select: exp.Select) -> exp.Select:
        """Apply the rewrites until the query itself, but not what it reads, is of one operator."""
        if select.meta.get("over"):
            self._definitions_once(select)
            return select
        names = self.names
        select = limited(select, names)
        self._definitions_once(select)
        select = one_group(distinct_above(select, names), names)
        select = numbered(factored(inlined(select)), names)
        select = joined_laterals(select, names)
        select = inlined(select)
        select = keys_below(views_below(select, names), names)
        if trees.is_grouped(select) and (trees.has_windows(select) or _late_subqueries(select)):
            return self.rewritten(groups_below(select, names))
        if trees.has_windows(select):
            select = windows_below(select, names)
            return self.rewritten(select)
        return self._own_sources(without_subqueries(select, names))

    def _own_sources(self, select: exp.Select) -> exp.Select:
        self._definitions_once(select)
        return inlined(select)

    def _definitions_once(self, select: exp.Select) -> None:
        """Write a CTE that is read once where it is read."""
        for node in trees.source_nodes(select):
            found = self.names.definitions.get(node.name) if isinstance(node, exp.Table) else None
            if found is not None and found.uses == 1 and not found.view and node.name not in self.known:
                self.known[node.name] = ""
                node.replace(trees.derived(found.query, node.alias))

    def _sources(self, select: exp.Select) -> None:
        """Make the blocks that the query reads."""
        nested = [q for part in trees.where_of(select) for q in part.find_all(exp.Select)]
        for query in (select, *nested):
            if query.root() is not select.root():
                continue  # a derived table of a subquery, of which blocks are made
            for node in trees.source_nodes(query):
                if isinstance(node, exp.Subquery):
                    name = self.rows(node.this, self.names.titles.get(node.alias, ""))
                    node.replace(trees.table(name, node.alias, node))
                elif isinstance(node, exp.Table) and node.name in self.names.definitions:
                    node.set("this", trees.placed(trees.identifier(self.definition(node.name)), node))

    def definition(self, name: str) -> str:
        """The table that has the rows of a CTE or view, made when it is first read."""
        if not self.known.get(name):
            found = self.names.definitions[name]
            before, self.view = self.view, found.view or self.view
            self.known[name] = self.rows(found.query, found.title)
            self.view = before
        return self.known[name]

    def _union(self, query: exp.SetOperation, title: str) -> str:
        columns = trees.output_names(query)
        whole: trees.Query | None = None
        for part in flat(query):
            name = self.rows(part, title)
            alias = self.names.fresh("u")
            own = self._order(part)
            items = [trees.named(trees.column(alias, c), new) for c, new in zip(own, columns)]
            side = exp.Select(expressions=items).from_(trees.table(name, alias, part), copy=False)
            whole = side if whole is None else exp.Union(this=whole, expression=side, distinct=False)
        assert whole is not None
        return self._emit("union", whole, title)

    def _order(self, part: trees.Query) -> list[str]:
        return trees.output_names(part)

    def _emit(self, kind: Kind, query: trees.Query, title: str) -> str:
        name = f"$q{len(self.made) + 1}"
        self.columns[name] = trees.output_names(query)
        self.made.append(Block(name, kind, query, title, self._called(query), self.view))
        return name

    def _called(self, query: trees.Query) -> tuple[Called, ...]:
        """How the text calls what a block reads."""
        parts = {block.name: block.title for block in self.made}
        titles = self.names.titles
        return tuple(
            Called(table.alias, titles.get(table.alias, ""), parts.get(table.name, ""))
            for table in query.find_all(exp.Table)
        )


def _is_map(select: exp.Select) -> bool:
    if select.args.get("joins") or select.args.get("distinct") or trees.is_grouped(select):
        return False
    return not any(trees.subqueries(part) for part in trees.where_of(select))


def _same(select: exp.Select, known: dict[str, list[str]]) -> str | None:
    """The table whose columns a query returns as they are; None if it does more."""
    if not _is_map(select) or any(select.args.get(c) for c in ("where", "laterals", "qualify")):
        return None
    if select.meta.get("over"):
        return None
    for item in select.expressions:
        plain = trees.plain_column(item.this)
        if plain is None or trees.name_of(plain) != item.alias:
            return None
    source = select.args["from_"].this
    return str(source.name)


def _late_subqueries(select: exp.Select) -> bool:
    """Whether a subquery is asked for with what groups return."""
    late = [*select.expressions, *(p for n in ("having", "qualify") if (p := select.args.get(n)))]
    for part in late:
        for node in trees.subqueries(part):
            above = node.parent
            while above is not None and above is not part:
                if trees.is_aggregate(above):
                    break
                above = above.parent
            else:
                return True
    return False
