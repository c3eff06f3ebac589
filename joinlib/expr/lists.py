"""Functions of ARRAYs and MAPs, one row at a time. Law: Spark's; NaN equals NaN, and NULL is found where it is asked for."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr import signatures as s
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.equality import key, rank, zeroed
from joinlib.expr.nested import checked, common_type
from joinlib.expr.patterns import split
from joinlib.expr.rows import NoValueError
from joinlib.expr.signatures import Signature, row, row_call

_MOST = 1 << 27  # elements of a list that a function makes


def distinct(values: list[Any]) -> list[Any]:
    seen: dict[Any, Any] = {}
    for value in values:
        seen.setdefault(key(value), zeroed(value))
    return list(seen.values())


def size(values: list[Any] | None) -> int | None:
    return None if values is None else len(values)


def contains(values: list[Any], wanted: Any) -> bool | None:
    found = key(wanted) in map(key, (v for v in values if v is not None))
    return True if found else None if None in values else False


def position(values: list[Any], wanted: Any) -> int:
    return next((i for i, v in enumerate(values, 1) if v is not None and key(v) == key(wanted)), 0)


def removed(values: list[Any], unwanted: Any) -> list[Any]:
    return [v for v in values if v is None or key(v) != key(unwanted)]


def least(values: list[Any]) -> Any:
    known = [v for v in values if v is not None]
    return min(known, key=rank, default=None)


def greatest(values: list[Any]) -> Any:
    known = [v for v in values if v is not None]
    return max(known, key=rank, default=None)


def compact(values: list[Any]) -> list[Any]:
    return [v for v in values if v is not None]


def flat(values: list[Any]) -> list[Any] | None:
    return None if any(v is None for v in values) else [x for v in values for x in v]


def joined(values: list[str | None], mark: str, instead: str | None = None) -> str:
    return mark.join(x for v in values if (x := instead if v is None else v) is not None)


def sorted_(values: list[Any], ascending: bool = True) -> list[Any]:
    return sorted(values, key=rank, reverse=not ascending)


def sorted_nulls_last(values: list[Any]) -> list[Any]:
    return sorted(values, key=lambda v: (v is None, rank(v)))


def sliced(values: list[Any], start: int, count: int) -> list[Any]:
    if start == 0 or count < 0:
        raise NoValueError("slice counts from 1, or from -1 at the end, and takes a length of 0 or more")
    first = start - 1 if start > 0 else len(values) + start
    return values[first : first + count] if first >= 0 else []


def union(left: list[Any], right: list[Any]) -> list[Any]:
    return distinct([*left, *right])


def intersection(left: list[Any], right: list[Any]) -> list[Any]:
    known = set(map(key, right))
    return [v for v in distinct(left) if key(v) in known]


def difference(left: list[Any], right: list[Any]) -> list[Any]:
    known = set(map(key, right))
    return [v for v in distinct(left) if key(v) not in known]


def overlap(left: list[Any], right: list[Any]) -> bool | None:
    known = {key(v) for v in right if v is not None}
    if any(v is not None and key(v) in known for v in left):
        return True
    return None if left and right and (None in left or None in right) else False


def repeated(value: Any, count: int | None) -> list[Any] | None:
    if count is None:
        return None
    if count > _MOST:
        raise NoValueError("the array would have too many elements")
    return [value] * max(count, 0)


def appended(values: list[Any] | None, value: Any) -> list[Any] | None:
    return None if values is None else [*values, value]


def prepended(values: list[Any] | None, value: Any) -> list[Any] | None:
    return None if values is None else [value, *values]


def inserted(values: list[Any] | None, place: int | None, value: Any) -> list[Any] | None:
    """Insert so that the value has this place, from 1, or from -1 at the end; NULLs fill what lies between."""
    if values is None or place is None:
        return None
    if place == 0 or abs(place) > _MOST:
        raise NoValueError("array_insert counts from 1, or from -1 at the end")
    if place > 0:
        padded = values + [None] * (place - 1 - len(values))
        return [*padded[: place - 1], value, *padded[place - 1 :]]
    at = len(values) + place + 1
    if at >= 0:
        return [*values[:at], value, *values[at:]]
    return [value, *[None] * -at, *values]


def reversed_(value: Any) -> Any:
    return value[::-1]


def zipped(*given: Any) -> list[dict[str, Any]]:
    *lists, names = given
    longest = max(map(len, lists), default=0)
    return [{n: v[i] if i < len(v) else None for n, v in zip(names, lists)} for i in range(longest)]


def numbers(start: int, stop: int, step: int | None = None) -> list[int]:
    step = (1 if stop >= start else -1) if step is None else step
    if not step and start != stop:
        raise NoValueError("sequence: a step of 0 leads nowhere")
    if step and (stop - start) * step < 0:
        raise NoValueError("sequence: the step leads away from the end")
    if step and (stop - start) // step > _MOST:
        raise NoValueError("the array would have too many elements")
    return list(range(start, stop + (1 if step > 0 else -1), step)) if step else [start]


def keys_of(pairs: list[Any]) -> list[Any]:
    return [k for k, _ in pairs]


def values_of(pairs: list[Any]) -> list[Any]:
    return [v for _, v in pairs]


def entries(pairs: list[Any]) -> list[Any]:
    return [{"key": k, "value": v} for k, v in pairs]


def from_entries(values: list[Any]) -> list[Any] | None:
    if any(v is None for v in values):
        return None
    return checked([tuple(v.values()) for v in values])


def merged(*maps: list[Any]) -> list[Any]:
    return checked([pair for pairs in maps for pair in pairs])


def has_key(pairs: list[Any], wanted: Any) -> bool:
    return key(wanted) in (key(k) for k, _ in pairs)


def split_map(text: str, pairs: str = ",", parts: str = ":") -> list[Any]:

    halves = [split(pair, parts, 2) for pair in split(text, pairs)]
    return checked([(h[0], h[1] if len(h) > 1 else None) for h in halves])


def _same(kind: pa.DataType, *_: pa.DataType) -> pa.DataType:
    return kind


def _element(kind: pa.DataType, *_: pa.DataType) -> pa.DataType:
    return kind.value_type


def _list_or_map(name: str, value: Expr) -> Expr:
    return value if pa.types.is_map(value.type) else s.array(name, value)


def _orderable(name: str, value: Expr) -> Expr:
    value = s.array(name, value)
    if pa.types.is_map(value.type.value_type):
        raise SpecError(f"{name}: a MAP has no order")
    return value


def _texts(name: str, value: Expr) -> Expr:
    return cast(s.array(name, value), pa.list_(t.STRING))


def with_element(
    name: str, of: Callable[..., Any], result: pa.DataType | None, values: Expr, element: Expr
) -> Expr:
    """Build the call of a function of an array and a value of its elements' type."""
    values = s.array(name, values)
    kind = t.common(values.type.value_type, element.type)
    if kind is None:
        raise SpecError(f"{name}: the array has {t.name(values.type.value_type)}, not {t.name(element.type)}")
    lists = cast(values, pa.list_(kind))
    lenient = of in (appended, prepended)
    return row_call(name, of, result or lists.type, [lists, cast(element, kind)], lenient)


