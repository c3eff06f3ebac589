"""Functions that take a function: transform(values, x -> x + 1).

Law: the body is computed for all elements of all rows at once, with the row's columns beside each element.

A parameter is a column too, named "$1", "$2", ... by how deeply it is nested. A body that cannot be computed for an
element of one row cannot be computed; what no row asks for (`filter(values, x -> false)`) is no exception.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.expr import Column, Columns, Expr, Node, ref
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.nested import checked, common_type, flattened, lists_of
from joinlib.expr.nodes import Value, call, columnar, combine, contiguous

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Lambda:
    """A function: its parameters' columns, and what it computes."""

    parameters: tuple[str, ...]
    body: Expr


Body = Callable[..., Lambda]  # given types of the parameters


@dataclass(frozen=True)
class Each:
    """Computes a body for all elements of lists, and makes the result of it."""

    lists: tuple[Node, ...]  # of one length in each row
    body: Lambda
    kind: pa.DataType
    result: str  # transform, filter, exists or forall

    def evaluate(self, columns: Columns, rows: int) -> Value:
        lists = [contiguous(node.evaluate(columns, rows), rows) for node in self.lists]
        flat, owner, sizes = flattened(lists[0])
        elements = [flat, *(flattened(one)[0] for one in lists[1:])]
        if len(self.body.parameters) > len(elements):
            starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
            elements.append(pa.array((np.arange(len(owner)) - starts).astype(np.int32)))
        found = _computed(self.body, elements, columns, owner)
        nulls = lists[0].is_null()
        if self.result == "transform":
            return lists_of(found, sizes, nulls, self.kind)
        if self.result == "filter":
            kept = pc.fill_null(found, False).to_numpy(zero_copy_only=False)
            counts = np.bincount(owner[kept], minlength=len(lists[0]))
            return lists_of(flat.filter(pa.array(kept)), counts, nulls, self.kind)
        return _quantified(self.result == "exists", found, owner, nulls)


def _quantified(any_: bool, found: pa.Array, owner: I64, nulls: pa.Array) -> pa.Array:
    """Three-valued: NULL where an element's NULL might have decided."""
    decisive = pc.fill_null(found if any_ else pc.invert(found), False).to_numpy(zero_copy_only=False)
    decided, unknown = np.zeros(len(nulls), bool), nulls.to_numpy(zero_copy_only=False).copy()
    unknown[owner[found.is_null().to_numpy(zero_copy_only=False)]] = True
    decided[owner[decisive]] = True
    return pa.array(decided if any_ else ~decided, mask=unknown & ~decided)


def _computed(body: Lambda, elements: list[pa.Array], columns: Columns, owner: I64) -> pa.Array:
    at = pa.array(owner)

    def column(name: str) -> Column:
        if name in body.parameters:
            return elements[body.parameters.index(name)]
        return columns(name).take(at)

    return contiguous(body.body.evaluate(column, len(owner)), len(owner))


@dataclass(frozen=True)
class Fold:
    """Computes aggregate(values, start, (total, x) -> ...): one pass for each place in the lists."""

    lists: Node
    start: Node
    body: Lambda

    def evaluate(self, columns: Columns, rows: int) -> Value:
        lists = contiguous(self.lists.evaluate(columns, rows), rows)
        total = contiguous(self.start.evaluate(columns, rows), rows)
        flat, _, sizes = flattened(lists)
        starts = np.cumsum(sizes) - sizes
        for place in range(int(sizes.max(initial=0))):
            owner = np.flatnonzero(sizes > place)
            elements = [total.take(pa.array(owner)), flat.take(pa.array(starts[owner] + place))]
            found = _computed(self.body, elements, columns, owner)
            order = np.arange(rows)
            order[owner] = rows + np.arange(len(owner))
            total = pa.concat_arrays([total, found]).take(pa.array(order))
        return pc.if_else(lists.is_valid(), total, pa.scalar(None, total.type))


