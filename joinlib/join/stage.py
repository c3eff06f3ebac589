"""What a stage does (inputs, a tree of joins, a select list). Frozen and picklable."""

from dataclasses import dataclass

import pyarrow as pa

from joinlib.expr import Expr
from joinlib.join.config import Join
from joinlib.route.config import InputPlan


@dataclass(frozen=True)
class OutputColumn:
    """One column of the result: its name in the select list and its value over the stored columns."""

    name: str
    value: Expr


@dataclass(frozen=True)
class Stage:
    """What one stateful operator does."""

    inputs: tuple[InputPlan, ...]
    tree: Join
    select: tuple[OutputColumn, ...]
    timed: bool  # state or outer rows depend on the watermark: rows behind it are late
    final_close: bool  # an outer or anti join is in the tree: closing the inputs is final
    units: int  # power of two

    @property
    def schema(self) -> pa.Schema:
        """Schema of the result."""
        return pa.schema([pa.field(c.name, c.value.type) for c in self.select])
