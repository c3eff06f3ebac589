"""FROM, JOIN, WHERE to a tree of joins. Law: left-deep, as written; RIGHT is LEFT with its sides exchanged.

`WHERE [NOT] EXISTS (SELECT ... FROM s WHERE s.k = o.k)` and `WHERE o.k IN (SELECT s.k FROM s)` are semi and anti joins on top.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.compare import compare
from joinlib.expr.functions import coalesce
from joinlib.expr.logic import conjuncts
from joinlib.sql.compile import compile
from joinlib.sql.graph import Clause, Joined, Kind, Scan, Table, Tree
from joinlib.sql.parse import place
from joinlib.sql.scope import Scope, column_of, nearest
from joinlib.sql.supported import check_join, check_select, check_subquery

_KINDS: dict[str, Kind] = {"": "inner", "LEFT": "left", "RIGHT": "left", "FULL": "full"}


@dataclass
class Builder:
    """Names are unique over the whole query, so the inputs of subqueries may have to be renamed."""

    sql: str
    tables: Mapping[str, Table]
    aliases: set[str] = field(default_factory=set)

    def select(self, select: exp.Select) -> tuple[Tree, Scope]:
        """The tree of FROM and WHERE, and what its select list can name."""
        check_select(self.sql, select)
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

    def _scan(self, node: exp.Expression, scope: Scope) -> Scan:
        if not isinstance(node, exp.Table) or node.args.get("joins"):
            raise scope.error("a derived table is not supported yet; join the inputs themselves", node)
        name = node.name
        by_case = {n.lower(): n for n in self.tables}
        if node.args.get("db") or name.lower() not in by_case:
            full = ".".join(p.name for p in node.parts)
            raise scope.error(f"there is no input {full}{nearest(name, self.tables)}", node)
        alias = node.alias or name
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
        before = dict(scope.visible)
        right = self._scan(join.this, scope)
        side, kind = join.side.upper(), join.kind.upper()
        on = [Clause(e, place(self.sql, join)) for e in self._using(join, before, right, side, kind, scope)]
        if join.args.get("on"):
            on += self.clauses(join.args["on"], scope)
        joined: Kind = "semi" if kind == "SEMI" else "anti" if kind == "ANTI" else _KINDS[side]
        if joined in ("semi", "anti"):
            name = (join.this.alias or join.this.name).lower()
            del scope.visible[name]
            scope.hidden[name] = f"columns of {name} do not come out of LEFT {kind} JOIN"
        children = (right, tree) if side == "RIGHT" else (tree, right)
        return Joined(joined, children, tuple(on), (), place(self.sql, join.this))

    def _using(
        self, join: exp.Join, before: dict[str, Scan], right: Scan, side: str, kind: str, scope: Scope
    ) -> list[Expr]:
        equal = []
        left = Scope(self.sql, before, {}, dict(scope.merged))
        for name in join.args.get("using") or []:
            at = name if isinstance(name, exp.Identifier) else name.this
            one = left.resolve(exp.Column(this=at.copy()))
            two = column_of(right, at.name)
            if two is None:
                known = right.table.schema.names
                raise scope.error(f"{right.alias} has no column {at.name}{nearest(at.name, known)}", at)
            equal.append(self._at(at, scope, one, two))
            if kind not in ("SEMI", "ANTI"):
                merged = coalesce(one, two) if side == "FULL" else two if side == "RIGHT" else one
                scope.merged[at.name.lower()] = merged
        return equal

    def _at(self, at: exp.Expression, scope: Scope, one: Expr, two: Expr) -> Expr:
        if t.common(one.type, two.type) is None:
            raise scope.error(f"USING ({at.name}): {t.name(one.type)} and {t.name(two.type)} differ; use ON", at)
        return compare("=", one, two)

    def clauses(self, node: exp.Expression, scope: Scope) -> list[Clause]:
        """The conjuncts of a condition, each with its place."""
        if isinstance(node, exp.And):
            return self.clauses(node.this, scope) + self.clauses(node.expression, scope)
        if isinstance(node, exp.Paren):
            return self.clauses(node.this, scope)
        value = compile(node, scope)
        if value.type not in (t.BOOLEAN, t.NULL):
            raise scope.error(f"a condition is BOOLEAN, {value.sql} is {t.name(value.type)}", node)
        return [Clause(part, place(self.sql, node)) for part in conjuncts(value)]

    def _where(self, tree: Tree, node: exp.Expression | None, scope: Scope) -> Tree:
        plain: list[Clause] = []
        for part in _parts(node):
            found = _subquery(part)
            if found is None:
                plain += self.clauses(part, scope)
            else:
                tree = self._exists(tree, *found, scope)
        return Joined("inner", (tree,), tuple(plain), (), (1, 1)) if plain else tree

    def _exists(
        self, tree: Tree, query: exp.Select, value: exp.Expression | None, negated: bool, at: exp.Expression, scope: Scope
    ) -> Tree:
        check_subquery(self.sql, query)
        inner = Scope(self.sql, outer=scope)
        right = self._from(query, inner)
        where = query.args.get("where")
        on = self.clauses(where.this, inner) if where else []
        if value is not None:
            on += self._membership(query, value, right, negated, at, scope, inner)
        return Joined("anti" if negated else "semi", (tree, right), tuple(on), (), place(self.sql, at))

    def _membership(
        self, query: exp.Select, value: exp.Expression, right: Tree, negated: bool, at: exp.Expression,
        scope: Scope, inner: Scope,
    ) -> list[Clause]:  # fmt: skip
        if negated:
            raise scope.error(
                "NOT IN (SELECT ...) keeps no row once the subquery has a NULL; "
                "write NOT EXISTS (SELECT 1 FROM ... WHERE ... = ...)", at,
            )  # fmt: skip
        left = value.this if isinstance(value, exp.Paren) else value
        lefts = left.expressions if isinstance(left, exp.Tuple) else [left]
        rights = [e.unalias() for e in query.expressions]
        if len(lefts) != len(rights):
            raise scope.error(f"IN compares {len(lefts)} values with {len(rights)} columns", at)
        pairs = zip(lefts, rights, strict=True)
        both = [(compile(one, scope), compile(two, inner)) for one, two in pairs]
        for one, two in both:
            if t.common(one.type, two.type) is None:
                raise scope.error(f"IN cannot compare {t.name(one.type)} with {t.name(two.type)}; add a CAST", at)
        return [Clause(compare("=", one, two), place(self.sql, at)) for one, two in both]


def _parts(node: exp.Expression | None) -> list[exp.Expression]:
    if node is None:
        return []
    if isinstance(node, exp.And):
        return _parts(node.this) + _parts(node.expression)
    if isinstance(node, exp.Paren) and isinstance(node.this, exp.And | exp.Paren):
        return _parts(node.this)
    return [node]


def _subquery(
    node: exp.Expression,
) -> tuple[exp.Select, exp.Expression | None, bool, exp.Expression] | None:
    """The query, the value tested by IN, whether negated, and the place; None if it is no such condition."""
    negated, inner = False, node
    while isinstance(inner, exp.Not | exp.Paren):
        negated ^= isinstance(inner, exp.Not)
        inner = inner.this
    if isinstance(inner, exp.Exists) and isinstance(inner.this, exp.Select):
        return inner.this, None, negated, inner
    query = inner.args.get("query") if isinstance(inner, exp.In) else None
    if query is None or not isinstance(query.this, exp.Select):
        return None
    return query.this, inner.this, negated, inner
