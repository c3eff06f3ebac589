"""Texts of values become columns of the declared types. Law: a value is the one that a SELECT gives.

    messages ──where and how long──► a column of texts ──cast──► a column of its type

The texts are those of pgoutput in a session with UTC, ISO dates and hexadecimal bytes. Where PostgreSQL's cast
to text is not the text of the value (blanks after a char(n), true for t, the mask of an inet), the cast counts,
as in the snapshot and in lookups. Errors name the column and never a value.
"""

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from joinlib.arrays import I64
from joinlib.errors import InputError
from joinlib.source.places import MOST, check_all
from joinlib.source.postgres import wire

BOOL, BYTES, CHAR, INET = 16, 17, 1042, 869  # numbers of types, which are the same in every database
_NUMBERS = {21: pa.int16(), 23: pa.int32(), 20: pa.int64(), 700: pa.float32(), 701: pa.float64()}
_TIMES = {1082: pa.date32(), 1114: pa.timestamp("us"), 1184: pa.timestamp("us", "UTC")}
NUMERIC = 1700
PLAIN = {**_NUMBERS, **_TIMES, BOOL: pa.bool_(), BYTES: pa.binary()}
_ELEMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)')


@dataclass(frozen=True)
class Values:
    """The values of one column: where they begin in the messages, and how long they are."""

    raw: wire.U8
    begins: I64
    lengths: I64


def column(place: str, field: pa.Field, kind: int, values: Values) -> pa.Array:
    """Return a column.

    Args:
        place: Whose it is, for errors.
        field: Its name and declared type.
        kind: The number of its type in the database, that of the base for a domain.
        values: Its values.

    Raises:
        InputError: A value does not fit the type.
    """
    try:
        return _typed(field.type, kind, values)
    except (pa.ArrowException, ValueError):  # the cause would hold a value of a row
        raise InputError(
            f"{place}: column '{field.name}' holds a value that does not fit {field.type}; declare a type that"
            " holds all its values (NaN and infinity fit no DECIMAL, infinity fits no time)"
        ) from None


def _typed(want: pa.DataType, kind: int, values: Values) -> pa.Array:
    if pt.is_binary(want):
        return _bytes(values)
    if kind == BOOL:
        true = pc.equal(_texts(values), "t")
        return pc.cast(true, want)
    if pt.is_string(want):
        return _as_cast(kind, values)
    if pt.is_list(want):
        return _lists(_texts(values), want)
    if pt.is_timestamp(want) and want.tz is not None and kind == 1184:
        return _texts(values, cut=len("+00")).cast(pa.timestamp("us")).cast(want)
    if pt.is_timestamp(want) and want.tz is not None:
        return _texts(values).cast(pa.timestamp("us")).cast(want)
    texts = _texts(values)
    if pt.is_decimal(want) and (values.lengths > MOST).any():
        check_all(texts)
    return texts.cast(want)


def _as_cast(kind: int, values: Values) -> pa.Array:
    """Return texts as PostgreSQL's cast gives them."""
    if kind == CHAR:
        wire.trimmed(values.raw, values.begins, values.lengths)
    texts = _texts(values)
    if kind != INET:
        return texts
    masked = pc.match_substring(texts, "/")
    mask = pc.if_else(pc.match_substring(texts, ":"), "/128", "/32")
    return pc.if_else(masked, texts, pc.binary_join_element_wise(texts, mask, ""))


def _texts(values: Values, cut: int = 0) -> pa.Array:
    """Return the texts of values, each without its last `cut` bytes."""
    offsets = wire.ends(values.lengths, cut)
    out = np.empty(int(offsets[-1]), np.uint8)
    wire.copied(values.raw, values.begins, offsets, out)
    return _array(offsets, out, values.lengths).cast(pa.string())  # checks that it is UTF-8


def _bytes(values: Values) -> pa.Array:
    sizes = np.maximum(values.lengths, 2) // 2 - 1
    offsets = wire.ends(sizes, 0)
    out = np.empty(int(offsets[-1]), np.uint8)
    if not wire.unhexed(values.raw, values.begins, values.lengths, offsets, out):
        raise ValueError
    return _array(offsets, out, values.lengths)


def _array(offsets: I64, data: wire.U8, lengths: I64) -> pa.Array:
    known = np.packbits(lengths >= 0, bitorder="little")
    buffers = [pa.py_buffer(known), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(lengths), buffers).cast(pa.binary())


def _lists(texts: pa.Array, want: pa.DataType) -> pa.Array:
    """Return arrays of one dimension, such as {1,NULL,"a b"}, value by value: they are rare."""
    found = [None if text is None else _elements(text) for text in texts.to_pylist()]
    listed = pa.array(found, pa.list_(pa.string()))
    flat, inner = listed.values, want.value_type
    if pt.is_boolean(inner):
        plain = pc.equal(flat, "t")
    elif pt.is_timestamp(inner):
        plain = pc.replace_substring_regex(flat, r"\+00$", "").cast(pa.timestamp("us")).cast(inner)
    else:
        if pt.is_decimal(inner):
            check_all(flat)
        plain = flat.cast(inner)
    return pa.ListArray.from_arrays(listed.offsets, plain, mask=pc.is_null(listed)).cast(want)


def _elements(text: str) -> list[str | None]:
    if not (text.startswith("{") and text.endswith("}")) or "{" in re.sub(r'"(?:[^"\\]|\\.)*"', "", text[1:]):
        raise ValueError  # more than one dimension, or bounds of its own
    return [
        re.sub(r"\\(.)", r"\1", found[1]) if found[2] is None else None if found[2] == "NULL" else found[2]
        for found in _ELEMENT.finditer(text, 1, len(text) - 1)
    ]