def _apply(name: str, lists: list[Expr], body: Lambda, kind: pa.DataType, of: str) -> Expr:
    node = Each(tuple(one.node for one in lists), body, kind, of)
    texts = ", ".join([*(one.sql for one in lists), f"({', '.join(body.parameters)}) -> {body.body.sql}"])
    return _without(combine(node, (*lists, body.body), kind, f"{name}({texts})"), body)


def _without(value: Expr, *bodies: Lambda) -> Expr:
    """Return the expression without parameters among what it reads."""
    own = {name for body in bodies for name in body.parameters}
    return Expr(value.sql, tuple(c for c in value.columns if c not in own), value.type, value.node)


def _list(name: str, value: Expr) -> Expr:
    if not pa.types.is_list(value.type):
        raise SpecError(f"{name} takes an ARRAY, {value.excerpt} is {t.name(value.type)}")
    return value


def _truth(name: str, body: Lambda) -> Lambda:
    if body.body.type not in (t.BOOLEAN, t.NULL):
        raise SpecError(f"{name} takes a condition, {body.body.excerpt} is {t.name(body.body.type)}")
    return Lambda(body.parameters, cast(body.body, t.BOOLEAN))


def transform(values: Expr, body: Body) -> Expr:
    values = _list("transform", values)
    made = body(values.type.value_type, t.INT)
    return _apply("transform", [values], made, pa.list_(made.body.type), "transform")


def keep(values: Expr, body: Body) -> Expr:
    """Build filter(values, x -> condition)."""
    values = _list("filter", values)
    made = _truth("filter", body(values.type.value_type, t.INT))
    return _apply("filter", [values], made, values.type, "filter")


def exists(values: Expr, body: Body) -> Expr:
    values = _list("exists", values)
    return _apply("exists", [values], _truth("exists", body(values.type.value_type)), t.BOOLEAN, "exists")


def forall(values: Expr, body: Body) -> Expr:
    values = _list("forall", values)
    return _apply("forall", [values], _truth("forall", body(values.type.value_type)), t.BOOLEAN, "forall")


def fold(values: Expr, start: Expr, body: Body, finish: Body | None = None) -> Expr:
    """Build aggregate(values, start, (total, x) -> ...[, total -> ...])."""
    values = _list("aggregate", values)
    made = body(start.type, values.type.value_type)
    if made.body.type != start.type:
        raise SpecError(
            f"aggregate: the start is {t.name(start.type)}, the sum {t.name(made.body.type)}; add a CAST to the start"
        )
    arrow = f"({', '.join(made.parameters)}) -> {made.body.sql}"
    sql = f"aggregate({values.sql}, {start.sql}, {arrow})"
    node = Fold(values.node, start.node, made)
    found = _without(combine(node, (values, start, made.body), start.type, sql), made)
    if finish is None:
        return found
    last = finish(start.type)
    return transform_one(found, last)


def transform_one(value: Expr, body: Lambda) -> Expr:
    """Apply a function to one value: as to the only element of a list."""
    lists = call(alone, (value,), pa.list_(value.type), f"array({value.sql})", pa.list_(value.type))
    made = _apply("transform", [lists], body, pa.list_(body.body.type), "transform")
    return call(first, (made,), body.body.type, f"{made.sql}[0]")


@columnar
def alone(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1, dtype=np.int32)), values, kind)


@columnar
def first(lists: pa.Array) -> pa.Array:
    return lists.flatten()


def zip_with(left: Expr, right: Expr, body: Body) -> Expr:
    left, right = _list("zip_with", left), _list("zip_with", right)
    made = body(left.type.value_type, right.type.value_type)
    pair = [
        call(padded, (one, other), one.type, f"padded({one.sql}, {other.sql})")
        for one, other in ((left, right), (right, left))
    ]
    return _apply("zip_with", pair, made, pa.list_(made.body.type), "transform")


@columnar
def padded(values: pa.Array, other: pa.Array) -> pa.Array:
    """Lengthen lists with NULLs to the length of others; NULL where one of them is."""
    lists = [
        None if a is None or b is None else a + [None] * (len(b) - len(a))
        for a, b in zip(values.to_pylist(), other.to_pylist())
    ]
    return pa.array(lists, values.type)


