"""GROUPING SETS, ROLLUP and CUBE by one GROUP BY.

    SELECT a, b, sum(x) FROM t GROUP BY ROLLUP (a, b)
    SELECT a, b, sum(x) FROM (SELECT CASE WHEN gid IN (0, 1) THEN a END AS a, CASE WHEN gid IN (0) THEN b END AS b, x, gid
                              FROM t LATERAL VIEW explode(array(0, 1, 3)) v AS gid) GROUP BY a, b, gid

Every row counts in one group of each set; a bit of gid is 1 where a key does not count, as in grouping_id().
Law: the same rows, as a bag, except that there is no row for no rows.
"""

from itertools import product

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.names import Names

Keys = list[exp.Expr]


def one_group(select: exp.Select, names: Names) -> exp.Select:
    """Return the query with a plain GROUP BY."""
    group = select.args.get("group")
    if group is None or not _has_sets(group):
        return select
    sets = _sets(group)
    keys = list({trees.text(k): k for one in [*group_keys(group), *sets] for k in one}.values())
    return _Expanded(select, names, keys, sets).done()


def _has_sets(group: exp.Group) -> bool:
    named = any(group.args.get(n) for n in ("rollup", "cube", "grouping_sets"))
    return named or any(isinstance(e, exp.Rollup | exp.Cube | exp.GroupingSets) for e in group.expressions)


def group_keys(group: exp.Group) -> list[Keys]:
    """The keys in the order of the text, which is that of the bits of grouping_id()."""
    return [[k for one in _of(e) for k in one] for e in group.expressions]


def _sets(group: exp.Group) -> list[Keys]:
    parts = [_of(e) for e in group.expressions]
    plain = list(group.expressions)
    for name in ("rollup", "cube", "grouping_sets"):
        for node in group.args.get(name) or []:
            if node.expressions:
                parts.append(_of(node))
            else:
                steps = [_keys(e) for e in plain]
                parts = [_rolled(steps) if name == "rollup" else _cubed(steps)]
    return [_once([k for one in choice for k in one]) for choice in product(*parts)]


def _once(keys: Keys) -> Keys:
    return list({trees.text(k): k for k in keys}.values())


def _of(node: exp.Expr) -> list[Keys]:
    if isinstance(node, exp.Rollup):
        return _rolled([_keys(e) for e in node.expressions])
    if isinstance(node, exp.Cube):
        return _cubed([_keys(e) for e in node.expressions])
    if isinstance(node, exp.GroupingSets):
        return [one for e in node.expressions for one in _of(e)]
    return [_keys(node)]


def _keys(node: exp.Expr) -> Keys:
    node = node.unnest()
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _rolled(steps: list[Keys]) -> list[Keys]:
    return [[k for step in steps[:n] for k in step] for n in range(len(steps), -1, -1)]


def _cubed(steps: list[Keys]) -> list[Keys]:
    chosen = product(*([step, []] for step in steps))
    return [[k for step in choice for k in step] for choice in chosen]


