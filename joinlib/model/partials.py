"""The columns of partials: what is kept of a group for aggregates that need no bag, and which others that is enough for.

    count   $a.n         sum   $a.s         avg   $a.s, $a.n         min, max   $a.m

Law: of calls over the same values, columns of one kind hold the same. So `avg(v)` is computed from what `sum(v)` and
`count(v)` keep, to the last digit, and both from what it keeps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from joinlib.expr import types as t
from joinlib.model.bags import Bag, bag_of, distinct_of
from joinlib.model.grouping import AggregateCall

Step = tuple[str, pa.DataType, str]  # a column of partials, its type, and the function that merges it


def steps_of(call: AggregateCall, changes: bool) -> Iterator[Step]:
    """Yield the columns of a call's partials. changes: whether rows may be deleted."""
    if bag_of(call, changes) is not None:
        return
    if call.function in ("sum", "avg"):
        yield f"{call.name}.s", wide(call.source), "sum"
    counted = call.function == "avg" or (call.function == "count" and call.argument is not None)
    if counted or (call.function == "sum" and changes):
        yield f"{call.name}.n", pa.int64(), "sum"
    if call.function in ("min", "max"):
        yield f"{call.name}.m", pa.int64() if t.is_float(call.source) else call.source, call.function


def wide(kind: pa.DataType) -> pa.DataType:
    """Return the type in which values are summed."""
    if t.is_float(kind):
        return pa.float64()
    if not t.is_decimal(kind):
        return pa.decimal128(38, 0)
    return pa.decimal128(38, kind.scale) if kind.precision <= 28 else pa.decimal256(76, kind.scale)


def computed_from(call: AggregateCall, kept: Sequence[AggregateCall], changes: bool) -> AggregateCall | None:
    """Return a call that keeps nothing and is computed from what others keep; None if they do not keep all of it."""
    if not set(_bags(call, changes)) <= {bag for one in kept for bag in _bags(one, changes)}:
        return None
    alike = [one for one in kept if (one.arguments, one.distinct) == (call.arguments, call.distinct)]
    there = [step for one in alike for step in steps_of(one, changes)]
    found = [
        (name, next((n for n, *of in there if (n[-1], *of) == (name[-1], kind, merged)), None))
        for name, kind, merged in steps_of(call, changes)
    ]
    columns = tuple((name, column) for name, column in found if column is not None)
    return replace(call, kept=columns) if len(columns) == len(found) else None


def _bags(call: AggregateCall, changes: bool) -> Iterator[Bag]:
    yield from (bag for bag in (distinct_of(call), bag_of(call, changes)) if bag is not None)
