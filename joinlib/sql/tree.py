"""Builds a tree of joins from FROM, JOIN and WHERE.

Law: left-deep, as written; RIGHT is LEFT with its sides exchanged.

`WHERE [NOT] EXISTS (SELECT ... FROM s WHERE s.k = o.k)` and `WHERE o.k [NOT] IN (SELECT s.k FROM s)` become
semi and anti joins on top of the rest.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.expr import types as t
from joinlib.expr.compare import compare
from joinlib.expr.forms import coalesce
from joinlib.expr.logic import conjuncts
from joinlib.sql.graph import Clause, Joined, Kind, Scan, Table, Tree
from joinlib.sql.mistakes import each
from joinlib.sql.not_in import excluded
from joinlib.sql.parse import place
from joinlib.sql.rewrite.trees import ands
from joinlib.sql.scope import Scope, column_of, nearest
from joinlib.sql.subquery import Reading, Test, check_list, included, subquery_test
from joinlib.sql.supported import INNER, check_join, check_subquery, written
from joinlib.sql.truth import condition

_KINDS: dict[str, Kind] = {"": "inner", "LEFT": "left", "RIGHT": "left", "FULL": "full"}


@dataclass
class Builder:
    """Builds the tree.

    Names are unique over the whole query, so the inputs of subqueries may have to be renamed.
    """

    sql: str
    tables: Mapping[str, Table]
    aliases: set[str] = field(default_factory=set)

    def select(self, select: exp.Select) -> tuple[Tree, Scope]:
        """Return the tree of FROM and WHERE, and the scope of the select list."""
        scope = Scope(self.sql)
        tree = self._from(select, scope)
        where = select.args.get("where")
        return self._where(tree, where.this if where else None, scope), scope

    def _from(self, select: exp.Select, scope: Scope) -> Tree:
        source = select.args.get("from_")
        if source is None:
            raise SqlError("there is no FROM: a join needs two inputs", 1, 1)
        tree: Tree = self._scan(source.this, scope)
        for join in select.args.get("joins") or []:
            tree = self._join(tree, join, scope)
        return tree

    def _scan(self, node: exp.Expr, scope: Scope) -> Scan:
        if not isinstance(node, exp.Table) or node.args.get("joins"):
            raise scope.error(f"a derived table is not supported; {INNER}", node)
        if not isinstance(node.this, exp.Identifier):
            raise scope.error(f"{written(node.this)} in FROM is not supported; name an input", node)
        name = node.name
        by_case = {n.lower(): n for n in self.tables}
        if node.args.get("db") or name.lower() not in by_case:
            full = ".".join(p.name for p in node.parts)
            raise scope.error(f"there is no input {full}{nearest(name, self.tables)}", node)
        alias = node.alias or name
        if node.alias_column_names:
            raise scope.error(f"{alias}(...) names columns; name them in the select list", node)
        if "." in alias:
            raise scope.error(f"the alias {alias} has a dot; use another", node)
        if alias.lower() in scope.visible or alias.lower() in scope.hidden:
            raise scope.error(f"the name {alias} is used twice; give one an alias: {name} AS {alias}_2", node)
        table = self.tables[name if name in self.tables else by_case[name.lower()]]
        scan = Scan(self._unique(alias), table)
        scope.visible[alias.lower()] = scan
        return scan

    def _unique(self, alias: str) -> str:
        found, number = alias, 1
        while found.lower() in self.aliases:
            number += 1
            found = f"{alias}_{number}"
        self.aliases.add(found.lower())
        return found

    def _join(self, tree: Tree, join: exp.Join, scope: Scope) -> Tree:
        check_join(self.sql, join)
        left = Scope(self.sql, dict(scope.visible), {}, dict(scope.merged))
        right = self._scan(join.this, scope)
        side, kind = join.side.upper(), join.kind.upper()
        on = self._using(join, left, right, scope)
        if join.args.get("on"):
            on += self.clauses(ands(join.args["on"]), scope)
        joined: Kind = "semi" if kind == "SEMI" else "anti" if kind == "ANTI" else _KINDS[side]
        if joined in ("semi", "anti"):
            name = (join.this.alias or join.this.name).lower()
            del scope.visible[name]
            scope.hidden[name] = f"LEFT {kind} JOIN does not return columns of {name}"
        children = (right, tree) if side == "RIGHT" else (tree, right)
        return Joined(joined, children, tuple(on), (), place(self.sql, join.this))

    def _using(self, join: exp.Join, left: Scope, right: Scan, scope: Scope) -> list[Clause]:
        """Translate USING (k) to left.k = right.k; an unqualified k then means the one that is not NULL."""
        equal = []
        for at in join.args.get("using") or []:
            one, two = left.resolve(exp.Column(this=at.copy())), column_of(right, at.name)
            if two is None:
                known = right.table.schema.names
                raise scope.error(f"{right.alias} has no column {at.name}{nearest(at.name, known)}", at)
            if t.common(one.type, two.type) is None:
                kinds = f"{t.name(one.type)} and {t.name(two.type)}"
                raise scope.error(f"USING ({at.name}): {kinds} differ; write ON with a CAST", at)
            equal.append(Clause(compare("=", one, two), place(self.sql, at)))
            if join.kind.upper() not in ("SEMI", "ANTI"):
                side = join.side.upper()
                scope.merged[at.name.lower()] = (
                    coalesce(one, two) if side == "FULL" else two if side == "RIGHT" else one
                )
        return equal

    def clauses(self, parts: Iterable[exp.Expr], scope: Scope) -> list[Clause]:
        """Compile the conjuncts of a condition, each with its place."""

        def compiled(part: exp.Expr) -> list[Clause]:
            return [Clause(one, place(self.sql, part)) for one in conjuncts(condition(part, scope))]

        return list(chain(*each(compiled, parts)))

    def _where(self, tree: Tree, node: exp.Expr | None, scope: Scope) -> Tree:
        parts = ands(node)
        tests = {i: test for i, part in enumerate(parts) if (test := subquery_test(part))}
        plain = self.clauses((part for i, part in enumerate(parts) if i not in tests), scope)
        for test in tests.values():
            tree = self._tested(tree, test, scope, plain)
        where = tree.place if isinstance(tree, Joined) else (1, 1)
        return Joined("inner", (tree,), tuple(plain), (), where) if plain else tree

    def _tested(self, tree: Tree, test: Test, scope: Scope, plain: list[Clause]) -> Tree:
        """Join the tree with the rows of EXISTS or IN that it must pass; `plain` is the rest of the WHERE."""
        if test.negated and test.value is not None:
            return excluded(tree, test, scope, lambda: self._read(test, scope), plain)
        return included(tree, test, scope, self._read(test, scope))

    def _read(self, test: Test, scope: Scope) -> Reading:
        """Read the subquery with an input of its own."""
        check_subquery(self.sql, test.query)
        inner = Scope(self.sql, outer=scope)
        right = self._scan(test.query.args["from_"].this, inner)
        check_list(test, inner)
        where = test.query.args.get("where")
        parts = ands(where.this) if where else []
        if nested := next(filter(subquery_test, parts), None):
            raise scope.error(
                "EXISTS and IN within a subquery are not supported; join its inputs, or write both tests in"
                " the outer WHERE",
                nested,
            )
        return Reading(inner, right, tuple(self.clauses(parts, inner)))
