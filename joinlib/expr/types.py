"""Finds the common type of two SQL values, over Arrow types:

    TINYINT int8 · SMALLINT int16 · INT int32 · BIGINT int64 · FLOAT · DOUBLE · DECIMAL decimal128 · BOOLEAN
    STRING · BINARY · DATE date32 · TIMESTAMP timestamp(us, UTC) · TIMESTAMP_NTZ timestamp(us)
    INTERVAL duration(us)

Law: Spark's ANSI coercion.
"""

import pyarrow as pa
from pyarrow import types as t

BOOLEAN, STRING, BINARY, DATE = pa.bool_(), pa.string(), pa.binary(), pa.date32()
TINYINT, SMALLINT, INT, BIGINT = pa.int8(), pa.int16(), pa.int32(), pa.int64()
FLOAT, DOUBLE = pa.float32(), pa.float64()
TIMESTAMP, TIMESTAMP_NTZ = pa.timestamp("us", "UTC"), pa.timestamp("us")
INTERVAL, NULL = pa.duration("us"), pa.null()
MAX_PRECISION, MIN_KEPT_SCALE = 38, 6

_NAMES = {
    TINYINT: "TINYINT", SMALLINT: "SMALLINT", INT: "INT", BIGINT: "BIGINT", FLOAT: "FLOAT", DOUBLE: "DOUBLE",
    BOOLEAN: "BOOLEAN", STRING: "STRING", pa.large_string(): "STRING", BINARY: "BINARY", pa.large_binary(): "BINARY",
    DATE: "DATE", TIMESTAMP: "TIMESTAMP", TIMESTAMP_NTZ: "TIMESTAMP_NTZ", INTERVAL: "INTERVAL", NULL: "VOID",
}  # fmt: skip
_INTEGERS = (TINYINT, SMALLINT, INT, BIGINT)
_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}
NAMES = {name: kind for kind, name in reversed(_NAMES.items())}


def name(kind: pa.DataType) -> str:
    """Return the SQL name of a type."""
    if t.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if t.is_struct(kind):
        return "STRUCT"
    if t.is_map(kind):
        return "MAP"
    if t.is_list(kind) or t.is_large_list(kind):
        return "ARRAY"
    return _NAMES.get(kind, str(kind).upper())


def spelled(kind: pa.DataType) -> str:
    """Return the whole name of a type as Spark's typeof() writes it: array<struct<a:int>>."""
    inner = [spelled(part) for part in parts(kind)]
    if t.is_struct(kind):
        return f"struct<{','.join(f'{f.name}:{one}' for f, one in zip(kind, inner))}>"
    if t.is_map(kind) or t.is_list(kind):
        return f"{'map' if t.is_map(kind) else 'array'}<{','.join(inner)}>"
    return "interval day to second" if kind == INTERVAL else name(kind).lower()


def is_integer(kind: pa.DataType) -> bool:
    return kind in _INTEGERS


def is_float(kind: pa.DataType) -> bool:
    return kind in (FLOAT, DOUBLE)


def is_decimal(kind: pa.DataType) -> bool:
    return bool(t.is_decimal128(kind))


def is_number(kind: pa.DataType) -> bool:
    return is_integer(kind) or is_float(kind) or is_decimal(kind)


def is_string(kind: pa.DataType) -> bool:
    return kind in (STRING, pa.large_string())


def is_text(kind: pa.DataType) -> bool:
    return is_string(kind) or kind == BINARY


def is_timestamp(kind: pa.DataType) -> bool:
    return kind in (TIMESTAMP, TIMESTAMP_NTZ)


def is_time(kind: pa.DataType) -> bool:
    return kind == DATE or is_timestamp(kind)


def is_struct(kind: pa.DataType) -> bool:
    return bool(t.is_struct(kind))


def is_list(kind: pa.DataType) -> bool:
    return bool(t.is_list(kind))


def is_map(kind: pa.DataType) -> bool:
    return bool(t.is_map(kind))


def is_nested(kind: pa.DataType) -> bool:
    return bool(t.is_nested(kind))


def parts(kind: pa.DataType) -> list[pa.DataType]:
    """Return the types within a nested type: of fields, elements, or keys and values."""
    if t.is_map(kind):
        return [kind.key_type, kind.item_type]
    if t.is_struct(kind):
        return [f.type for f in kind]
    return [kind.value_type] if t.is_list(kind) else []


def decimal(precision: int, scale: int) -> pa.DataType:
    """DECIMAL(precision, scale), reduced to 38 digits as Spark does:
    integral digits first, 6 decimals are kept.
    """
    if precision > MAX_PRECISION:
        whole = precision - scale
        scale = max(MAX_PRECISION - whole, min(scale, MIN_KEPT_SCALE))
        precision = MAX_PRECISION
    return pa.decimal128(precision, scale)


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """Return the decimal type that holds every value of an integer type."""
    return kind if is_decimal(kind) else pa.decimal128(_DIGITS[kind], 0)


def widest_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The decimal type that holds both; if there is none, one of 38
    digits with all digits before the point.
    """
    left, right = as_decimal(left), as_decimal(right)
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return pa.decimal128(min(whole + scale, MAX_PRECISION), min(scale, MAX_PRECISION - whole))


def widest_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The common type of two numeric types: DOUBLE for BIGINT and FLOAT, and for DECIMAL and DOUBLE."""
    if left == right:
        return left
    if is_float(left) or is_float(right):
        return DOUBLE
    if is_decimal(left) or is_decimal(right):
        return widest_decimal(left, right)
    return max(left, right, key=_INTEGERS.index)


def exact(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The common type without parsing strings, for keys, CASE branches and
    comparisons; None if they have none.
    """
    if left == right or right == NULL:
        return left
    if left == NULL:
        return right
    if is_nested(left) or is_nested(right):
        return _common_parts(left, right)
    if is_number(left) and is_number(right):
        return widest_number(left, right)
    if is_timestamp(left) and is_timestamp(right):
        return TIMESTAMP
    if is_string(left) and is_string(right):
        return STRING
    return None


def _common_parts(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    kinds = [common(a, b) for a, b in zip(parts(left), parts(right))]
    if type(left) is not type(right) or len(parts(left)) != len(parts(right)) or None in kinds:
        return None
    if t.is_map(left):
        return pa.map_(*kinds)
    if is_struct(left):
        return pa.struct([f.with_type(kind).with_nullable(True) for f, kind in zip(left, kinds)])
    return pa.list_(kinds[0]) if t.is_list(left) else None


def common(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The common type, with strings parsed as the other type and dates as midnights; None
    if they have none.
    """
    found = exact(left, right)
    if found is not None:
        return found
    if is_time(left) and is_time(right):
        return left if is_timestamp(left) else right
    for text, other in ((left, right), (right, left)):
        if is_string(text) and not is_nested(other) and other not in (INTERVAL, BINARY):
            return BIGINT if is_integer(other) else DOUBLE if is_number(other) else other
    return None
