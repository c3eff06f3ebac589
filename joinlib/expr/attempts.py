"""try_add, try_divide and the like: NULL where the computation has no value.

Law: only the computation is tried; an argument that has no value is an error as ever.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.expr import Columns, Expr, Node, ref
from joinlib.expr import types as t
from joinlib.expr.arithmetic import arithmetic
from joinlib.expr.nodes import Literal, Value, combine, constant, contiguous, no_columns
from joinlib.expr.time import is_interval, shift

_DIVIDING = ("try_divide", "try_mod")


@dataclass(frozen=True)
class Tried:
    """A computation over the columns "?0", "?1", ..., which are its arguments.

    divides: whether it divides by the second one, zeros of which are many more than rows that fail otherwise.
    """

    arguments: tuple[Node, ...]
    body: Expr
    divides: bool = False

    def evaluate(self, columns: Columns, rows: int) -> Value:
        values = [contiguous(node.evaluate(columns, rows), rows) for node in self.arguments]
        if self.divides:
            values[1] = _without_zeros(values[1])
        return pa.chunked_array(self._tried(values, rows), self.body.type).combine_chunks()

    def _tried(self, values: list[pa.Array], rows: int) -> list[pa.Array]:
        """Compute; where that fails, compute each half, until the rows that fail are alone."""
        try:
            found = self.body.evaluate(lambda name: values[int(name[1:])], rows)
            return [contiguous(found, rows)]
        except SpecError:
            if rows == 1:
                return [pa.nulls(1, self.body.type)]
        half = rows // 2
        first = self._tried([v.slice(0, half) for v in values], half)
        return first + self._tried([v.slice(half) for v in values], rows - half)


def _without_zeros(divisor: pa.Array) -> pa.Array:
    """Return NULL for zero: by both there is no quotient."""
    if not t.is_number(divisor.type):
        return divisor
    zero = pa.scalar(Decimal(0) if t.is_decimal(divisor.type) else 0, divisor.type)
    return pc.if_else(pc.equal(divisor, zero), pa.scalar(None, divisor.type), divisor)


def attempt(name: str, build: Callable[..., Expr], *given: Expr) -> Expr:
    """Build a call that gives NULL where `build` would raise."""
    if any(is_interval(value) and not value.columns for value in given):
        body = build(*given)  # an INTERVAL constant is part of the computation
        node = Tried(tuple(ref(c, t.NULL).node for c in body.columns), _renamed(body))
        return combine(node, given, body.type, f"{name}({', '.join(v.sql for v in given)})")
    places = [ref(f"?{number}", value.type) for number, value in enumerate(given)]
    body = build(*places)
    sql = f"{name}({', '.join(v.sql for v in given)})"
    node = Tried(tuple(v.node for v in given), body, divides=name in _DIVIDING)
    if all(isinstance(v.node, Literal) for v in given):
        return constant(node.evaluate(no_columns, 1)[0], sql)
    return combine(node, given, body.type, sql)


@dataclass(frozen=True)
class _Arguments:
    """A computation whose columns are arguments of another."""

    body: Node
    names: tuple[str, ...]

    def evaluate(self, columns: Columns, rows: int) -> Value:
        return self.body.evaluate(lambda name: columns(f"?{self.names.index(name)}"), rows)


def _renamed(body: Expr) -> Expr:
    return Expr(body.sql, body.columns, body.type, _Arguments(body.node, body.columns))


def _sum(sign: str, left: Expr, right: Expr) -> Expr:
    if any(t.is_time(e.type) or is_interval(e) for e in (left, right)):
        return shift(sign, left, right)
    return arithmetic(sign, left, right)


_SIGNS = {"try_add": "+", "try_subtract": "-", "try_multiply": "*", "try_divide": "/", "try_mod": "%"}
BUILT = {
    name: partial(attempt, name, partial(_sum if sign in "+-" else arithmetic, sign))
    for name, sign in _SIGNS.items()
}
