"""Makes ARRAYs, STRUCTs and MAPs, and takes them apart, over whole columns.

Law: as Spark in ANSI mode: a[9] of a shorter array is an error, m['x'] without that key is NULL.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.compare import same
from joinlib.expr.fields import field_of
from joinlib.expr.nodes import Literal, Value, call, columnar, constant
from joinlib.expr.rows import NoValueError


def common_type(name: str, values: list[Expr]) -> pa.DataType:
    """Return the type that all values can have; VOID without values.

    Raises:
        SpecError: if there is none.
    """
    kind = t.NULL
    for value in values:
        found = t.common(kind, value.type)
        if found is None:
            raise SpecError(
                f"{name}: {t.name(kind)} and {t.name(value.type)} have no common type; add a CAST"
            )
        kind = found
    return kind


def array_of(*values: Expr) -> Expr:
    """Build array(...)."""
    kind = common_type("array", list(values))
    sql = f"array({', '.join(v.sql for v in values)})"
    return call(make_lists, tuple(cast(v, kind) for v in values), pa.list_(kind), sql, pa.list_(kind))


@columnar
def make_lists(*given: Any) -> pa.Array:
    """The kernel: a column for each place, then the type."""
    *columns, kind = given
    if not columns:
        return pa.array([[]], kind)
    rows, places = len(columns[0]), len(columns)
    order = np.add.outer(np.arange(rows), np.arange(places) * rows).reshape(-1)
    flat = pa.concat_arrays(columns).take(pa.array(order))
    return pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32) * places), flat, kind)


def struct_of(values: list[tuple[str, Expr]]) -> Expr:
    """Build named_struct(...)."""
    if not values:
        raise SpecError("struct takes at least one value")
    kind = pa.struct([pa.field(name, value.type) for name, value in values])
    sql = ", ".join(f"'{name}', {value.sql}" for name, value in values)
    return call(make_structs, tuple(v for _, v in values), kind, f"named_struct({sql})", kind)


@columnar
def make_structs(*given: Any) -> pa.Array:
    *columns, kind = given
    return pa.StructArray.from_arrays(columns, fields=list(kind))


def named_struct(*given: Expr) -> Expr:
    """Build a STRUCT of pairs: a name and a value."""
    if len(given) % 2:
        raise SpecError("named_struct takes pairs: a name and a value")
    names = [_text(e, "named_struct") for e in given[::2]]
    return struct_of(list(zip(names, given[1::2])))


def _text(value: Expr, name: str) -> str:
    found = value.node.value.as_py() if isinstance(value.node, Literal) else None
    if not isinstance(found, str):
        raise SpecError(f"{name} takes constant names, not {value.excerpt}")
    return found


def struct_(*values: Expr) -> Expr:
    """Build struct(x, o.y): fields are named after columns, else col1, col2, ..."""
    names = [(v.column or "").rpartition(".")[2] or f"col{i}" for i, v in enumerate(values, 1)]
    return struct_of(list(zip(names, values)))


def map_of(*given: Expr) -> Expr:
    """Build map(k, v, ...)."""
    if len(given) % 2:
        raise SpecError("map takes pairs: a key and a value")
    keys, items = list(given[::2]), list(given[1::2])
    key, item = common_type("map keys", keys), common_type("map values", items)
    sql = f"map({', '.join(v.sql for v in given)})"
    return map_from(array_of(*(cast(k, key) for k in keys)), array_of(*(cast(i, item) for i in items)), sql)


def map_from(keys: Expr, items: Expr, sql: str = "") -> Expr:
    """Build map_from_arrays(keys, values)."""
    for value in (keys, items):
        if not pa.types.is_list(value.type):
            raise SpecError(f"map_from_arrays takes two ARRAYs, {value.excerpt} is {t.name(value.type)}")
    if keys.type.value_type == t.NULL:
        raise SpecError(
            f"{sql or 'map_from_arrays'}: the keys have no type; for an empty map write"
            " map_from_arrays(CAST(array() AS ARRAY<STRING>), array()), with the type of your keys"
        )
    kind = pa.map_(keys.type.value_type, items.type.value_type)
    return call(make_maps, (keys, items), kind, sql or f"map_from_arrays({keys.sql}, {items.sql})", kind)


@columnar
def make_maps(keys: pa.Array, items: pa.Array, kind: pa.DataType) -> pa.Array:
    found: list[list[Any] | None] = []
    for names, values in zip(keys.to_pylist(), items.to_pylist()):
        if names is None or values is None:
            found.append(None)
            continue
        if len(names) != len(values):
            raise NoValueError("a map has as many keys as values")
        found.append(checked(list(zip(names, values))))
    return pa.array(found, kind)


def checked(pairs: list[Any]) -> list[Any]:
    """Return the pairs of a map; a key is not NULL, and there once."""
    if any(k is None for k, _ in pairs):
        raise NoValueError("a key of a map is NULL")
    if len({repr(k) for k, _ in pairs}) < len(pairs):
        raise NoValueError("a key is in a map twice")
    return pairs


def item_of(value: Expr, key: Expr) -> Expr:
    """Build value[key]: of an ARRAY, counted from 0, or of a MAP."""
    sql = f"{value.sql}[{key.sql}]"
    if pa.types.is_map(value.type):
        return _by_key(value, key, sql)
    if not pa.types.is_list(value.type):
        raise SpecError(f"{value.excerpt} is {t.name(value.type)}, it has no elements")
    return _at(value, key, sql, 0, True)


def element_at(name: str, value: Expr, key: Expr) -> Expr:
    """Build element_at, try_element_at (from 1, negative from the end) and get (from 0)."""
    sql = f"{name}({value.sql}, {key.sql})"
    if pa.types.is_map(value.type) and name != "get":
        return _by_key(value, key, sql)
    if not pa.types.is_list(value.type):
        raise SpecError(f"{name} takes an ARRAY or a MAP, {value.excerpt} is {t.name(value.type)}")
    return _at(value, key, sql, 0 if name == "get" else 1, name == "element_at")


def _at(value: Expr, key: Expr, sql: str, first: int, strict: bool) -> Expr:
    if not t.is_integer(key.type) and key.type != t.NULL:
        raise SpecError(f"elements are numbered, {key.excerpt} is {t.name(key.type)}")
    return call(pick, (value, cast(key, t.BIGINT)), value.type.value_type, sql, first, strict)


@columnar
def pick(lists: pa.Array, places: pa.Array, first: int, strict: bool) -> pa.Array:
    """Take an element of each list; with `first` 1 also from the end."""
    starts = lists.offsets.to_numpy()
    known = (pc.and_(lists.is_valid(), places.is_valid())).to_numpy(zero_copy_only=False)
    sizes, wanted = np.diff(starts), places.fill_null(first).to_numpy()
    if first and strict and (known & (wanted == 0)).any():
        raise NoValueError("element_at counts from 1, or from -1 at the end")
    at = np.where(wanted < 0, wanted + sizes, wanted - first) if first else wanted
    inside = (at >= 0) & (at < sizes)
    if strict and (known & ~inside).any():
        raise NoValueError("the array has no such element; use get() or try_element_at()")
    taken = pa.array(np.where(inside, starts[:-1] + at, 0), mask=~(known & inside))
    return lists.values.take(taken)


def _by_key(value: Expr, key: Expr, sql: str) -> Expr:
    kind = value.type.key_type
    if t.common(kind, key.type) is None:
        raise SpecError(f"the keys of {value.excerpt} are {t.name(kind)}, not {t.name(key.type)}")
    return call(look_up, (value, cast(key, kind)), value.type.item_type, sql)


@columnar
def look_up(maps: pa.Array, wanted: pa.Array) -> pa.Array:
    starts = maps.offsets.to_numpy()
    sizes = np.where(maps.is_valid().to_numpy(zero_copy_only=False), np.diff(starts), 0)
    owner = np.repeat(np.arange(len(maps)), sizes)
    at = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(starts[:-1], sizes)
    hit = np.flatnonzero(
        same(maps.keys.take(pa.array(at)), wanted.take(pa.array(owner))).to_numpy(zero_copy_only=False)
    )
    found = np.full(len(maps), -1, np.int64)
    found[owner[hit]] = at[hit]
    return maps.items.take(pa.array(found, mask=found < 0))


def field(value: Expr, name: str) -> Expr:
    """Build value.name: of a STRUCT, of the structs in an ARRAY, or m.key of a MAP.

    Raises:
        SpecError: if there is no such field.
    """
    if pa.types.is_list(value.type) and t.is_struct(value.type.value_type):
        inner = _named(value.type.value_type, name, value)
        kind = pa.list_(value.type.value_type.field(inner).type)
        return call(field_of_each, (value,), kind, f"{value.sql}.`{inner}`", inner, kind)
    if pa.types.is_map(value.type) and t.is_string(value.type.key_type):
        return _by_key(value, constant(pa.scalar(name), f"'{name}'"), f"{value.sql}['{name}']")
    if not t.is_struct(value.type):
        raise SpecError(f"{value.excerpt} is {t.name(value.type)}, it has no field {name}")
    return field_of(value, _named(value.type, name, value))


def _named(kind: pa.DataType, name: str, value: Expr) -> str:
    names = [f.name for f in kind]
    hit = next((n for n in names if n.lower() == name.lower()), None)
    if hit is None:
        raise SpecError(f"{value.excerpt} has no field {name}; there is {', '.join(names)}")
    return hit


@columnar
def field_of_each(lists: pa.Array, name: str, kind: pa.DataType) -> pa.Array:
    inner = pc.struct_field(lists.values, [name])
    return pa.ListArray.from_arrays(
        lists.offsets, inner, kind, mask=lists.is_null() if lists.null_count else None
    )


def flattened(lists: pa.Array) -> tuple[pa.Array, "np.ndarray[tuple[int], np.dtype[np.int64]]", Any]:
    """Return the elements of lists, the number of the list of each, and the lengths; NULL has no elements."""
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lists.flatten(), np.repeat(np.arange(len(lists)), sizes), sizes


def lists_of(flat: pa.Array, sizes: Any, nulls: pa.Array, kind: pa.DataType) -> Value:
    """Make lists of elements again; `nulls` says which of them are NULL."""
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int32)
    mask = nulls if pc.any(nulls).as_py() else None
    return pa.ListArray.from_arrays(pa.array(offsets), flat, kind, mask=mask)