def of_two(name: str, of: Callable[..., Any], result: pa.DataType | None, left: Expr, right: Expr) -> Expr:
    """Build the call of a function of two arrays of one type."""
    both = [s.array(name, left), s.array(name, right)]
    kind = common_type(name, both)
    return row_call(name, of, result or kind, [cast(value, kind) for value in both])


def insert(values: Expr, place: Expr, element: Expr) -> Expr:
    values = s.array("array_insert", values)
    kind = common_type(
        "array_insert", [values, Expr(element.sql, element.columns, pa.list_(element.type), element.node)]
    )
    given = [cast(values, kind), s.INT("array_insert", place), cast(element, kind.value_type)]
    return row_call("array_insert", inserted, kind, given, True)


def zip_(*given: Expr) -> Expr:
    """Build arrays_zip: fields are named after columns, else 0, 1, ..."""
    lists = [s.array("arrays_zip", value) for value in given]
    names = tuple((v.column or "").rpartition(".")[2] or str(i) for i, v in enumerate(lists))
    kind = pa.list_(pa.struct([pa.field(n, v.type.value_type) for n, v in zip(names, lists)]))
    return row_call("arrays_zip", zipped, kind, lists, more=(names,))


def whole_maps(*given: Expr) -> Expr:
    """Build map_concat."""
    kind = common_type("map_concat", [s.mapping("map_concat", value) for value in given])
    return row_call("map_concat", merged, kind, [cast(v, kind) for v in given])


