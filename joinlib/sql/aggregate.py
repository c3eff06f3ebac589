"""Analyses GROUP BY, DISTINCT, HAVING and aggregate functions.

Law: an output column is computed from groups and aggregates only.

SELECT DISTINCT a, b is GROUP BY a, b. Without GROUP BY all rows are one group. `calls` reads the aggregates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import pyarrow as pa
from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.expr import Expr, Ref
from joinlib.expr import types as t
from joinlib.expr.fields import field_of, struct_field
from joinlib.expr.logic import Junction
from joinlib.expr.nodes import Call, constant
from joinlib.expr.packed import pack, unpack
from joinlib.model.grouping import AggregateCall, Grouping, GroupKey
from joinlib.model.partials import computed_from
from joinlib.model.stored import StoredCalls, StoredGroups
from joinlib.sql.calls import Asked, aggregates, asked, is_call
from joinlib.sql.compile import compile
from joinlib.sql.parse import parse, place
from joinlib.sql.scope import Scope
from joinlib.sql.select import Named, select_list
from joinlib.sql.truth import condition


@dataclass(frozen=True)
class Grouped:
    """A grouping, and the columns of joined rows that it is computed from."""

    rows: tuple[Named, ...]  # group keys $g0, $g1, ... and arguments of aggregates $x0, $x1, ...
    grouping: Grouping


def aggregated(
    select: exp.Select, scope: Scope, stored: StoredGroups = MappingProxyType({})
) -> Grouped | None:
    """Return the groups that a SELECT asks for; None if it asks for none.

    `stored`: what else is to be computed of groups with the same keys, if that holds all that the SELECT asks for.

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
    plain = _grouped(select, scope)
    kept = stored.get(tuple(key.sql for key in plain.grouping.keys), ())
    made = (_keeping(select, scope, calls, more=more) for more in (False, True) for calls in kept)
    return next((found for found in made if found), plain)


def _grouped(select: exp.Select, scope: Scope, first: Sequence[str] = ()) -> Grouped:
    """Return the groups of a SELECT. `first`: texts of aggregates that come before those that it asks for."""
    made = _Groups(scope.sql, dict(scope.visible), dict(scope.hidden), dict(scope.merged), scope.outer)
    made.rows = scope
    values = [made.value(item) for item in _items(select.args.get("group"), select, scope)]
    # Constants tell no groups apart; where there are no other keys, one of them says that no rows are no group.
    for value in [v for v in values if v.columns] or values[:1]:
        made.key(value)
    for text in first:
        made.given(parse(f"SELECT {text}").expressions[0])
    columns, having = select_list(select, made), select.args.get("having")
    return made.grouped(columns, None if having is None else made.condition(having.this, dict(columns)))


def _keeping(select: exp.Select, scope: Scope, stored: StoredCalls, *, more: bool) -> Grouped | None:
    """Return the groups of a SELECT with exactly these aggregates; None if it needs others, or a text says another.

    more: others may be computed from what these keep.
    """
    try:
        found = _grouped(select, scope, stored.of)
    except SqlError:
        return None
    calls, others = found.grouping.calls[: stored.count], found.grouping.calls[stored.count :]
    made = [computed_from(call, calls, stored.changes) for call in others]
    derived = tuple(call for call in made if call is not None)
    if tuple(call.sql for call in calls) != stored.of or len(derived) < len(others):
        return None
    if derived and not (more and calls):  # without an aggregate, groups may come out before they are final
        return None
    return replace(found, grouping=replace(found.grouping, calls=calls, derived=derived))


def _distinct(select: exp.Select, scope: Scope, other: exp.Expr | None) -> Grouped:
    at = select.args["distinct"]
    if other is not None:
        raise scope.error(
            "DISTINCT with GROUP BY or aggregates is not supported; the groups are distinct", other
        )
    columns = select_list(select, scope)
    kept = [pack(_groupable(value, scope, at)) for _, value in columns]
    keys = tuple(_group_key(i, v, k) for i, (k, (_, v)) in enumerate(zip(kept, columns, strict=True)))
    names = tuple((name, _key(key)) for (name, _), key in zip(columns, keys, strict=True))
    rows = tuple((key.name, value) for key, value in zip(keys, kept, strict=True))
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
    if isinstance(item, exp.Literal) and item.is_int:
        at = int(item.name)
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