class _Expanded:
    def __init__(self, select: exp.Select, names: Names, keys: Keys, sets: list[Keys]) -> None:
        self.select, self.names, self.keys = select, names, keys
        self.below, self.middle, self.view = names.fresh("b"), names.fresh("m"), names.fresh("v")
        texts = [{trees.text(k) for k in one} for one in sets]
        bits = [sum(1 << i for i, k in enumerate(reversed(keys)) if trees.text(k) not in t) for t in texts]
        self.gids = bits
        self.marks = bits if len(set(bits)) == len(bits) else list(range(len(bits)))
        self.within = {
            trees.text(k): [m for m, t in zip(self.marks, texts) if trees.text(k) in t] for k in keys
        }
        self.own = set(trees.sources(select))
        self.taken: set[str] = set()
        self.exported: dict[str, str] = {}
        self.base = exp.Select()
        self.passed = exp.Select()
        self.key_names: dict[str, str] = {}

    def done(self) -> exp.Select:
        gid = self._name("_gid")
        for key in self.keys:
            self._key(key)
        for clause in ("having", "qualify", "order"):
            if part := self.select.args.get(clause):
                trees.replaced(part, self._change)
        for item in self.select.expressions:
            trees.replaced(item.this, self._change)
        self.passed.append("expressions", trees.named(trees.column(self.view, "_gid"), gid))
        for clause in ("from_", "joins", "where", "laterals"):
            self.base.set(clause, self.select.args.get(clause))
            self.select.set(clause, None)
        if not self.base.expressions:
            self.base.append("expressions", trees.named(trees.number(1), self._name("_c1")))
        self.passed.from_(trees.derived(self.base, self.below), copy=False)
        marks = trees.call("array", *(trees.number(m) for m in self.marks))
        alias = exp.TableAlias(this=trees.identifier(self.view), columns=[trees.identifier("_gid")])
        each = exp.Lateral(this=trees.call("explode", marks), view=True, outer=False, alias=alias)
        self.passed.set("laterals", [each])
        group = [trees.column(self.middle, n) for n in (*self.key_names.values(), gid)]
        self.select.set("group", exp.Group(expressions=group))
        return self.select.from_(trees.derived(self.passed, self.middle), copy=False)

    def _name(self, wanted: str) -> str:
        found, number = wanted, 1
        while found.lower() in self.taken:
            number += 1
            found = f"{wanted}_{number}"
        self.taken.add(found.lower())
        return found

    def _key(self, key: exp.Expr) -> None:
        plain = trees.plain_column(key)
        name = self._name(trees.name_of(plain) if plain is not None else "_k")
        self.key_names[trees.text(key)] = name
        source = self._name(f"_{name}")
        self.base.append("expressions", trees.named(key.copy(), source))
        value: exp.Expr = trees.column(self.below, source)
        marks = self.within[trees.text(key)]
        if len(marks) < len(self.marks):
            value = exp.Case(ifs=[exp.If(this=self._one_of(marks, self.view, "_gid"), true=value)])
        self.passed.append("expressions", trees.named(value, name))

    def _one_of(self, marks: list[int], alias: str, name: str) -> exp.Expr:
        return exp.In(this=trees.column(alias, name), expressions=[trees.number(m) for m in marks])

    def _change(self, node: exp.Expr) -> exp.Expr | None:
        nested = node.find_ancestor(exp.Select) is not self.select
        if nested and not self._outer(node):
            return None
        if isinstance(node, exp.Anonymous) and str(node.name).lower() in ("grouping", "grouping_id"):
            return self._grouping(node)
        words = trees.text(node) if trees.is_value(node) else ""
        if words in self.key_names:
            return trees.column(self.middle, self.key_names[words], node)
        if nested and trees.is_aggregate(node):
            raise self.names.error(
                f"{words} in a subquery of ROLLUP, CUBE or GROUPING SETS: compute it in a query below", node
            )
        if trees.is_aggregate(node) and not isinstance(node.parent, exp.Window):
            return trees.replaced(node.copy(), self._argument)
        if isinstance(node, exp.Column) and node.table:
            raise self.names.error(f"{words} is neither grouped nor aggregated; add it to GROUP BY", node)
        return None

    def _outer(self, node: exp.Expr) -> bool:
        """Whether a part of a subquery is a value of the grouped query: it reads only that, and something of it."""
        found = {trees.owner(c) for c in trees.columns_in(node)}
        return bool(found) and found <= self.own and node.find(exp.Select) is None

    def _argument(self, node: exp.Expr) -> exp.Expr | None:
        if not (isinstance(node, exp.Column) and node.table):
            return None
        if node.find_ancestor(exp.Select) is not None and trees.owner(node) not in self.own:
            return None
        words = trees.text(node)
        if words not in self.exported:
            name = self._name(trees.name_of(node))
            self.exported[words] = name
            self.base.append("expressions", trees.named(node.copy(), name))
            self.passed.append("expressions", trees.named(trees.column(self.below, name), name))
        return trees.column(self.middle, self.exported[words], node)

    def _grouping(self, node: exp.Anonymous) -> exp.Expr:
        gid = trees.column(self.middle, "_gid", node)
        if str(node.name).lower() == "grouping_id":
            if node.expressions and [trees.text(e) for e in node.expressions] != list(self.key_names):
                raise self.names.error("grouping_id takes no arguments, or all keys in order", node)
            if self.marks == self.gids:
                return exp.Cast(this=gid, to=exp.DataType.build("bigint"))
            ifs = [
                exp.If(this=exp.EQ(this=gid.copy(), expression=trees.number(m)), true=trees.number(g))
                for m, g in zip(self.marks, self.gids)
            ]
            return exp.Case(ifs=ifs)
        key = trees.text(node.expressions[0].unnest()) if len(node.expressions) == 1 else ""
        if key not in self.within:
            raise self.names.error("grouping takes one key of GROUP BY", node)
        there = exp.If(this=self._one_of(self.within[key], self.middle, "_gid"), true=trees.number(0))
        return exp.Case(ifs=[there], default=trees.number(1))
