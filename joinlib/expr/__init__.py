"""What is the value of an expression? Law: what Spark SQL computes (ANSI mode, UTC), for whole columns.

`Expr` is all that the engine knows of SQL: a typed, picklable function from columns to a column.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

Column: TypeAlias = pa.Array | pa.ChunkedArray
# Qualified name -> column; every column of one call has the same length.
Columns: TypeAlias = Callable[[str], Column]
_EXCERPT = 100  # characters of an expression in a message


def repeated(value: pa.Scalar, rows: int) -> pa.Array:
    """A column of one value; Arrow cannot repeat a list no times."""
    return pa.repeat(value, rows) if rows else pa.array([], value.type)


class Node(Protocol):
    """A node of an expression tree: a frozen, picklable value."""

    def evaluate(self, columns: Columns, rows: int) -> Column | pa.Scalar: ...


@dataclass(frozen=True)
class Expr:
    """A typed expression over qualified columns ("o.amount")."""

    sql: str  # canonical text: equal text, equal meaning; part of a checkpoint's fingerprint
    columns: tuple[str, ...]  # what it reads, each once
    type: pa.DataType
    node: Node

    def evaluate(self, columns: Columns, rows: int) -> Column:
        """Return the value for every row; a scalar is repeated.

        `columns` returns a column by its qualified name, and `rows` is the length of all columns.

        Raises:
            SpecError: where ANSI SQL raises (overflow, bad cast).
        """
        value = self.node.evaluate(columns, rows)
        if isinstance(value, pa.Scalar):
            return repeated(value, rows)
        return value

    @property
    def excerpt(self) -> str:
        """The text for messages, cut to 100 characters."""
        return self.sql if len(self.sql) <= _EXCERPT else f"{self.sql[:_EXCERPT]}..."

    @property
    def column(self) -> str | None:
        """The name of the column if the expression is just a column; else None."""
        return self.columns[0] if isinstance(self.node, Ref) else None


@dataclass(frozen=True)
class Ref:
    """A column by its qualified name."""

    name: str

    def evaluate(self, columns: Columns, rows: int) -> Column:
        return columns(self.name)


def ref(name: str, type: pa.DataType) -> Expr:
    """Return the expression that reads a column."""
    return Expr(name, (name,), type, Ref(name))