def of_map(name: str, pairs: Expr, body: Body) -> Expr:
    """Build map_filter, transform_keys and transform_values."""
    if not pa.types.is_map(pairs.type):
        raise SpecError(f"{name} takes a MAP, {pairs.excerpt} is {t.name(pairs.type)}")
    made = body(pairs.type.key_type, pairs.type.item_type)
    made = _truth(name, made) if name == "map_filter" else made
    keys = call(map_part, (pairs,), pa.list_(pairs.type.key_type), f"map_keys({pairs.sql})", 0)
    items = call(map_part, (pairs,), pa.list_(pairs.type.item_type), f"map_values({pairs.sql})", 1)
    found = _apply(name, [keys, items], made, pa.list_(made.body.type), "transform")
    kind = {
        "map_filter": pairs.type,
        "transform_keys": pa.map_(made.body.type, pairs.type.item_type),
        "transform_values": pa.map_(pairs.type.key_type, made.body.type),
    }[name]
    return call(remade, (keys, items, found), kind, found.sql, name, kind)


@columnar
def map_part(pairs: pa.Array, which: int) -> pa.Array:
    lists = [None if one is None else [pair[which] for pair in one] for one in pairs.to_pylist()]
    return pa.array(lists, pa.list_(pairs.type.item_type if which else pairs.type.key_type))


@columnar
def remade(keys: pa.Array, items: pa.Array, found: pa.Array, name: str, kind: pa.DataType) -> pa.Array:
    made: list[list[tuple[object, object]] | None] = []
    for k, v, f in zip(keys.to_pylist(), items.to_pylist(), found.to_pylist()):
        if k is None:
            made.append(None)
        elif name == "map_filter":
            made.append([(a, b) for a, b, c in zip(k, v, f) if c])
        else:
            made.append(checked(list(zip(f, v) if name == "transform_keys" else zip(k, f))))
    return pa.array(made, kind)


def map_zip_with(left: Expr, right: Expr, body: Body) -> Expr:
    """Build the map of all keys of two maps, and what the function makes of each key and both values."""
    key = common_type("map_zip_with", [_key(left), _key(right)])
    made = body(key, left.type.item_type, right.type.item_type)
    kinds = (key, left.type.item_type, right.type.item_type)
    parts = [
        call(united, (left, right), pa.list_(kind), f"united{i}({left.sql}, {right.sql})", i, pa.list_(kind))
        for i, kind in enumerate(kinds)
    ]
    found = _apply("map_zip_with", parts, made, pa.list_(made.body.type), "transform")
    kind = pa.map_(key, made.body.type)
    return call(remade, (parts[0], parts[1], found), kind, found.sql, "transform_values", kind)


def _key(value: Expr) -> Expr:
    if not pa.types.is_map(value.type):
        raise SpecError(f"map_zip_with takes a MAP, {value.excerpt} is {t.name(value.type)}")
    return Expr(value.sql, (), value.type.key_type, value.node)


@columnar
def united(left: pa.Array, right: pa.Array, which: int, kind: pa.DataType) -> pa.Array:
    """The keys of two maps, and the values of one of them for each key."""
    made: list[list[object] | None] = []
    for a, b in zip(left.to_pylist(), right.to_pylist()):
        if a is None or b is None:
            made.append(None)
            continue
        keys = list(dict.fromkeys([k for k, _ in a] + [k for k, _ in b]))
        made.append(keys if which == 0 else [dict(a if which == 1 else b).get(k) for k in keys])
    return pa.array(made, kind)


def sort_by(values: Expr, body: Body) -> Expr:
    """Build array_sort(values, (left, right) -> -1, 0 or 1), by insertion."""
    raise SpecError(
        "array_sort with a function of two elements is not supported; sort structs of what counts"
    )


def named(types: tuple[pa.DataType, ...], depth: int) -> list[Expr]:
    """Return parameters of these types, named by their depth."""
    return [ref(f"${depth + i}", kind) for i, kind in enumerate(types, 1)]
