"""Message keys as columns: the key columns of an upsert, which say what a message without a value deletes.

    {"id": 7, "part": "x"}    a JSON object with the columns
    [7, "x"]                  a JSON array of several columns, in the order of upsert.key
    7                         the plain text of a single column

The last two are what `output.kafka.key` writes. A single column of text is taken as it is, unless the key is an
object that has the column. Keys in Avro and Protobuf are read by their schemas, whatever columns are wanted of them.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from joinlib.source.kafka.bad import Bad
from joinlib.source.parse import PARSE_ERRORS, json_table, timed
from joinlib.source.payloads import Payloads
from joinlib.source.places import check_all

if TYPE_CHECKING:
    from joinlib.source.kafka.framed import Framed

_NONE = "has neither a value nor a key, so it does not say what it deletes"


@dataclass(frozen=True)
class FramedKeys:
    """Reads keys whose schemas are in a registry."""

    framed: "Framed"

    def columns(self, keys: Payloads, want: pa.Schema) -> pa.Table:
        """Return what `key_columns` returns, and raise what it raises."""
        if not keys.there.all():
            raise Bad(_NONE)
        return self._table(keys, want)

    def column(self, keys: Payloads, field: pa.Field) -> pa.ChunkedArray:
        """Return keys as a column, which is NULL where there is no key.

        Raises:
            Bad: A key cannot be read.
        """
        there = keys.there
        if not there.any():
            return pa.chunked_array([pa.nulls(len(keys), field.type)])
        found = self._table(keys.take(there), pa.schema([field])).column(0)
        return found if there.all() else found.take(pa.array(np.cumsum(there) - 1, mask=~there))

    def _table(self, keys: Payloads, want: pa.Schema) -> pa.Table:
        try:
            return self.framed.table(keys, want)
        except Bad as error:
            raise Bad(f"key: {error}") from None


def key_columns(keys: Payloads, want: pa.Schema) -> pa.Table:
    """Return the key columns that messages' keys stand for, one row for each; `want` has them in order.

    Raises:
        Bad: A key is missing, or does not fit the columns.
    """
    if not keys.there.all():
        raise Bad(_NONE)
    objects = [_object(key or b"", want) for key in keys]
    try:
        if None not in objects:
            return json_table(b"\n".join(o for o in objects if o), want)
        if len(want) == 1:
            return _mixed(keys, objects, want)
    except PARSE_ERRORS:
        pass  # its text would hold the key
    named = ", ".join(f"'{f.name}' {f.type}" for f in want)
    raise Bad(f"deletes by a key that is not the text, JSON array or JSON object of upsert.key, {named}")


def _object(key: bytes, want: pa.Schema) -> bytes | None:
    """Return the key as a line of JSON; None if it is plain text."""
    if key[:1] == b"{":
        found = _loaded(key, orjson.loads)
        if isinstance(found, dict) and all(n in found for n in want.names):
            return key.replace(b"\n", b" ").replace(b"\r", b" ")  # one line; in JSON they are white space
    if key[:1] == b"[" and not (len(want) == 1 and _textual(want.field(0).type)):
        found = _loaded(key, _exactly if any(pt.is_decimal(f.type) for f in want) else orjson.loads)
        if isinstance(found, list) and len(found) == len(want):
            return _loaded(dict(zip(want.names, found, strict=True)), orjson.dumps)
    return None


def _exactly(key: bytes) -> Any:
    """Return JSON with decimals, and numbers of more than 64 bits, as they are written: a float would round them."""
    return json.loads(key, parse_float=str, parse_int=_integer)


def _integer(text: str) -> int | str:
    return value if -(2**63) <= (value := int(text)) < 2**63 else text


def _loaded(what: Any, read: Callable[[Any], Any]) -> Any:
    """Return what is read from JSON, or written to it; None if it is none, or nested without end."""
    try:
        return read(what)
    except (ValueError, TypeError, RecursionError):
        return None


def _mixed(keys: Payloads, objects: Sequence[bytes | None], want: pa.Schema) -> pa.Table:
    """Return a single column of which some keys are the plain text."""
    field = want.field(0)
    texts = pa.array([key if o is None else None for key, o in zip(keys, objects, strict=True)], pa.binary())
    lines = b"\n".join(b"{}" if o is None else o for o in objects)
    return pa.table([pc.coalesce(_texts(texts, field.type), json_table(lines, want).column(0))], want)


def _texts(texts: pa.BinaryArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if pt.is_binary(kind):
        return texts
    plain = pc.cast(texts, pa.string())
    if pt.is_decimal(kind):
        check_all(plain)
    return timed(pa.chunked_array([plain]), kind) if pt.is_temporal(kind) else pc.cast(plain, kind)


def _textual(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_binary(kind))
