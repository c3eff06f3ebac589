"""Which columns are in a key: it becomes a record that has them, which costs no byte, since a record adds none.

string         ──►  {k: string}    the column k
{a, b}         ──►  {k: {a, b}}    a STRUCT column
{a}            ──►  {k: a}         a single column of another type
{a, b}         ──►  {a, b}         columns, by the names of the fields
"""

from dataclasses import replace

import pyarrow as pa
import pyarrow.types as pt

from joinlib.errors import InputError
from joinlib.source.avro.schema import AvroField, AvroType


def as_record(key: AvroType, want: pa.Schema, reader: AvroType | None = None) -> AvroType:
    """Return a key's type as a record that is written alike.

    Args:
        key: The type that keys are written with.
        want: The columns, one at least.
        reader: The reader's type, which may know fields that the key lacks.

    Raises:
        InputError: There are columns that it cannot have; the message names one.
    """
    alone = want.field(0) if len(want) == 1 else None
    if alone is not None and (key.kind != "record" or pt.is_struct(alone.type)):
        return AvroType("record", name=alone.name, fields=(AvroField(alone.name, key),))
    if key.kind != "record":
        named = ", ".join(want.names)
        raise InputError(
            f"is {key.words}, which is one column, and not {named}; have keys be a record of them"
        )
    if alone is not None and len(key.fields) == 1:
        return replace(key, fields=(replace(key.fields[0], name=alone.name),))
    _check_names(key, want, reader)
    return key


def _check_names(key: AvroType, want: pa.Schema, reader: AvroType | None) -> None:
    """Check that each column is a field of the key, or of the reader's, from which it may have a default."""
    there = [f.name for f in key.fields]
    known = {*there, *(f.name for f in (reader.fields if reader else ()))}
    missing = next((name for name in want.names if name not in known), None)
    if missing is not None:
        raise InputError(
            f"is {key.words}, which has no field '{missing}'; its fields are {', '.join(there)}: name the columns of"
            " keys like them, or let metadata.key be a STRUCT of them"
        )
