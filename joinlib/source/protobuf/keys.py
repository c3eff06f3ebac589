"""Which columns are in a key, which is a message: it is read to columns of its fields, and these to what is wanted.

{a, b}         ──►  k: {a, b}    a STRUCT column
{a}            ──►  k: a         a single column of another type, of any name
{a, b}         ──►  a, b         columns, by the names of the fields
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt
from google.protobuf.descriptor import Descriptor

from joinlib.errors import InputError
from joinlib.source.protobuf.columns import ProtobufRows
from joinlib.source.protobuf.program import tables


@dataclass(frozen=True)
class ProtobufKeys:
    """Reads keys of one writer's type to columns."""

    rows: ProtobufRows  # to the columns of the fields
    want: pa.Schema

    def table(self, values: Sequence[bytes | None], header: int = 0) -> pa.Table:
        """Return what `ProtobufRows.table` returns, and raise what it raises."""
        found = self.rows.table(values, header)
        if not _is_whole(self.want):
            return found.rename_columns(self.want.names)
        parts = [column.combine_chunks() for column in found.columns]
        whole = pa.StructArray.from_arrays(parts, fields=list(self.want.field(0).type))
        return pa.table([whole], self.want.names)


def keys_of(writer: Descriptor, want: pa.Schema, reader: Descriptor) -> ProtobufKeys:
    """Compile how keys become columns.

    Args:
        writer: The type that keys are written with.
        want: The columns, one at least.
        reader: The reader's type, whose fields are the columns.

    Raises:
        InputError: There are columns that they cannot have; the message names one.
    """
    if writer.full_name != reader.full_name:
        raise InputError(
            f"it is a {writer.full_name}, but the columns are those of a {reader.full_name}; have the keys of a topic be"
            " of one type"
        )
    fields = _fields(writer, want, reader)
    return ProtobufKeys(ProtobufRows(tables(writer, fields, reader), fields.names), want)


def _is_whole(want: pa.Schema) -> bool:
    """Return whether a single column takes all of a key."""
    return len(want) == 1 and bool(pt.is_struct(want.field(0).type))


def _fields(writer: Descriptor, want: pa.Schema, reader: Descriptor) -> pa.Schema:
    """Return the columns by the names of the fields that they are read from."""
    if _is_whole(want):
        return pa.schema(list(want.field(0).type))
    if len(want) == 1 and len(reader.fields) == 1:
        return pa.schema([want.field(0).with_name(reader.fields[0].name)])
    there = [field.name for field in reader.fields]
    known = {*there, *writer.fields_by_name}
    missing = next((name for name in want.names if name not in known), None)
    if missing is not None:
        raise InputError(
            f"{reader.full_name} has no field '{missing}'; its fields are {', '.join(there)}: name the columns of keys like"
            " them, or let metadata.key be a STRUCT of them"
        )
    return want
