"""The nodes of expressions: a column (`Ref`), a constant (`Literal`), a kernel applied to values (`Call`).

Law: `evaluate` gives an array with one value for each row, or a scalar when all rows have the same value.

Kernels are module-level functions, so that nodes pickle.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.expr import Column, Columns, Expr, Node, repeated

Value: TypeAlias = pa.Array | pa.ChunkedArray | pa.Scalar


class NoValueError(ValueError):
    """A function has no value for a row. The message says why, without quoting the row."""


@dataclass(frozen=True)
class Literal:
    """A constant."""

    value: pa.Scalar

    def evaluate(self, columns: Columns, rows: int) -> pa.Scalar:
        return self.value


@dataclass(frozen=True)
class Call:
    """A kernel applied to values; `text` names the computation in an error."""

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
    """Describe what went wrong without the row's value, which Arrow's message may quote."""
    if isinstance(error, NoValueError):
        return str(error)
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


def argument_of(node: Node, kernel: str) -> Node | None:
    """Return the argument of a call of one of Arrow's kernels; None for any other node."""
    known = isinstance(node, Call) and node.kernel is compute and node.parameters == (kernel,)
    return node.arguments[0] if known else None  # type: ignore[attr-defined]


def call(
    kernel: Callable[..., Value], arguments: tuple[Expr, ...], type: pa.DataType, sql: str, *more: Hashable
) -> Expr:
    """Apply a kernel to expressions; `more` are its parameters and `type` is its result.

    Without columns it is evaluated right away, unless that fails.
    """
    node = Call(kernel, tuple(a.node for a in arguments), more, sql)
    if all(isinstance(a.node, Literal) for a in arguments):
        with suppress(SpecError):  # perhaps no row needs it: see `joinlib.expr.compare.check`
            value = node.evaluate(no_columns, 1)
            return constant(value if isinstance(value, pa.Scalar) else value[0], sql)
    return combine(node, arguments, type, sql)


def combine(node: Node, parts: Sequence[Expr], type: pa.DataType, sql: str) -> Expr:
    """Make an expression of a node over parts: it reads the columns that they read."""
    return Expr(sql, tuple(dict.fromkeys(c for p in parts for c in p.columns)), type, node)


@dataclass(frozen=True)
class Above:
    """A node over named values, each of which is computed once."""

    node: Node
    below: tuple[tuple[str, Node], ...]

    def evaluate(self, columns: Columns, rows: int) -> Value:
        nodes, known = dict(self.below), dict[str, Value]()

        def value(name: str) -> Value:
            if name not in known:
                found = nodes[name].evaluate(columns, rows)
                known[name] = repeated(found, rows) if isinstance(found, pa.Scalar) else found
            return known[name]

        return self.node.evaluate(value, rows)


def composed(value: Expr, below: Mapping[str, Expr]) -> Expr:
    """Return an expression over columns that other expressions compute, as one over what those read."""
    if value.column is not None:
        return below[value.column]
    used = {name: below[name] for name in value.columns}
    node = Above(value.node, tuple((name, e.node) for name, e in used.items()))
    return combine(node, list(used.values()), value.type, value.sql) if used else value


def constant(value: pa.Scalar, sql: str) -> Expr:
    """Make a constant. `sql` must identify value and type, as text that is equal means the same."""
    return Expr(sql, (), value.type, Literal(value))


def no_columns(name: str) -> Column:
    """The columns of a constant: none may be read."""
    raise AssertionError(f"a constant reads {name}")


def compute(*values: Any) -> Value:
    """Call the Arrow kernel whose name is the last argument."""
    *arguments, name = values
    return pc.call_function(name, arguments)


def columnar(kernel: Callable[..., pa.Array]) -> Callable[..., Value]:
    """Let a kernel see contiguous arrays of one length only; for scalars the result is a scalar."""

    @wraps(kernel)
    def whole(*values: Any) -> Value:
        rows = next((len(v) for v in values if isinstance(v, pa.Array | pa.ChunkedArray)), None)
        result = kernel(*(contiguous(v, 1 if rows is None else rows) for v in values))
        return result[0] if rows is None else result

    return whole


def contiguous(value: Any, rows: int) -> Any:
    """Return a value as one array; a scalar is repeated."""
    if isinstance(value, pa.Scalar):
        return repeated(value, rows)
    return value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value
