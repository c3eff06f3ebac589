"""Which columns of a table are read by SELECT, and as which types. Arrow in, Arrow out (ADBC)."""

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.expr.types import name as type_name
from joinlib.postgres.connection import quoted
from joinlib.source.fit import fits, fitted


def listed(schema: pa.Schema) -> str:
    """Return the select list: texts are cast to text, whatever their type is there (uuid, json, enums)."""
    columns = [
        f"{quoted(f.name)}::text AS {quoted(f.name)}" if f.type == pa.string() else quoted(f.name)
        for f in schema
    ]
    return ", ".join(columns) or "NULL"


def check_columns(place: str, what: str, have: pa.Schema, want: pa.Schema) -> None:
    """Check that a table has the declared columns, with types whose values fit.

    Raises:
        SpecError: It does not.
    """
    for field in want:
        if field.name not in have.names:
            raise SpecError(f"{place}: {what} has no column {field.name!r}; it has {', '.join(have.names)}")
        kind = have.field(field.name).type
        if not _readable(kind, field.type):
            known = (have.field(field.name).metadata or {}).get(b"POSTGRESQL:type", b"").decode()
            raise SpecError(
                f"{place}: column {field.name!r} is {known or kind} in the database, declared as"
                f" {type_name(field.type)}; declare a type that holds all its values"
            )


def conform(place: str, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows of a SELECT with the columns and types of the schema."""
    if not len(schema):
        return batch.select([])
    arrays = [_plain(batch.column(f.name), f.type) for f in schema]
    return fitted(place, pa.record_batch(arrays, schema.names), schema)


def _readable(have: pa.DataType, want: pa.DataType) -> bool:
    if want == pa.string() or fits(have, want):
        return True
    return isinstance(have, pa.OpaqueType) and have.type_name == "numeric" and pa.types.is_decimal(want)


def _plain(column: pa.Array, want: pa.DataType) -> pa.Array:
    """Convert a column to the declared type where the driver returns text for it, as for NUMERIC."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_decimal(want) and pa.types.is_string(column.type):
        try:
            return pc.cast(column, want)
        except pa.ArrowInvalid:
            raise SpecError(
                f"a NUMERIC does not fit {type_name(want)}; declare more digits (NaN and infinity fit none)"
            ) from None
    return column
