"""Analyses a part of the query with window functions: SELECT columns, f(...) OVER (...) FROM one table QUALIFY ...

Law: values are computed from columns and functions only; all functions have the same PARTITION BY. A name in QUALIFY
without the table's is that of an output: what the text means by a name was resolved before (`rewrite.names`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from joinlib.expr import Expr, ref
from joinlib.expr import types as t
from joinlib.expr.nodes import Literal
from joinlib.model.over import Over, OverCall, settles
from joinlib.sql.compile import compile
from joinlib.sql.depth import check_depth, with_room
from joinlib.sql.graph import Scan, Table
from joinlib.sql.present import is_present, present_of
from joinlib.sql.rewrite.trees import ands
from joinlib.sql.scope import Scope
from joinlib.sql.select import select_list
from joinlib.sql.truth import condition
from joinlib.sql.window import call_of

_RANKS = ("row_number", "rank", "dense_rank")


def over_of(sql: str, select: exp.Select, table: Table) -> Over:
    """Return the window functions of a SELECT over one table.

    The columns are those that are read, as "alias.column", in the order of the table. `time` is set if the
    table's event time tells which rows are final.

    Raises:
        SqlError: if it is not such a SELECT.
    """
    return with_room(lambda: _over_of(sql, select, table))


def _over_of(sql: str, select: exp.Select, table: Table) -> Over:
    check_depth(sql, select)
    if is_present(select):
        return present_of(sql, select, table)
    alias = select.args["from_"].this.alias_or_name
    scan = Scan(alias, table)
    scope = _Functions(sql, {alias.lower(): scan}, rows=Scope(sql, {alias.lower(): scan}))
    scope.windows = {str(w.this.name).lower(): w for w in select.args.get("windows") or []}
    columns = select_list(select, scope)
    qualify = select.args.get("qualify")
    scope.outputs = {name.lower(): value for name, value in columns}
    kept = None if qualify is None else condition(qualify.this, scope, "QUALIFY is a condition")
    partitions = set(scope.partitions.values())
    if not partitions:
        raise scope.error("there is no window function; write f(...) OVER (...)", select)
    if len(partitions) > 1:
        raise scope.error("window functions of one query part with different PARTITION BY", select)
    calls, partition = tuple(scope.calls.values()), partitions.pop()
    read = {name for call in calls for name in _reads(call)} | set(partition)
    read |= {
        name for value in (*(v for _, v in columns), *([kept] if kept else [])) for name in value.columns
    }
    stored = tuple(
        (str(one.column), one.type) for f in table.schema if (one := scan.column(f)).column in read
    )
    top = None if qualify is None else _top(ands(qualify.this), calls, scope)
    found = Over(stored, partition, calls, kept, columns, top=top)
    time = None if table.time is None else scan.column(table.schema.field(table.time)).column
    if time is None or not settles(found, time):
        return found
    return Over(stored, partition, calls, kept, columns, time=time, behind_us=table.behind_us, top=top)


@dataclass
class _Functions(Scope):
    """The scope of select list and QUALIFY: columns, and window functions, which become columns."""

    rows: Scope = field(default_factory=lambda: Scope(""))
    windows: dict[str, exp.Window] = field(default_factory=dict)  # of the WINDOW clause, by lower-case name
    calls: dict[str, OverCall] = field(default_factory=dict)  # by what identifies them
    partitions: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by call
    outputs: dict[str, Expr] = field(default_factory=dict)  # in QUALIFY: by lower-case name

    def given(self, node: exp.Expr) -> Expr | None:
        """Return a window function as a column; None if the expression must be compiled from its parts."""
        if isinstance(node, exp.Window):
            return self._call(node)
        if isinstance(node, exp.Column) and not node.table:
            return self.outputs.get(node.name.lower())
        return None

    def _call(self, node: exp.Window) -> Expr:
        name = f"$w{len(self.calls)}"
        call, partition = call_of(node, self.windows, name, self.rows)
        text = repr((call.function, call.arguments, call.order, call.frame, call.ignore_nulls, call.number,
                     call.default, call.condition))  # fmt: skip
        call = self.calls.setdefault(text, call)
        self.partitions.setdefault(call.name, partition)
        if self.partitions[call.name] != partition:
            self.partitions[name] = partition
        return Expr(call.sql, (call.name,), call.type, ref(call.name, call.type).node)


def _reads(call: OverCall) -> Iterator[str]:
    """Yield the columns that a function reads."""
    yield from (name for name, _ in call.arguments)
    yield from (key.column for key in call.order)
    if call.condition is not None:
        yield call.condition


def _top(parts: list[exp.Expr], calls: tuple[OverCall, ...], scope: Scope) -> tuple[str, int] | None:
    """Return the rank that rows must not exceed, if rows behind it matter to no other row."""
    if len({call.order for call in calls}) > 1 or not all(call.backward for call in calls):
        return None
    found = [limit for part in parts if (limit := _limit(part, calls, scope)) is not None]
    peers = {call.name: call.function != "row_number" for call in calls}
    plain = all(call.function in (*_RANKS, "lag") or call.frame.unit == "rows" for call in calls)
    return min((f for f in found if plain or peers[f[0]]), key=lambda f: f[1], default=None)


def _limit(node: exp.Expr, calls: tuple[OverCall, ...], scope: Scope) -> tuple[str, int] | None:
    """Return the call and the number of rank <= number, and of its like."""
    if isinstance(node, exp.Between):
        sides, less = (node.this, node.args["high"]), 0
    elif isinstance(node, exp.LT | exp.LTE | exp.EQ):
        sides, less = (node.this, node.expression), int(isinstance(node, exp.LT))
    elif isinstance(node, exp.GT | exp.GTE):
        sides, less = (node.expression, node.this), int(isinstance(node, exp.GT))
    else:
        return None
    left, right = (compile(side, scope) for side in sides)
    if isinstance(node, exp.EQ) and isinstance(left.node, Literal):
        left, right = right, left
    call = next((c for c in calls if left.column == c.name and c.function in _RANKS), None)
    if call is None or not isinstance(right.node, Literal) or not t.is_integer(right.type):
        return None
    number = right.node.value.as_py()
    return None if number is None else (call.name, int(number) - less)
