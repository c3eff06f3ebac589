"""Functions that are written for one row, in plain Python; about 1 µs for each distinct value.

Law: the same as a kernel over columns: NULL in, NULL out (unless it is `lenient`), and nothing but the values counts.

A row's values are plain: str, int, float, bool, bytes, Decimal; list (ARRAY), dict (STRUCT), list of pairs (MAP).
Times are whole numbers: days of a DATE, microseconds of a TIMESTAMP or INTERVAL.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from joinlib.expr.nodes import NoValueError, Value

__all__ = ["NoValueError", "Rule", "built", "by_rows", "numbered", "plain"]


@dataclass(frozen=True)
class Rule:
    """A function of one row, which is at the top level of a module so that it pickles."""

    of: Callable[..., Any]
    kind: pa.DataType
    lenient: bool = False  # it is asked for NULLs too
    more: tuple[Hashable, ...] = ()  # arguments after the row's values


def by_rows(*given: Any) -> Value:
    """The kernel: values, then the rule."""
    *values, rule = given
    columns = [v for v in values if not isinstance(v, pa.Scalar)]
    if not columns:
        return built([_one(rule, [plain(v) for v in values])], rule.kind)[0]
    if len(columns) == 1 and (encoded := _encoded(columns[0])) is not None:
        at = next(i for i, v in enumerate(values) if not isinstance(v, pa.Scalar))
        several = [_column(encoded.dictionary) if i == at else plain(v) for i, v in enumerate(values)]
        known = built(_each(rule, several, len(encoded.dictionary), {at}), rule.kind)
        found = known.take(encoded.indices)
        if not rule.lenient or not encoded.null_count:
            return found
        none = _one(rule, [None if i == at else v for i, v in enumerate(several)])
        return found.fill_null(built([none], rule.kind)[0]) if none is not None else found
    many = {i for i, v in enumerate(values) if not isinstance(v, pa.Scalar)}
    each = [_column(v) if i in many else plain(v) for i, v in enumerate(values)]
    return built(_each(rule, each, len(columns[0]), many), rule.kind)


def _each(rule: Rule, values: list[Any], rows: int, many: set[int]) -> list[Any]:
    """Ask the rule for each row; the places in `many` hold lists, the others one value for all rows."""
    if not rule.lenient and any(v is None for i, v in enumerate(values) if i not in many):
        return [None] * rows
    lists = [v if i in many else [v] * rows for i, v in enumerate(values)]
    return [_one(rule, row) for row in zip(*lists)]


def _one(rule: Rule, row: Sequence[Any]) -> Any:
    if not rule.lenient and None in row and any(v is None for v in row):
        return None
    return rule.of(*row, *rule.more)


def _encoded(column: pa.Array | pa.ChunkedArray) -> pa.DictionaryArray | None:
    """Return the distinct values of a column; None if its type has no such encoding."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_nested(whole.type) or pa.types.is_null(whole.type):
        return None
    return whole.dictionary_encode()


def plain(value: pa.Scalar) -> Any:
    """Return a scalar as a plain value."""
    return _column(pa.array([value.as_py()], value.type) if not _timed(value.type) else _repeated(value))[0]


def _repeated(value: pa.Scalar) -> pa.Array:
    return pa.repeat(value, 1)


def _column(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    return column.cast(numbered(column.type)).to_pylist() if _timed(column.type) else column.to_pylist()


def _timed(kind: pa.DataType) -> bool:
    return numbered(kind) != kind


def numbered(kind: pa.DataType) -> pa.DataType:
    """Return the type in which times are numbers."""
    if kind == pa.date32():
        return pa.int32()
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(numbered(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(numbered(f.type)) for f in kind])
    if pa.types.is_map(kind):
        item = kind.item_field.with_type(numbered(kind.item_type))
        return pa.map_(kind.key_field.with_type(numbered(kind.key_type)), item)
    return kind


def built(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Make a column of plain values."""
    numbers = numbered(kind)
    found = pa.array(values, numbers)
    return found if numbers == kind else found.cast(kind)
