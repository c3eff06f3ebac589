"""What does an expression say of these columns? Law: what Spark SQL (ANSI mode, UTC) says, for whole columns.

`Expr` is all that the engine knows of SQL: a typed, picklable function from columns to a column.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

Column: TypeAlias = pa.Array | pa.ChunkedArray
# Qualified name -> column; every column of one call has the same length.
Columns: TypeAlias = Callable[[str], Column]
_TOLD = 100  # characters


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
        """Value for every row; a scalar is repeated. Raises SpecError where ANSI SQL raises (overflow, bad cast)."""
        value = self.node.evaluate(columns, rows)
        if isinstance(value, pa.Scalar):
            return pa.repeat(value, rows)
        return value

    @property
    def told(self) -> str:
        """Its text in messages, cut where it gets long."""
        return self.sql if len(self.sql) <= _TOLD else f"{self.sql[:_TOLD]}..."

    @property
    def column(self) -> str | None:
        """The one column this expression merely names, if it does."""
        return self.columns[0] if isinstance(self.node, Ref) else None


@dataclass(frozen=True)
class Ref:
    """A column by its qualified name."""

    name: str

    def evaluate(self, columns: Columns, rows: int) -> Column:
        return columns(self.name)


def ref(name: str, type: pa.DataType) -> Expr:
    """The expression that names a column."""
    return Expr(name, (name,), type, Ref(name))
