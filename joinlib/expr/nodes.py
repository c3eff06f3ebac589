"""What are expressions made of? Three nodes: a column (`Ref`), a constant (`Literal`), a kernel over values (`Call`).

Law: `evaluate` gives an array with one value for each row, or a scalar when no row can differ.
Kernels are module-level functions, so that nodes pickle.
"""

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.expr import Column, Columns, Expr, Node

Value: TypeAlias = pa.Array | pa.ChunkedArray | pa.Scalar


@dataclass(frozen=True)
class Literal:
    """A constant."""

    value: pa.Scalar

    def evaluate(self, columns: Columns, rows: int) -> pa.Scalar:
        return self.value


@dataclass(frozen=True)
class Call:
    """A kernel applied to values; `text` says in an error what was computed."""

    kernel: Callable[..., Value]
    arguments: tuple[Node, ...]
    parameters: tuple[Hashable, ...]
    text: str

    def evaluate(self, columns: Columns, rows: int) -> Value:
        values = [argument.evaluate(columns, rows) for argument in self.arguments]
        try:
            return self.kernel(*values, *self.parameters)
        except (pa.ArrowInvalid, ArithmeticError, ValueError) as e:
            raise SpecError(f"{self.text} cannot be computed for some row: {_reason(e)}") from e


def _reason(error: Exception) -> str:
    """A word on what went wrong, without the row's value (Arrow likes to quote it)."""
    text = str(error).lower()
    for word, reason in _REASONS.items():
        if word in text:
            return reason
    return "the value does not fit the type"


_REASONS = {
    "divide by zero": "division by zero; use NULLIF on the divisor",
    "overflow": "overflow; CAST to a wider type first",
    "malformed": "malformed text; use TRY_CAST",
}


def call(
    kernel: Callable[..., Value], arguments: tuple[Expr, ...], type: pa.DataType, sql: str, *more: Hashable
) -> Expr:
    """A kernel over expressions, of a known type; evaluated right away when no column is read, unless that fails."""
    node = Call(kernel, tuple(a.node for a in arguments), more, sql)
    if all(isinstance(a.node, Literal) for a in arguments):
        with suppress(SpecError):  # perhaps no row asks: see `joinlib.expr.compare.check`
            value = node.evaluate(no_columns, 1)
            return constant(value if isinstance(value, pa.Scalar) else value[0], sql)
    return combine(node, arguments, type, sql)


def combine(node: Node, parts: Sequence[Expr], type: pa.DataType, sql: str) -> Expr:
    """An expression over parts: it reads what they read."""
    return Expr(sql, tuple(dict.fromkeys(c for p in parts for c in p.columns)), type, node)


def constant(value: pa.Scalar, sql: str) -> Expr:
    """A literal; its text carries the type where SQL's would not."""
    return Expr(sql, (), value.type, Literal(value))


def no_columns(name: str) -> Column:
    """The columns of a constant."""
    raise AssertionError(f"a constant reads {name}")


def compute(*values: Any) -> Value:
    """The Arrow kernel whose name comes last."""
    *arguments, name = values
    return pc.call_function(name, arguments)


def columnar(kernel: Callable[..., pa.Array]) -> Callable[..., Value]:
    """Let a kernel see contiguous arrays of one length only; scalars in give a scalar out."""

    @wraps(kernel)
    def whole(*values: Any) -> Value:
        rows = next((len(v) for v in values if isinstance(v, pa.Array | pa.ChunkedArray)), None)
        result = kernel(*(_array(v, 1 if rows is None else rows) for v in values))
        return result[0] if rows is None else result

    return whole


def _array(value: Any, rows: int) -> Any:
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, rows)
    return value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value