def key_test(pairs: Expr, wanted: Expr) -> Expr:
    pairs = s.mapping("map_contains_key", pairs)
    return row_call("map_contains_key", has_key, t.BOOLEAN, [pairs, cast(wanted, pairs.type.key_type)])


def concatenated(*lists: Expr) -> Expr:
    """Build concat of arrays."""
    kind = common_type("concat", [s.array("concat", value) for value in lists])
    return row_call("concat", _chained, kind, [cast(v, kind) for v in lists])


def _chained(*lists: list[Any]) -> list[Any]:
    return [x for values in lists for x in values]


def _entry_type(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct([pa.field("key", kind.key_type, False), pa.field("value", kind.item_type)]))


def _map_type(kind: pa.DataType) -> pa.DataType:
    pair = kind.value_type
    if not t.is_struct(pair) or pair.num_fields != 2:
        raise SpecError("map_from_entries takes an ARRAY of STRUCTs of two fields")
    return pa.map_(pair.field(0).type, pair.field(1).type)


FUNCTIONS: dict[str, Signature] = {
    "size": row(size, t.INT, _list_or_map, lenient=True),
    "cardinality": row(size, t.INT, _list_or_map, lenient=True),
    "array_size": row(size, t.INT, s.array),
    "array_distinct": row(distinct, _same, s.array),
    "array_compact": row(compact, _same, s.array),
    "array_min": row(least, _element, _orderable),
    "array_max": row(greatest, _element, _orderable),
    "array_join": row(joined, t.STRING, _texts, s.STRING, s.STRING, least=2),
    "array_sort": row(sorted_nulls_last, _same, _orderable),
    "sort_array": row(sorted_, _same, _orderable, s.BOOLEAN, least=1),
    "slice": row(sliced, _same, s.array, s.INT, s.INT),
    "flatten": row(flat, _element, s.array),
    "array_repeat": row(repeated, lambda kind, _: pa.list_(kind), s.anything, s.INT, lenient=True),
    "map_keys": row(keys_of, lambda kind: pa.list_(kind.key_type), s.mapping),
    "map_values": row(values_of, lambda kind: pa.list_(kind.item_type), s.mapping),
    "map_entries": row(entries, _entry_type, s.mapping),
    "map_from_entries": row(from_entries, _map_type, s.array),
    "str_to_map": row(split_map, pa.map_(t.STRING, t.STRING), s.STRING, s.STRING, s.STRING, least=1),
}
ELEMENT: dict[str, tuple[Callable[..., Any], pa.DataType | None]] = {
    "array_contains": (contains, t.BOOLEAN),
    "array_position": (position, t.BIGINT),
    "array_remove": (removed, None),
    "array_append": (appended, None),
    "array_prepend": (prepended, None),
}
TWO: dict[str, tuple[Callable[..., Any], pa.DataType | None]] = {
    "array_union": (union, None),
    "array_intersect": (intersection, None),
    "array_except": (difference, None),
    "arrays_overlap": (overlap, t.BOOLEAN),
}
