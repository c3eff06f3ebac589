"""Inputs whose rows change: which column says what a row is, and which columns name a row."""

from collections.abc import Sequence
from typing import Literal

import pyarrow as pa
from pydantic import Field

from joinlib.spec.base import Model
from joinlib.spec.nearest import hint

OnUnknownDelete = Literal["fail", "skip"]


class Changes(Model):
    """A column that says of each row whether it came or went."""

    op: str = Field(
        description="The column with the operation, STRING or a whole number; SQL does not see it. A row came"
        " with insert, update_postimage, I, U+, +I, +U, +1 or 1; it went with delete, update_preimage, D, U-,"
        " -D, -U or -1."
    )
    on_unknown_delete: OnUnknownDelete = Field(
        default="fail",
        description="What happens with the deletion of a row that is not there: fail stops the job, skip"
        " leaves it out and counts it. With upsert it is always left out.",
    )


class Upsert(Model):
    """The columns that name a row: the last row of each key is the one that counts."""

    key: tuple[str, ...] = Field(description="The columns of the key. They are never NULL.")


def op_fault(op: str, schema: pa.Schema) -> str | None:
    """Return why a column cannot hold the operation, with the mend; None if it can."""
    if op not in schema.names:
        return f"no column {op!r} in the schema; {hint(op, schema.names, 'columns')}"
    kind = schema.field(op).type
    if not (pa.types.is_string(kind) or pa.types.is_integer(kind)):
        return f"column {op!r} is {kind}; declare it as STRING, or as a whole number of 1 and -1"
    if len(schema) == 1:
        return f"column {op!r} is the only one; add the columns of the rows to the schema"
    return None


def key_fault(key: Sequence[str], op: str | None, schema: pa.Schema) -> str | None:
    """Return why columns cannot be the key of an upsert, with the mend; None if they can."""
    if not key:
        return "names no column; write the columns that name a row, such as [id]"
    if len(set(key)) < len(key):
        return "names a column twice; remove one"
    for name in key:
        if name == op:
            return f"column {name!r} holds the operation; name the columns that name a row"
        if name not in schema.names:
            return f"no column {name!r} in the schema; {hint(name, schema.names, 'columns')}"
        if pa.types.is_nested(kind := schema.field(name).type):
            return f"column {name!r} is {kind}; a key needs columns of plain values"
    return None