@dataclass
class _Groups(Scope):
    """The scope of select list and HAVING: group keys and aggregates, which become columns."""

    rows: Scope = field(default_factory=lambda: Scope(""))
    keys: dict[str, GroupKey] = field(default_factory=dict)  # by the text of the grouped expression
    calls: dict[str, AggregateCall] = field(default_factory=dict)
    values: dict[str, tuple[str, Expr]] = field(default_factory=dict)  # columns of joined rows, by their text
    outputs: dict[str, Expr] = field(default_factory=dict)  # in HAVING: by lower-case name

    def value(self, node: exp.Expr) -> Expr:
        """Return one expression of GROUP BY."""
        if inner := next(aggregates(node), None):
            raise self.error(
                "GROUP BY cannot contain aggregates; group by what they are computed from", inner
            )
        return _groupable(compile(node, self.rows), self.rows, node)

    def key(self, value: Expr) -> None:
        """Add a key of the groups."""
        kept = pack(value)
        self.keys.setdefault(value.sql, _group_key(len(self.keys), value, kept))
        self.values.setdefault(f"GROUP {value.sql}", (self.keys[value.sql].name, kept))

    def given(self, node: exp.Expr) -> Expr | None:
        """Return a group key or an aggregate as a column; None if the
        expression must be compiled from its parts.
        """
        if is_call(node):
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
        if (key := self._within_key(value)) is not None:
            return key
        if isinstance(node, exp.Column) and value.columns:
            raise self.error(
                f"{value.sql} is neither grouped nor aggregated; add it to GROUP BY, or write"
                f" min({value.sql})",
                node,
            )
        return None

    def _within_key(self, value: Expr) -> Expr | None:
        """A value that is a group key, or a field of one."""
        if value.sql in self.keys:
            return _key(self.keys[value.sql])
        node = value.node
        if not isinstance(node, Call) or node.kernel is not struct_field:
            return None
        name = str(node.parameters[0])
        whole = Expr(value.sql.removesuffix(f".`{name}`"), value.columns, value.type, node.arguments[0])
        found = self._within_key(whole)
        return None if found is None else field_of(found, name)

    def _conditions(self) -> bool:
        """Whether a group key is a condition that combines others by AND or OR."""
        return any(isinstance(value.node, Junction) for _, value in self.values.values())

    def _call(self, node: exp.Expr) -> Expr:
        found = asked(node, self.rows)
        if found.sql not in self.calls:
            self.calls[found.sql] = self._made(found)
        call = self.calls[found.sql]
        made = _column(call.name, call.type, call.sql)
        return made if found.finish is None else found.finish(made)

    def _made(self, found: Asked) -> AggregateCall:
        arguments = [(self._column(value), value.type) for value in found.arguments]
        column, source = arguments[0] if arguments else (None, pa.null())
        return AggregateCall(
            f"$a{len(self.calls)}",
            found.function,
            column,
            source,
            found.type,
            found.sql,
            tuple(arguments[1:]),
            found.distinct,
            found.fractions,
        )

    def _column(self, value: Expr) -> str:
        return self.values.setdefault(value.sql, (f"$x{len(self.values)}", value))[0]

    def condition(self, node: exp.Expr, columns: dict[str, Expr]) -> Expr:
        """Compile HAVING, where names of output columns may stand for their expressions."""
        self.outputs = {name.lower(): value for name, value in columns.items()}
        return condition(node, self, "HAVING is a condition")

    def grouped(self, columns: tuple[Named, ...], having: Expr | None) -> Grouped:
        rows = tuple(self.values.values()) or (("$x0", constant(pa.scalar(True), "TRUE")),)
        return Grouped(rows, Grouping(tuple(self.keys.values()), tuple(self.calls.values()), having, columns))


def _column(name: str, kind: pa.DataType, sql: str) -> Expr:
    """A column of finished groups; error messages show its SQL text."""
    return Expr(sql, (name,), kind, Ref(name))


def _group_key(number: int, value: Expr, kept: Expr) -> GroupKey:
    """Return the key that a value makes, which is kept so."""
    return GroupKey(f"$g{number}", kept.type, value.sql, None if kept is value else value.type)


def _key(key: GroupKey) -> Expr:
    """The value that has made a key."""
    column = _column(key.name, key.type, key.sql)
    return column if key.kind is None else unpack(column, key.kind)


def _groupable(value: Expr, scope: Scope, at: exp.Expr) -> Expr:
    # As in Spark: equal maps may have their entries in other orders.
    if t.is_map(value.type) or value.type == t.NULL:
        raise scope.error(
            f"{value.sql} is {t.name(value.type)}, which cannot be grouped; group by its parts", at
        )
    return value


def check_append(grouping: Grouping, sql: str, select: exp.Select) -> None:
    """Check that groups over rows that change can come out in mode append: once, and for good.

    Raises:
        SqlError: if rows of SELECT DISTINCT would come out at once, although they may have to be taken back.
    """
    if not (grouping.changes and grouping.eager):
        return
    clause = next((n for n in ("distinct", "group", "having") if select.args.get(n)), None)
    name = {"distinct": "SELECT DISTINCT", "group": "GROUP BY without aggregates"}.get(clause or "", "HAVING")
    raise SqlError(
        f"output.mode: append cannot take rows back, but a row of {name} has to go when the last row that it"
        " stands for is deleted; write mode: changelog or upsert",
        *place(sql, select.args[clause] if clause else select),
    )
