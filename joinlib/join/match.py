"""Filters candidate tuples by key, then by time bounds, then by the predicate, each on what is left.

Tuples for which a predicate fails are an error, or are left out and kept. A part of it that fails for none is then decided
first: a tuple that it leaves out is none that fails.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.apart import Failing, KeepFailed, set_aside
from joinlib.errors import SpecError
from joinlib.expr import Column, Expr
from joinlib.expr.bound import Bound
from joinlib.expr.logic import all_of, conjuncts
from joinlib.expr.total import total
from joinlib.join.rows import Tuples, flat
from joinlib.model.inputs import WEIGHT
from joinlib.state.run import time_values

Mask = npt.NDArray[np.bool_]


def same_keys(tuples: Tuples, left: tuple[str, ...], right: tuple[str, ...]) -> Tuples:
    """Return the tuples whose key columns `left` and `right` are equal (equal hashes do not imply equal
    keys).
    """
    for a, b in zip(left, right, strict=True):
        tuples = tuples.filter(_equal(tuples.column(a), tuples.column(b)))
    return tuples


def within(tuples: Tuples, bounds: tuple[Bound, ...]) -> Tuples:
    """Return the tuples for which low <= right - left <= high holds for every bound; NULL is outside."""
    for bound in bounds:
        left, right = flat(tuples.column(bound.left)), flat(tuples.column(bound.right))
        apart = time_values(right) - time_values(left)
        mask = np.ones(len(apart), np.bool_)
        if bound.low_us is not None:
            mask &= apart >= bound.low_us
        if bound.high_us is not None:
            mask &= apart <= bound.high_us
        for column in (left, right):
            if column.null_count:
                mask &= column.is_valid().to_numpy(zero_copy_only=False)
        tuples = tuples.filter(mask)
    return tuples


def satisfying(tuples: Tuples, predicate: Expr | None, failed: KeepFailed | None = None) -> Tuples:
    """Return the tuples for which the predicate is true (neither false nor NULL). failed: see `passing`."""
    if predicate is None or not len(tuples):
        return tuples
    return tuples.filter(passing(tuples, predicate, failed))


def passing(tuples: Tuples, predicate: Expr, failed: KeepFailed | None = None) -> Mask:
    """Return for which tuples the predicate is true, shape (tuples,).

    failed: takes those for which it fails, with all their columns; None: they are an error.
    """
    try:
        return true(predicate.evaluate(tuples.column, len(tuples)))
    except SpecError:
        if failed is None:
            raise
    parts = conjuncts(predicate)
    sure, other = ([p for p in parts if total(p.node) is known] for known in (True, False))
    at = np.arange(len(tuples))
    for part in sure:
        at = at[true(part.evaluate(tuples.take(at).column, len(at)))]
    rest = all_of(other)
    assert rest is not None, "what is total does not fail"
    some = tuples.take(at)
    kept = sound(some, rest, failed, predicate)
    at = at[kept]
    mask = np.zeros(len(tuples), np.bool_)
    mask[at[true(rest.evaluate(tuples.take(at).column, len(at)))]] = True
    return mask


def sound(tuples: Tuples, computed: Expr, failed: KeepFailed, condition: Expr) -> Mask:
    """Return for which tuples an expression does not fail; give the others to `failed`, with the condition."""
    # Taken once, and not by each half.
    columns = {name: flat(tuples.column(name)) for name in computed.columns}

    def compute(start: int, stop: int) -> object:
        return computed.evaluate(lambda name: columns[name].slice(start, stop - start), stop - start)

    def told(rows: pa.RecordBatch, found: Sequence[Failing]) -> None:
        where = f", in the condition {condition.excerpt}"
        failed(rows, [Failing(one.at, SpecError(f"{one.error}{where}")) for one in found])

    return set_aside(len(tuples), compute, SpecError, lambda at: _shown(tuples.take(at)), told)


def _shown(tuples: Tuples) -> pa.RecordBatch:
    """Return the columns of tuples that come of rows, and the weight; in one order, whoever has probed."""
    names = {name for part in tuples.parts for name in part.schema.names}
    named = sorted(name for name in names if not name.rpartition(".")[2].startswith("$"))
    shown = [*named, WEIGHT] if WEIGHT in names else named
    return pa.record_batch([flat(tuples.column(name)) for name in shown], shown)


def true(column: Column) -> Mask:
    """Return a mask, shape (rows,), of where a boolean column is true; NULL counts as false."""
    return flat(pc.fill_null(column, False)).to_numpy(zero_copy_only=False)


def _equal(a: Column, b: Column) -> Mask:
    mask = true(pc.equal(a, b))
    if pa.types.is_floating(a.type):  # as in Spark, NaN = NaN
        mask |= true(pc.and_(pc.is_nan(a), pc.is_nan(b)))
    return mask
