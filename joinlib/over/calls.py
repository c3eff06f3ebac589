"""Computes one window function for all rows of partitions.

Law: types and rounding are Spark's; a sum that does not fit its type raises an error.

Functions that count or sum from the beginning of a partition may go on from rows that are not there any more:
`begin` has what these gave, a value for each partition in the columns that `carried` names, and then rows that are
there for others only (not `fresh`) are not counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.arrays import I64
from joinlib.errors import SpecError
from joinlib.expr import types as t
from joinlib.expr.cast import convert
from joinlib.index.order import ordered
from joinlib.model.over import OverCall
from joinlib.over import exact, moments, places
from joinlib.over.codes import code, nulls
from joinlib.over.frames import FrameEnds, frames
from joinlib.over.layout import Layout
from joinlib.route.content import Mask

_VARIANCES = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
RANKS = ("row_number", "rank", "dense_rank")
_COUNTS = (*RANKS, "count")


def carried(call: OverCall) -> tuple[tuple[str, pa.DataType], ...]:
    """Return the columns that say what the call has counted and summed in a partition; none for other calls.

    It must count from the beginning of the partition to the current row.
    """
    if call.function not in RANKS and (call.frame.low is not None or call.frame.high != 0):
        return ()
    if call.function in _COUNTS:
        kinds: dict[str, pa.DataType] = {"n": pa.int64()}
    elif call.function in ("sum", "avg"):
        source = call.arguments[0][1]
        kinds = {"n": pa.int64()}
        kinds |= {"s": pa.float64(), "r": pa.float64()} if t.is_float(source) else {"s": exact.wide(source)}
    elif call.function in _VARIANCES:
        kinds = dict.fromkeys(("n", "m", "q"), pa.float64())
    else:
        return ()
    return tuple((f"{call.name}.{name}", kind) for name, kind in kinds.items())


@dataclass(frozen=True)
class Work:
    """What a call is computed from; all arrays are by position."""

    call: OverCall
    layout: Layout
    rows: pa.RecordBatch
    fresh: Mask | None  # rows that are counted; None: all
    begin: Mapping[str, pa.Array]  # by partition; empty: from nothing
    lenient: bool = False  # a sum that does not fit its type is NULL, and told of

    def column(self, at: int) -> pa.Array:
        """Return an argument."""
        return self.rows.column(self.call.arguments[at][0]).take(pa.array(self.layout.rows))

    @cached_property
    def frames(self) -> FrameEnds:
        """The frames of the call."""
        return frames(self.call.frame, self.layout, self.rows, self.call.order)

    @cached_property
    def known(self) -> Mask:
        """Rows that an aggregate reads: their argument is not NULL, and they pass the FILTER."""
        known = ~nulls(self.column(0)) if self.call.arguments else np.ones(len(self.layout.rows), np.bool_)
        if self.call.condition is not None:
            told = self.rows.column(self.call.condition).take(pa.array(self.layout.rows))
            known &= told.fill_null(False).to_numpy(zero_copy_only=False)
        return known

    @property
    def counted(self) -> Mask:
        """Rows that a sum reads."""
        return self.known if self.fresh is None or not carried(self.call) else self.known & self.fresh

    def carry(self, name: str) -> pa.Array | None:
        """Return what the partition of each row begins with."""
        found = self.begin.get(f"{self.call.name}.{name}")
        return None if found is None else found.take(pa.array(self.layout.part))

    def numbers(self, name: str) -> I64 | int:
        """Return counts that the partition of each row begins with."""
        found = self.carry(name)
        return 0 if found is None else found.to_numpy()

    def starts(self, name: str) -> moments.F64:
        """Return doubles that partitions begin with."""
        found = self.begin.get(f"{self.call.name}.{name}")
        parts = int(self.layout.part[-1]) + 1 if len(self.layout.part) else 0
        return np.zeros(parts) if found is None else found.to_numpy()


@dataclass(frozen=True)
class Made:
    """The values of a call at each position, and how far it has counted there, by the columns of `carried`."""

    values: pa.Array
    state: Mapping[str, pa.Array]
    lost: Mask | None = None  # where a sum does not fit its type; None: nowhere


def made(work: Work) -> Made:
    """Compute a call.

    Raises:
        SpecError: a sum does not fit its type.
    """
    call, function = work.call, work.call.function
    if function in RANKS:
        found = _ranked(work)
        return Made(pa.array(found).cast(call.type), _state(work, n=_upto(work)))
    if function == "count":
        counts = _counts(work)
        return Made(pa.array(counts), _state(work, n=counts))
    if function in ("sum", "avg"):
        return _summed(work)
    if function in _VARIANCES:
        return _varied(work)
    return Made(_of_layout(work) if function in _SPREAD else _taken(work), {})


def _state(work: Work, **columns: I64 | pa.Array) -> Mapping[str, pa.Array]:
    return {
        f"{work.call.name}.{name}": value if isinstance(value, pa.Array) else pa.array(value)
        for name, value in columns.items()
    }


def _before(mask: Mask, head: I64) -> I64:
    """Return how many are marked before each position in its partition."""
    upto = np.append(0, np.cumsum(mask))
    return upto[:-1] - upto[head]


def _ranked(work: Work) -> I64:
    layout, begin = work.layout, work.numbers("n")
    at = np.arange(len(layout.rows))
    if work.call.function == "dense_rank":
        first = at == layout.peer
        fresh = first if work.fresh is None else first & work.fresh
        return _before(fresh, layout.head)[layout.peer] + 1 + begin
    if work.fresh is None:
        return (at if work.call.function == "row_number" else layout.peer) - layout.head + 1 + begin
    before = _before(work.fresh, layout.head)
    return (before if work.call.function == "row_number" else before[layout.peer]) + 1 + begin


def _upto(work: Work) -> I64:
    """Return how many rows there are up to each, or how many different ones."""
    layout = work.layout
    fresh = np.ones(len(layout.rows), np.bool_) if work.fresh is None else work.fresh
    if work.call.function == "dense_rank":
        fresh = fresh & (np.arange(len(layout.rows)) == layout.peer)
    return _before(fresh, layout.head) + fresh + work.numbers("n")


def _counts(work: Work) -> I64:
    upto = np.append(0, np.cumsum(work.counted))
    low, high = work.frames
    return upto[np.maximum(high, low)] - upto[low] + work.numbers("n")


def _summed(work: Work) -> Made:
    call, counts, values = work.call, _counts(work), work.column(0)
    none = pa.array(counts == 0)
    if t.is_float(values.type):
        begin = moments.Sums(work.starts("s"), work.starts("r"))
        found = moments.sums(_doubles(values), work.counted, work.frames, work.layout, begin)
        total = pa.array(found.total + found.lost)
        state = _state(work, n=counts, s=found.total, r=found.lost)
    else:
        try:
            total = exact.sums(values, work.counted, work.frames, work.carry("s"))
        except OverflowError as error:
            raise SpecError(too_large(call)) from error
        state = _state(work, n=counts, s=total)
    lost = None
    try:
        if call.function == "avg":
            return Made(exact.mean(total, counts, call.type), state)
        value = total.cast(call.type)
    except pa.ArrowInvalid as error:
        if not work.lenient or call.function == "avg":
            raise SpecError(too_large(call)) from error
        value = convert(total, call.type, True)
        lost = value.is_null().to_numpy(zero_copy_only=False)
    return Made(pc.if_else(none, pa.scalar(None, call.type), value), state, lost)


def too_large(call: OverCall) -> str:
    """Say of a call that its value does not fit its type."""
    return f"{call.sql} is too large for {t.name(call.type)}; CAST its argument to a wider type"


def _doubles(values: pa.Array) -> moments.F64:
    return pc.fill_null(values.cast(pa.float64(), safe=False), 0.0).to_numpy(zero_copy_only=False)


def _varied(work: Work) -> Made:
    begin = moments.Moments(work.starts("n"), work.starts("m"), work.starts("q"))
    found = moments.moments(_doubles(work.column(0)), work.counted, work.frames, work.layout, begin)
    divisor = found.values - (1 if work.call.function.endswith("samp") else 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = found.squares / divisor
        if work.call.function.startswith("stddev"):
            value = np.sqrt(value)
    none = pa.array(divisor <= 0)
    state = _state(work, n=found.values, m=found.mean, q=found.squares)
    return Made(pc.if_else(none, pa.scalar(None, pa.float64()), pa.array(value)), state)


_SPREAD = ("ntile", "percent_rank", "cume_dist")


def _of_layout(work: Work) -> pa.Array:
    """Compute what depends on the size of the partition."""
    layout, call = work.layout, work.call
    size, place = layout.end - layout.head, np.arange(len(layout.rows)) - layout.head
    if call.function == "percent_rank":
        return pa.array((layout.peer - layout.head) / np.maximum(size - 1, 1))
    if call.function == "cume_dist":
        return pa.array((layout.last - layout.head) / np.maximum(size, 1))
    small, large = size // call.number, size % call.number  # rows of a tile; tiles with one more
    cut = large * (small + 1)
    behind = large + (place - cut) // np.maximum(small, 1)
    return pa.array(np.where(place < cut, place // (small + 1), behind) + 1).cast(call.type)


def _taken(work: Work) -> pa.Array:
    """Take the value from another row."""
    call = work.call
    if call.function in ("session_start", "session_end"):
        return _session(work)
    values, at = work.column(0), source(work)
    found = values.take(pa.array(at, mask=at < 0))
    if len(call.arguments) > 1:
        return pc.if_else(pa.array(at < 0), work.column(1), found)
    return found if call.default is None else pc.if_else(pa.array(at < 0), call.default, found)


def readable(work: Work) -> Mask | None:
    """Return the rows whose value may be taken: by IGNORE NULLS and FILTER; None: all."""
    call = work.call
    known = ~nulls(work.column(0)) if call.ignore_nulls else None
    if call.condition is None:
        return known
    told = work.rows.column(call.condition).take(pa.array(work.layout.rows))
    passing = told.fill_null(False).to_numpy(zero_copy_only=False)
    return passing if known is None else known & passing


def source(work: Work) -> I64:
    """Return the position that each row's value is taken from; -1 for none."""
    call, values = work.call, work.column(0)
    if call.function in ("min", "max", "bool_and", "bool_or"):
        return _extreme(work, values)
    known = readable(work)
    if call.function in ("lag", "lead"):
        return places.shifted(work.layout, -call.number if call.function == "lag" else call.number, known)
    number = {"first_value": 1, "last_value": -1}.get(call.function, call.number)
    return places.nth(work.frames, number, known)


def _extreme(work: Work, values: pa.Array) -> I64:
    codes = np.zeros(len(values), np.int64)
    if t.is_float(values.type):
        codes = ordered(_doubles(values))
    elif len(values):
        codes = (code(values).values ^ np.uint64(1 << 63)).view(np.int64)
    greatest = work.call.function in ("max", "bool_or")
    return places.extreme(codes, work.known, *work.frames, work.layout.head, greatest)


def _session(work: Work) -> pa.Array:
    times = work.column(0)
    known = ~nulls(times)
    moments_ = times.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    heads = places.session_heads(moments_, known, work.layout.head, work.call.number)
    starts = np.flatnonzero(heads)
    ends = np.append(starts[1:], len(heads))[: len(starts)]
    if work.call.function == "session_start":
        found = np.repeat(moments_[starts], ends - starts)
    else:
        found = np.repeat(moments_[ends - 1] + work.call.number, ends - starts)
    return pa.array(found, mask=~known).view(work.call.type)
