"""Builds AND, OR, NOT, IS NULL and the choices (CASE, IF, COALESCE).

Law: logic is three-valued, and a part that a row does not need cannot fail for it.

`IF(b = 0, 0, a / b)` and `b <> 0 AND a / b > 1` must not divide by zero: everything is computed for all rows,
and only if that fails, again for just the rows that need it. So the usual case costs one pass of each kernel.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.expr import Column, Columns, Expr, Node
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.nodes import Literal, Value, call, combine, compute


@dataclass(frozen=True)
class Junction:
    """`a AND b AND ...` or `a OR b OR ...`: a part is needed only where those before it do not decide."""

    parts: tuple[Expr, ...]
    all: bool  # AND

    def evaluate(self, columns: Columns, rows: int) -> Value:
        kernel = pc.and_kleene if self.all else pc.or_kleene
        value: Value = self.parts[0].node.evaluate(columns, rows)
        for part in self.parts[1:]:
            open_rows = pc.fill_null(value if self.all else pc.invert(value), True)
            value = kernel(value, _where(part.node, open_rows, pa.bool_(), columns, rows))
        return value


@dataclass(frozen=True)
class Case:
    """The value of the first condition that is true, else the last value."""

    conditions: tuple[Node, ...]
    values: tuple[Node, ...]  # one more than conditions
    type: pa.DataType

    def evaluate(self, columns: Columns, rows: int) -> Value:
        todo: Value = pa.repeat(pa.scalar(True), rows)
        chosen: list[tuple[Value, Value]] = []
        for condition, value in zip(self.conditions, self.values, strict=False):
            met = pc.and_(todo, pc.fill_null(_where(condition, todo, pa.bool_(), columns, rows), False))
            chosen.append((met, _where(value, met, self.type, columns, rows)))
            todo = pc.and_not(todo, met)
        result = _where(self.values[-1], todo, self.type, columns, rows)
        for met, value in reversed(chosen):
            result = pc.if_else(met, value, result)
        return result


def _where(node: Node, mask: Value, type: pa.DataType, columns: Columns, rows: int) -> Value:
    """The value of a node of which only the rows in `mask` matter: it does not fail because of others."""
    try:
        return node.evaluate(columns, rows)
    except SpecError:
        if isinstance(mask, pa.Scalar):
            mask = pa.repeat(mask, rows)
        chosen = mask.combine_chunks() if isinstance(mask, pa.ChunkedArray) else mask
        flags = np.asarray(chosen.to_numpy(zero_copy_only=False), dtype=bool)
        if not flags.any():  # also without any row: a constant may fail although no row needs it
            return pa.nulls(len(flags), type)
        if flags.all():
            raise
        value = node.evaluate(_masked(columns, chosen), int(flags.sum()))
        if isinstance(value, pa.Scalar):
            return value
        places = pa.array(np.cumsum(flags) - 1, pa.int64(), mask=~flags)
        return value.take(places)


def _masked(columns: Columns, mask: pa.Array) -> Columns:
    def chosen(name: str) -> Column:
        return columns(name).filter(mask)

    return chosen


def both(*parts: Expr) -> Expr:
    """The conjunction of parts, evaluated in their order."""
    return _junction(parts, True)


def either(*parts: Expr) -> Expr:
    """The disjunction of parts, evaluated in their order."""
    return _junction(parts, False)


def all_of(parts: Sequence[Expr]) -> Expr | None:
    """The conjunction of parts, in their order; None if there are no parts."""
    return both(*parts) if parts else None


def _junction(parts: Sequence[Expr], all: bool) -> Expr:
    """Make one flat node, however many parts: deep nesting can neither be evaluated nor pickled.

    Its text nests pairs.
    """
    if len(parts) == 1:
        return parts[0]
    word = "AND" if all else "OR"
    parts = tuple(_boolean(part, word) for part in parts)
    sql = "(" * (len(parts) - 1) + parts[0].sql + "".join(f" {word} {part.sql})" for part in parts[1:])
    return combine(Junction(parts, all), parts, t.BOOLEAN, sql)


def _boolean(value: Expr, word: str) -> Expr:
    if value.type not in (t.BOOLEAN, t.NULL):
        raise SpecError(
            f"{word} takes BOOLEAN, {value.excerpt} is {t.name(value.type)}; compare it with something"
        )
    return cast(value, t.BOOLEAN)


def negate(value: Expr) -> Expr:
    value = _boolean(value, "NOT")
    return call(compute, (value,), t.BOOLEAN, f"(NOT {value.sql})", "invert")


def is_null(value: Expr) -> Expr:
    return call(compute, (value,), t.BOOLEAN, f"({value.sql} IS NULL)", "is_null")


def choose(conditions: list[Expr], values: list[Expr], sql: str) -> Expr:
    """CASE WHEN conditions[i] THEN values[i] ... ELSE values[-1]; values are cast to their common type.

    Raises:
        SpecError: if they have none.
    """
    kind = values[0].type
    for value in values[1:]:
        found = t.common(kind, value.type)
        if found is None:
            raise SpecError(f"{sql}: {t.name(kind)} and {t.name(value.type)} have no common type; add a CAST")
        kind = found
    values = [cast(v, kind) for v in values]
    conditions = [_boolean(c, "a condition") for c in conditions]
    node = Case(tuple(c.node for c in conditions), tuple(v.node for v in values), kind)
    return combine(node, (*conditions, *values), kind, sql)


def conjuncts(value: Expr) -> list[Expr]:
    """The parts of a conjunction, in their order; a constant TRUE has none."""
    if isinstance(value.node, Junction) and value.node.all:
        return [one for part in value.node.parts for one in conjuncts(part)]
    if isinstance(value.node, Literal) and value.node.value.as_py() is True:
        return []
    return [value]
