"""Which schema do result rows have in Avro? A record of the result's columns, each of which may be null.

INT and shorter   int              DATE            int, date                  ARRAY    array
BIGINT            long             TIMESTAMP       long, timestamp-micros     MAP      map, of text
FLOAT, DOUBLE     float, double    TIMESTAMP_NTZ   local-timestamp-micros     STRUCT   record
BOOLEAN, STRING   boolean, string  DECIMAL         bytes, decimal             BINARY   bytes

Every column has null as its default, so that a column more or less is a change that readers can follow.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from joinlib.errors import SpecError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INT_BITS = 32


def schema_of(columns: pa.Schema, name: str) -> str:
    """Return the schema of rows with these columns, as JSON. `name`: the full name of the record.

    Raises:
        SpecError: A column has a name or a type that Avro does not have.
    """
    return json.dumps(_record([*columns], name, ""))


def record_name(topic: str) -> str:
    """Return a name for the record of a topic's messages."""
    found = re.sub(r"[^A-Za-z0-9_]", "_", topic)
    return found if _NAME.fullmatch(found) else f"_{found}"


def _record(fields: list[pa.Field], name: str, place: str) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [_field(f, name, place) for f in fields]}


def _field(field: pa.Field, record: str, place: str) -> dict[str, Any]:
    where = f"{place}.{field.name}" if place else field.name
    if not _NAME.fullmatch(field.name):
        raise SpecError(
            f"output.kafka.format: avro has no name like that of column {where!r}; give it one of letters, digits and"
            " _ (AS)"
        )
    return {
        "name": field.name,
        "type": _nullable(field.type, f"{record}_{field.name}", where),
        "default": None,
    }


def _nullable(kind: pa.DataType, name: str, where: str) -> list[Any]:
    return ["null", "string" if t.is_null(kind) else _type(kind, name, where)]


def _type(kind: pa.DataType, name: str, where: str) -> Any:
    """Return the type of a value. `name`: what a record is called that is needed for it."""
    if t.is_struct(kind):
        return _record([*kind], name, where)
    if t.is_map(kind):
        if not t.is_string(kind.key_type):
            raise _impossible(where, f"a map by {kind.key_type}")
        return {"type": "map", "values": _nullable(kind.item_type, name, where)}
    if t.is_list(kind):
        return {"type": "array", "items": _nullable(kind.value_type, name, where)}
    found = next((made(kind) for is_one, made in _SIMPLE if is_one(kind)), None)
    if found is None:
        raise _impossible(where, str(kind))
    return found


def _decimal(kind: pa.DataType) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}


def _timestamp(kind: pa.DataType) -> dict[str, Any]:
    return {"type": "long", "logicalType": f"{'' if kind.tz else 'local-'}timestamp-micros"}


_SIMPLE: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], Any]], ...] = (
    (t.is_decimal, _decimal),
    (t.is_timestamp, _timestamp),
    (t.is_date32, lambda _: {"type": "int", "logicalType": "date"}),
    (t.is_signed_integer, lambda kind: "int" if kind.bit_width <= _INT_BITS else "long"),
    (t.is_boolean, lambda _: "boolean"),
    (t.is_float32, lambda _: "float"),
    (t.is_float64, lambda _: "double"),
    (t.is_string, lambda _: "string"),
    (t.is_binary, lambda _: "bytes"),
)


def _impossible(where: str, what: str) -> SpecError:
    return SpecError(
        f"output.kafka.format: avro has no type for column {where!r}, which is {what}; leave it out, or CAST it"
    )
