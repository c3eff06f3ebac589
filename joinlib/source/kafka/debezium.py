"""Debezium's envelopes, as JSON with or without a schema: what happened to which row.

    op     row                                          weight
    c u r  `after` (r: of a snapshot)                   +1: this is now the row of its key
    u      and `before`, if it has another key          -1
    d      the key in `before`, or in the message's key -1
    none   the message's key (a tombstone)              -1: harmless after a d, and all that is left of it in
                                                        a compacted topic
    m      no row: a message of the database's log; so is one that says where a transaction begins or ends
    t      bad: a truncated table does not say which rows it had

Rows that come twice, as those of a snapshot may, are the same row of the same key. Cost: about 4 µs a message
of ten columns; a schema that is like that of the message before costs a comparison of its bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from joinlib.source.changes import Weights
from joinlib.source.kafka.bad import Bad
from joinlib.source.kafka.encodings import Told, column, placeholders, told
from joinlib.source.payloads import Payloads

if TYPE_CHECKING:
    from joinlib.spec.inputs import Debezium

_MASKED = 63  # columns whose values may be said to be missing: the bits of a mask
_SCHEMA, _PAYLOAD = b'{"schema":', b'"payload":'
_NOT_JSON = "is not one JSON object"
_NO_OP = (
    "is no envelope of Debezium: it has no op; for messages of rows alone, as ExtractNewRecordState writes them,"
    " write format: json"
)
_TRUNCATED = (
    "has op t: the table was truncated, which does not say the rows that are gone; begin again with a new"
    " checkpoint and a new snapshot, or let the connector skip it (skipped.operations)"
)
_OPS = "c, u, d, r, t, m"
Object = dict[str, Any]


@dataclass(frozen=True)
class Changed:
    """The rows of messages that change."""

    rows: pa.Table
    counts: list[int]  # rows of each message
    weights: Weights
    masks: Weights  # of each row, the columns whose values were not sent


class _Row(NamedTuple):
    weight: int
    values: Object
    types: Told | None  # what the message's schema says of the columns


@dataclass
class Envelopes:
    """Decodes envelopes of one table to some of its columns."""

    spec: "Debezium"
    declared: pa.Schema  # all columns, whose positions masks mean
    wanted: pa.Schema  # the columns to return
    key: tuple[str, ...]
    _prefix: bytes = field(
        default=b"", init=False
    )  # of the last message that had a schema: all up to its payload
    _types: Told | None = field(default=None, init=False)  # what that schema says
    _whole: Any = field(default=None, init=False)  # that schema
    _key_schema: Any = field(default=None, init=False)  # the same, of messages' keys
    _key_types: Told | None = field(default=None, init=False)

    def decode(self, values: Payloads, keys: Payloads) -> Changed:
        """Return the rows of messages, given their values and keys, in order.

        Raises:
            Bad: A message is no envelope, or a value does not fit its column.
        """
        found: list[_Row] = []
        counts = []
        for value, key in zip(values, keys, strict=True):
            rows = self._rows(value, key)
            if found and rows and found[-1][:2] == rows[0][:2] and rows[0].weight < 0:
                rows = []  # the tombstone behind a d
            found += rows
            counts.append(len(rows))
        rows, masks = self._table(found)
        return Changed(rows, counts, np.array([r.weight for r in found], np.int64), masks)

    def _rows(self, value: bytes | None, key: bytes | None) -> list[_Row]:
        payload, types = self._opened(value) if value is not None else (None, None)
        if payload is None:
            return self._deleted_by_key(key)
        op = payload.get("op")
        if op in ("c", "u", "r"):
            return self._came(payload, types)
        if op == "d":
            return self._went(payload, types) or self._deleted_by_key(key) or self._no_key(payload)
        if op == "m" or (op is None and payload.get("status") in ("BEGIN", "END") and "id" in payload):
            return []
        if op == "t":
            raise Bad(_TRUNCATED)
        raise Bad(_NO_OP if op is None else f"has an unknown op; Debezium's are {_OPS}")

    def _came(self, payload: Object, types: Told | None) -> list[_Row]:
        after, before = payload.get("after"), payload.get("before")
        if not isinstance(after, dict):
            raise Bad(f"has op {payload['op']}, but no row in `after`")
        row = _Row(1, after, types)
        if isinstance(before, dict) and any(before.get(n) != after.get(n) for n in self.key):
            return [*self._went(payload, types), row]
        return [row]

    def _went(self, payload: Object, types: Told | None) -> list[_Row]:
        """Return the deletion of the key in `before`, if that has all of it."""
        before = payload.get("before")
        if not isinstance(before, dict) or any(before.get(n) is None for n in self.key):
            return []
        return [_Row(-1, {n: before[n] for n in self.key}, types)]

    def _deleted_by_key(self, text: bytes | None) -> list[_Row]:
        """Return the deletion of the message's key, if that has all columns of the table's."""
        try:
            key = orjson.loads(text or b"null")
        except orjson.JSONDecodeError:
            return []
        types = None
        if isinstance(key, dict) and key.keys() == {"schema", "payload"}:
            if key["schema"] != self._key_schema:
                self._key_schema, self._key_types = key["schema"], told(key["schema"])
            key, types = key["payload"], self._key_types
        if not isinstance(key, dict) or any(key.get(n) is None for n in self.key):
            return []
        return [_Row(-1, {n: key[n] for n in self.key}, types)]

    def _no_key(self, payload: Object) -> list[_Row]:
        before = payload.get("before")
        there = before if isinstance(before, dict) else {}
        missing = next((n for n in self.key if there.get(n) is None), self.key[0])
        raise Bad(
            f"has op d, but neither `before` nor the message's key has column '{missing}' of upsert.key; name the"
            " table's key there, or set REPLICA IDENTITY FULL for the table"
        )

    def _opened(self, value: bytes) -> tuple[Object | None, Told | None]:
        """Return the envelope, and what its schema says of the columns."""
        if self._prefix and value.startswith(self._prefix) and value.endswith(b"}"):
            try:
                return _object(orjson.loads(value[len(self._prefix) : -1])), self._types
            except orjson.JSONDecodeError:
                pass  # the payload is not the last field
        try:
            whole = _object(orjson.loads(value))
        except orjson.JSONDecodeError:
            raise Bad(_NOT_JSON) from None
        if whole is None or "schema" not in whole or "payload" not in whole:
            return whole, None
        if whole["schema"] != self._whole:
            self._whole, self._types = whole["schema"], told(whole["schema"], "after", "before")
            self._prefix = _prefix(value, self._whole)
        return _object(whole["payload"]), self._types

    def _table(self, found: Sequence[_Row]) -> tuple[pa.Table, Weights]:
        """Return rows, and the mask of each: a bit for each column that was not sent, by its declared position."""
        masks = np.zeros(len(found), np.int64)
        parts, start = [_nullable(self.wanted).empty_table()], 0
        for _, run in groupby(found, lambda row: id(row.types)):
            rows = list(run)
            own = masks[start : start + len(rows)]
            parts.append(pa.table([self._column(f, rows, own) for f in self.wanted], parts[0].schema))
            start += len(rows)
        return pa.concat_tables(parts), masks

    def _column(self, field: pa.Field, rows: Sequence[_Row], masks: Weights) -> pa.Array:
        """Return one column; add its bit to the masks of the rows that lack its value."""
        values = [row.values.get(field.name) for row in rows]
        for missing in self._missing[field.name]:
            if missing in values:
                masks |= np.where(
                    [v == missing for v in values], np.int64(self._bit(field.name)), np.int64(0)
                )
                values = [None if v == missing else v for v in values]
        types = rows[0].types
        return column(field, values, types.get(field.name) if types else None, self.spec.timestamps)

    def _bit(self, name: str) -> int:
        at = self.declared.names.index(name)
        if name in self.key:
            raise Bad(
                f"lacks the value of column '{name}' of upsert.key: it is too large to be sent with each change"
            )
        if at >= _MASKED:
            raise Bad(
                f"lacks the value of column '{name}', which can be said of the first {_MASKED} columns only; write it"
                " nearer to the beginning of the schema"
            )
        return 1 << at

    @cached_property
    def _missing(self) -> dict[str, list[Any]]:
        """What stands in each column for a value that was not sent."""
        return {f.name: placeholders(self.spec.unavailable, f.type) for f in self.wanted}


def _object(value: Any) -> Object | None:
    if value is not None and not isinstance(value, dict):
        raise Bad(_NOT_JSON)
    return value


def _prefix(value: bytes, schema: Any) -> bytes:
    """Return what stands before the payload, if that is the schema and nothing else; otherwise nothing."""
    at = value.find(_PAYLOAD) if value.startswith(_SCHEMA) else -1
    while at >= 0:
        try:
            if orjson.loads(value[:at].rstrip().removesuffix(b",") + b"}") == {"schema": schema}:
                return value[: at + len(_PAYLOAD)]
        except orjson.JSONDecodeError:
            pass  # a field of the table is called payload
        at = value.find(_PAYLOAD, at + 1)
    return b""


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([f.with_nullable(True) for f in schema])
