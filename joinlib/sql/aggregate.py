"""Analyses GROUP BY, DISTINCT, HAVING and aggregate functions.

Law: an output column is computed from groups and aggregates only.

SELECT DISTINCT a, b is GROUP BY a, b. Without GROUP BY all rows are one group. Types are Spark's: count
BIGINT, sum of whole numbers BIGINT, of DECIMAL(p,s) DECIMAL(p+10,s), avg DOUBLE or DECIMAL(p+4,s+4).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from joinlib.errors import SpecError, SqlError
from joinlib.expr import Expr, Ref
from joinlib.expr import types as t
from joinlib.expr.functions import AGGREGATES
from joinlib.expr.logic import Junction
from joinlib.expr.nodes import constant
from joinlib.model.grouping import DELETED, AggregateCall, Function, Grouping, GroupKey
from joinlib.sql.compile import compile
from joinlib.sql.parse import place
from joinlib.sql.scope import Scope
from joinlib.sql.select import Named, select_list

_KNOWN: dict[str, Function] = {
    "count": "count",
    "sum": "sum",
    "min": "min",
    "max": "max",
    "avg": "avg",
    "mean": "avg",
}


@dataclass(frozen=True)
class Grouped:
    """A grouping, and the columns of joined rows that it is computed from."""

    rows: tuple[Named, ...]  # group keys $g0, $g1, ... and arguments of aggregates $x0, $x1, ...
    grouping: Grouping


def aggregated(select: exp.Select, scope: Scope) -> Grouped | None:
    """Return the groups that a SELECT asks for; None if it asks for none.

    Raises:
        SqlError: if GROUP BY, HAVING, DISTINCT or an aggregate is used in an unsupported way.
    """
    group, having, distinct = (select.args.get(n) for n in ("group", "having", "distinct"))
    calls = [c for item in select.expressions for c in aggregates(item)]
    if not (group or having or distinct or calls):
        return None
    if distinct:
        return _distinct(select, scope, group or having or (calls[0] if calls else None))
    if star := next((i for i in select.expressions if i.is_star), None):
        raise scope.error("* with GROUP BY or aggregates is not supported; name the groups", star)
    made = _Groups(scope.sql, dict(scope.visible), dict(scope.hidden), dict(scope.merged), scope.outer)
    made.rows = scope
    for item in _items(group, select, scope):
        made.key(item)
    columns = select_list(select, made)
    return made.grouped(columns, None if having is None else made.condition(having.this, dict(columns)))


def _distinct(select: exp.Select, scope: Scope, other: exp.Expr | None) -> Grouped:
    at = select.args["distinct"]
    if other is not None:
        raise scope.error(
            "DISTINCT with GROUP BY or aggregates is not supported; the groups are distinct", other
        )
    columns = select_list(select, scope)
    keys = tuple(GroupKey(f"$g{i}", _groupable(v, scope, at).type, v.sql) for i, (_, v) in enumerate(columns))
    names = tuple((name, _column(k.name, k.type, k.sql)) for (name, _), k in zip(columns, keys, strict=True))
    rows = tuple((k.name, v) for k, (_, v) in zip(keys, columns, strict=True))
    return Grouped(rows, Grouping(keys, (), None, names))


def _items(group: exp.Group | None, select: exp.Select, scope: Scope) -> list[exp.Expr]:
    """The expressions of GROUP BY, with numbers and names of output columns replaced by their expressions."""
    if group is None:
        return []
    if group.args.get("all") and group.expressions:
        raise scope.error("GROUP BY ALL names the groups by itself; write ALL or the groups", group)
    if group.args.get("all"):
        return [i.unalias() for i in select.expressions if not list(aggregates(i))]
    return [_meant(item, select, scope) for item in group.expressions]


def _meant(item: exp.Expr, select: exp.Select, scope: Scope) -> exp.Expr:
    if isinstance(item, exp.Literal) and not item.is_string:
        at = int(item.name) if item.name.isdecimal() else 0
        if not 1 <= at <= len(select.expressions):
            raise scope.error(
                f"GROUP BY {item.name}: there are {len(select.expressions)} output columns", item
            )
        return select.expressions[at - 1].unalias()
    if isinstance(item, exp.Column) and not item.table:
        try:
            scope.resolve(item)
        except SqlError:
            named = (i for i in select.expressions if i.alias and i.alias.lower() == item.name.lower())
            return next((i.unalias() for i in named), item)
    return item


def aggregates(node: exp.Expr) -> Iterator[exp.Anonymous]:
    """Find the outermost calls of aggregate functions, from left to right."""
    todo = [node]
    while todo:
        found = todo.pop()
        if isinstance(found, exp.Anonymous) and str(found.name).lower() in AGGREGATES:
            yield found
        elif not isinstance(found, exp.Select | exp.Subquery):
            todo += reversed(list(found.iter_expressions()))


@dataclass
class _Groups(Scope):
    """The scope of select list and HAVING: group keys and aggregates, which become columns."""

    rows: Scope = field(default_factory=lambda: Scope(""))
    keys: dict[str, GroupKey] = field(default_factory=dict)  # by the text of the grouped expression
    calls: dict[str, AggregateCall] = field(default_factory=dict)
    values: dict[str, tuple[str, Expr]] = field(default_factory=dict)  # columns of joined rows, by their text
    outputs: dict[str, Expr] = field(default_factory=dict)  # in HAVING: by lower-case name

    def key(self, node: exp.Expr) -> None:
        """Add one expression of GROUP BY."""
        if inner := next(aggregates(node), None):
            raise self.error(
                "GROUP BY cannot contain aggregates; group by what they are computed from", inner
            )
        value = _groupable(compile(node, self.rows), self.rows, node)
        if value.columns:  # grouping by a constant splits nothing
            self.keys.setdefault(value.sql, GroupKey(f"$g{len(self.keys)}", value.type, value.sql))
            self.values.setdefault(f"GROUP {value.sql}", (self.keys[value.sql].name, value))

    def given(self, node: exp.Expr) -> Expr | None:
        """Return a group key or an aggregate as a column; None if the
        expression must be compiled from its parts.
        """
        if isinstance(node, exp.Anonymous) and str(node.name).lower() in AGGREGATES:
            return self._call(node)
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in self.outputs:
            return self.outputs[node.name.lower()]
        if isinstance(node, exp.And | exp.Or) and not self._conditions():
            return None  # avoids compiling a long chain again from each of its parts
        if isinstance(node, exp.Literal | exp.Interval | exp.Dot) or next(aggregates(node), None):
            return None
        try:
            value = compile(node, self.rows)
        except SqlError:
            if isinstance(node, exp.Column):
                raise
            return None
        if value.sql in self.keys:
            key = self.keys[value.sql]
            return _column(key.name, key.type, key.sql)
        if isinstance(node, exp.Column) and value.columns:
            raise self.error(
                f"{value.sql} is neither grouped nor aggregated; add it to GROUP BY, or write"
                f" min({value.sql})",
                node,
            )
        return None

    def _conditions(self) -> bool:
        """Whether a group key is a condition that combines others by AND or OR."""
        return any(isinstance(value.node, Junction) for _, value in self.values.values())

    def _call(self, node: exp.Anonymous) -> Expr:
        name, written = str(node.name).lower(), node.sql(dialect="spark")
        function = _KNOWN.get(name)
        if function is None:
            raise self.error(f"{name} is not supported; use one of {', '.join(_KNOWN)}", node)
        if any(isinstance(e, exp.Distinct) for e in node.expressions):
            raise self.error(
                f"{written} is not supported; write SELECT DISTINCT, and count where the output is read", node
            )
        if len(node.expressions) != 1:
            raise self.error(f"{name} takes 1 argument, not {len(node.expressions)}", node)
        argument = node.expressions[0]
        if isinstance(argument, exp.Star):
            if argument.args.get("except_"):
                raise self.error(
                    "count(* EXCEPT ...) is not supported; write count(*) or count(a column)", node
                )
            if function != "count":
                raise self.error(f"{name}(*) is not supported; name the column", node)
            return self._made("count", None, "count(*)", node)
        if inner := next(aggregates(argument), None):
            raise self.error("an aggregate of an aggregate is not supported", inner)
        value = compile(argument, self.rows)
        return self._made(function, value, f"{function}({value.sql})", node)

    def _made(self, function: Function, value: Expr | None, sql: str, node: exp.Expr) -> Expr:
        if sql not in self.calls:
            try:
                kind = pa.int64() if value is None else result_type(function, value.type)
            except SpecError as error:
                raise self.error(f"{sql}: {error}", node) from error
            column = None if value is None else self._column(value)
            source = pa.null() if value is None else value.type
            self.calls[sql] = AggregateCall(f"$a{len(self.calls)}", function, column, source, kind, sql)
        found = self.calls[sql]
        return _column(found.name, found.type, found.sql)

    def _column(self, value: Expr) -> str:
        return self.values.setdefault(value.sql, (f"$x{len(self.values)}", value))[0]

    def condition(self, node: exp.Expr, columns: dict[str, Expr]) -> Expr:
        """Compile HAVING, where names of output columns may stand for their expressions."""
        self.outputs = {name.lower(): value for name, value in columns.items()}
        value = compile(node, self)
        if value.type not in (t.BOOLEAN, t.NULL):
            raise self.error(f"HAVING is a condition, {value.sql} is {t.name(value.type)}", node)
        return value

    def grouped(self, columns: tuple[Named, ...], having: Expr | None) -> Grouped:
        rows = tuple(self.values.values()) or (("$x0", constant(pa.scalar(True), "TRUE")),)
        return Grouped(rows, Grouping(tuple(self.keys.values()), tuple(self.calls.values()), having, columns))


def _column(name: str, kind: pa.DataType, sql: str) -> Expr:
    """A column of finished groups; error messages show its SQL text."""
    return Expr(sql, (name,), kind, Ref(name))


def _groupable(value: Expr, scope: Scope, at: exp.Expr) -> Expr:
    if t.is_nested(value.type) or value.type == t.NULL or t.name(value.type) == "INTERVAL":
        raise scope.error(
            f"{value.sql} is {t.name(value.type)}, which cannot be grouped; group by its parts", at
        )
    return value


def result_type(function: Function, kind: pa.DataType) -> pa.DataType:
    """Return Spark's type of an aggregate over values of type `kind`.

    Raises:
        SpecError: if the aggregate is not defined for that type.
    """
    if function == "count":
        return t.BIGINT
    if function in ("min", "max"):
        if t.is_nested(kind) or kind in (t.NULL, t.INTERVAL):
            raise SpecError(f"{t.name(kind)} has no order; take a part of it")
        return kind
    if not t.is_number(kind):
        raise SpecError(f"it takes a number, not {t.name(kind)}; write CAST(... AS DOUBLE)")
    if not t.is_decimal(kind):
        return t.BIGINT if function == "sum" and t.is_integer(kind) else t.DOUBLE
    more, finer = (10, 0) if function == "sum" else (4, 4)
    return pa.decimal128(min(kind.precision + more, 38), min(kind.scale + finer, 38))


def in_mode(grouping: Grouping, changelog: bool, sql: str, select: exp.Select) -> Grouping:
    """Return the groups for the output mode; a changelog must contain all group keys.

    Raises:
        SqlError: if a changelog lacks a group key, or has a column with the name that marks deletions.
    """
    if not changelog:
        return grouping
    out = {value.column for _, value in grouping.select}
    where = place(sql, select)
    for key in grouping.keys:
        if key.name not in out:
            raise SqlError(
                f"output.mode: changelog has a row for each change of a group, but {key.sql} is not"
                " selected; select it",
                *where,
            )
    if DELETED in [name.lower() for name, _ in grouping.select]:
        raise SqlError(f"output.mode: changelog adds a column named {DELETED}; rename yours", *where)
    return replace(grouping, changelog=True)
