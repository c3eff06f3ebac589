"""Windows of time: which of them hold a moment. Written by rewrites, never by users.

    $tumble(at, size, offset)           the start of the one window of `size`
    $hop(at, size, slide, offset)       the starts of all windows of `size` that begin every `slide`, ascending
    $cumulate(at, size, step, offset)   the ends of the windows that grow by `step` until `size`, ascending

Lengths are whole microseconds. Windows begin at 1970-01-01 00:00:00 plus the offset, and hold their start but not
their end. NULL has no window: the start is NULL, the list is NULL.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.nodes import Literal, call, columnar

Moments = npt.NDArray[np.int64]


def tumble(at: Expr, size: Expr, offset: Expr) -> Expr:
    """Build $tumble, as a timestamp of the type of `at`."""
    at, lengths = _moment(at), _lengths(size, offset)
    return call(tumble_start, (at,), at.type, f"$tumble({at.sql}, {size.sql}, {offset.sql})", *lengths)


def hop(at: Expr, size: Expr, slide: Expr, offset: Expr) -> Expr:
    """Build $hop, as a list of timestamps."""
    at, lengths = _moment(at), _lengths(size, slide, offset)
    sql = f"$hop({at.sql}, {size.sql}, {slide.sql}, {offset.sql})"
    return call(hop_starts, (at,), pa.list_(at.type), sql, *lengths)


def cumulate(at: Expr, size: Expr, step: Expr, offset: Expr) -> Expr:
    """Build $cumulate, as a list of timestamps; `size` is a multiple of `step`."""
    at, lengths = _moment(at), _lengths(size, step, offset)
    sql = f"$cumulate({at.sql}, {size.sql}, {step.sql}, {offset.sql})"
    return call(cumulate_ends, (at,), pa.list_(at.type), sql, *lengths)


@columnar
def tumble_start(at: pa.Array, size: int, offset: int) -> pa.Array:
    moments, none = _moments(at)
    return pa.array(_floor(moments, size, offset), pa.int64(), mask=none).cast(at.type)


@columnar
def hop_starts(at: pa.Array, size: int, slide: int, offset: int) -> pa.Array:
    moments, none = _moments(at)
    last = _floor(
        moments, slide, offset
    )  # the last window that has begun; all before it, while they hold the moment
    counts = np.maximum((last - moments + size - 1) // slide + 1, 0)
    return _lists(last - (counts - 1) * slide, counts, slide, at.type, none)


@columnar
def cumulate_ends(at: pa.Array, size: int, step: int, offset: int) -> pa.Array:
    moments, none = _moments(at)
    first = _floor(moments, step, offset) + step
    counts = (_floor(moments, size, offset) + size - first) // step + 1
    return _lists(first, counts, step, at.type, none)


def _lists(
    first: Moments, counts: Moments, step: int, kind: pa.DataType, none: npt.NDArray[np.bool_]
) -> pa.Array:
    """Return for each row its list first, first + step, ...; NULL where there is none."""
    counts = np.where(none, 0, counts)
    ends = np.concatenate(([0], np.cumsum(counts)))
    each = np.repeat(first - ends[:-1] * step, counts) + np.arange(ends[-1]) * step
    offsets = (
        pa.array(ends.astype(np.int32), mask=np.append(none, False))
        if none.any()
        else pa.array(ends, pa.int32())
    )
    return pa.ListArray.from_arrays(offsets, pa.array(each).cast(kind), type=pa.list_(kind))


def _moments(at: pa.Array) -> tuple[Moments, npt.NDArray[np.bool_]]:
    """Return microseconds since 1970, and which are NULL."""
    none = np.asarray(at.is_null())
    return at.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), none


def _floor(moments: Moments, size: int, offset: int) -> Moments:
    return moments - (moments - offset) % size


def _moment(at: Expr) -> Expr:
    if t.is_timestamp(at.type):
        return at
    if at.type == t.DATE or t.is_string(at.type):
        return cast(at, t.TIMESTAMP)
    raise SpecError(f"a window takes a TIMESTAMP, {at.sql} is {t.name(at.type)}")


def _lengths(*values: Expr) -> list[int]:
    numbers = [v.node.value.as_py() for v in values if isinstance(v.node, Literal)]
    assert len(numbers) == len(values), "rewrites write numbers"
    return numbers
