"""Runs maps over rows. Law: order is kept; a row's weight goes with every row that it becomes."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.expr import Column, Expr
from joinlib.model.inputs import WEIGHT, InputPlan
from joinlib.model.maps import Expand, Map

Named = dict[str, pa.Array]


def mapped(rows: pa.RecordBatch, maps: tuple[Map, ...]) -> pa.RecordBatch:
    """Return the rows that the maps, one after the other, make of these. O(rows in + rows out).

    A last column named $weight is kept as the last.

    Raises:
        SpecError: where ANSI SQL raises (overflow, bad cast).
    """
    for step in maps:
        rows = _mapped(rows, step)
    return rows


def columns_of(plan: InputPlan, rows: pa.RecordBatch) -> Callable[[str], pa.Array]:
    """Return what gives a column of an input's rows by its qualified name.

    Names are qualified here with the input's alias, or they have come with it: what a hop reads may be called like
    that, such as a key that was computed of an earlier stage's rows.
    """

    def column(name: str) -> pa.Array:
        plain = name.removeprefix(f"{plan.alias}.")
        return rows.column(plain if rows.schema.get_field_index(plain) >= 0 else name)

    return column


def _mapped(rows: pa.RecordBatch, step: Map) -> pa.RecordBatch:
    weighted = rows.num_columns > 0 and rows.schema.names[-1] == WEIGHT
    early, step = _early(step)
    count, found = rows.num_rows, dict(zip(rows.schema.names, rows.columns, strict=True))
    found = _only(found, step, early, weighted)
    if early is not None:
        count, found = _kept(count, found, early)
    for number, expand in enumerate(step.expands):
        rest = replace(step, expands=step.expands[number + 1 :])
        count, found = _expanded(count, found, expand, rest, weighted)
    if step.filter is not None:
        count, found = _kept(count, found, step.filter)
    read = partial(_read, found)
    arrays = [flat(value.evaluate(read, count)) for _, value in step.columns]
    schema = step.schema
    if weighted:
        arrays, schema = [*arrays, found[WEIGHT]], schema.append(pa.field(WEIGHT, pa.int64()))
    if not arrays:  # count(*) reads no column, yet rows must be counted
        return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
    return pa.record_batch(arrays, schema)


def _early(step: Map) -> tuple[Expr | None, Map]:
    """Take the filter out if it reads nothing that the expands add: then it is cheaper before them."""
    added = {name for expand in step.expands for name in expand.columns}
    if step.filter is None or not step.expands or added & set(step.filter.columns):
        return None, step
    return step.filter, replace(step, filter=None)


def _only(found: Named, step: Map, early: Expr | None, weighted: bool) -> Named:
    """Return the columns that are still read: others, such as a long list, are not copied."""
    values = [e.value for e in step.expands] + [value for _, value in step.columns]
    read = {c for e in (*values, step.filter, early) if e is not None for c in e.columns}
    if weighted:
        read.add(WEIGHT)
    return {name: column for name, column in found.items() if name in read}


def _kept(count: int, found: Named, condition: Expr) -> tuple[int, Named]:
    """Return the rows for which the condition is true: neither false nor NULL."""
    keep = flat(condition.evaluate(partial(_read, found), count))
    true = pc.sum(keep, min_count=0).as_py()
    if true == count:
        return count, found
    return true, {name: column.filter(keep) for name, column in found.items()}


def _expanded(count: int, found: Named, expand: Expand, rest: Map, weighted: bool) -> tuple[int, Named]:
    """Return the rows, one for each element, in the columns that `rest` reads."""
    lists = _lists(flat(expand.value.evaluate(partial(_read, found), count)))
    parents, places, elements = _elements(lists, expand.outer)
    new: list[tuple[str, pa.Array]] = []
    if expand.position:
        new.append((expand.columns[0], places))
    names = expand.columns[len(new) :]
    if len(names) == 1:
        new.append((names[0], elements))
    else:
        new += [(name, pc.struct_field(elements, [n])) for n, name in enumerate(names)]
    read = _only(
        {name: column for name, column in found.items() if name not in expand.columns}, rest, None, weighted
    )
    if len(parents) != count or (parents != np.arange(count)).any():
        at = pa.array(parents)
        read = {name: column.take(at) for name, column in read.items()}
    return len(parents), {**read, **dict(new)}


def _lists(value: pa.Array) -> pa.Array:
    """Return lists of structs for maps, and other lists as they are."""
    if not pa.types.is_map(value.type):
        return value
    field = pa.struct([pa.field("key", value.type.key_type), pa.field("value", value.type.item_type)])
    return value.cast(pa.list_(field))


def _elements(lists: pa.Array, outer: bool) -> tuple[npt.NDArray[np.int64], pa.Array, pa.Array]:
    """Return for each row that is made: its row, its place in the list (INT), and the element.

    outer: an empty or NULL list makes one row, with NULLs.
    """
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    copies = np.maximum(sizes, 1) if outer else sizes
    parents = np.repeat(np.arange(len(lists)), copies)
    places = np.arange(len(parents)) - np.repeat(np.cumsum(copies) - copies, copies)
    elements = pc.list_flatten(lists)
    none = sizes[parents] == 0 if outer else np.zeros(len(parents), np.bool_)
    if none.any():
        at = np.cumsum(~none) - 1
        elements = elements.take(pa.array(at, mask=none))
    return parents, pa.array(places.astype(np.int32), mask=none), elements


def _read(found: Named, name: str) -> Column:
    return found[name]


def flat(column: Column) -> pa.Array:
    """Return the column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
