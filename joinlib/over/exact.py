"""Exact sums of integers and decimals over frames, as differences of running sums.

Law: the sum is that of the numbers, whatever the frame; one that does not fit its type is an error.

Numbers are cut into limbs of 32 bits, each of which is summed in 64: no sum of 2**31 rows overflows.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.arrays import I64
from joinlib.expr import types as t
from joinlib.over.codes import nulls
from joinlib.over.frames import FrameEnds
from joinlib.route.content import Mask

_MASK = np.int64(2**32 - 1)
_SAFE = 2**62
_CONTEXT = Context(prec=120, rounding=ROUND_HALF_UP)


def wide(kind: pa.DataType) -> pa.DataType:
    """Return the type of sums over values of type `kind`."""
    return pa.decimal128(38, kind.scale if t.is_decimal(kind) else 0)


def sums(values: pa.Array, known: Mask, frames: FrameEnds, before: pa.Array | None = None) -> pa.Array:
    """Return the sum of known values in each frame, in the type `wide`; 0 for none.

    before: what is added to each, in that type.

    Raises:
        OverflowError: if a sum has more than 38 digits.
    """
    high = np.maximum(frames.high, frames.low)
    limbs = [_between(limb, frames.low, high) for limb in _limbs(values, known)]
    if before is not None:
        more = _limbs(before, ~nulls(before))
        limbs = _padded(limbs, len(more))
        limbs = [a + b for a, b in zip(limbs, _padded(more, len(limbs)), strict=True)]
    return _joined(limbs, wide(values.type))


def mean(total: pa.Array, counts: I64, kind: pa.DataType) -> pa.Array:
    """Return totals divided by counts, rounded half up; NULL where the count is 0.

    Raises:
        ArrowInvalid: if a mean has more digits than its type.
    """
    none = counts == 0
    if t.is_float(kind):
        with np.errstate(invalid="ignore", divide="ignore"):
            return pa.array(total.cast(pa.float64()).to_numpy(zero_copy_only=False) / counts, mask=none)
    words = _words(total)
    more = 10 ** (kind.scale - total.type.scale)
    low, high = words[0::2], words[1::2]
    if ((low >> 63) == high).all() and int(np.abs(low).max(initial=0)) * more < _SAFE // 4:
        scaled, size = np.abs(low) * more, np.where(none, 1, counts)
        found = (2 * scaled + size) // (2 * size) * np.sign(low)
        return _decimals(found, found >> 63, kind, none)
    unit = Decimal(1).scaleb(-kind.scale)
    pairs = zip(total.to_pylist(), counts.tolist(), strict=True)
    made = [_CONTEXT.divide(s, Decimal(n)).quantize(unit, context=_CONTEXT) if n else None for s, n in pairs]
    return pa.array(made, kind)


def _limbs(values: pa.Array, known: Mask) -> list[I64]:
    """Cut values into limbs, the lowest first; one limb if no sum of them can overflow."""
    if t.is_decimal(values.type):
        words = _words(values)
        low, high = words[0::2], words[1::2]
        if values.type.precision > 18:
            low, high = np.where(known, low, 0), np.where(known, high, 0)
            if not ((low >> 63) == high).all():
                return [low & _MASK, (low >> 32) & _MASK, high & _MASK, high >> 32]
    else:
        low = values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    low = np.where(known, low, 0)
    if max(abs(int(low.max(initial=0))), abs(int(low.min(initial=0)))) * (len(low) + 1) < _SAFE:
        return [low]
    return [low & _MASK, low >> 32]


def _words(values: pa.Array) -> I64:
    return np.frombuffer(values.buffers()[1], np.int64, 2 * len(values), 16 * values.offset)


def _between(values: I64, low: I64, high: I64) -> I64:
    upto = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=upto[1:])
    return upto[high] - upto[low]


def _padded(limbs: Sequence[I64], wanted: int) -> list[I64]:
    """Return the same numbers in at least two limbs, and at least so many; one limb is cut."""
    if len(limbs) == 1:
        limbs = [limbs[0] & _MASK, limbs[0] >> 32]
    if len(limbs) < wanted:
        top = limbs[-1]
        limbs = [*limbs[:-1], top & _MASK, top >> 32]
        while len(limbs) < wanted:
            limbs = [*limbs[:-1], limbs[-1] & _MASK, limbs[-1] >> 32]
    return list(limbs)


def _joined(limbs: Sequence[I64], kind: pa.DataType) -> pa.Array:
    if len(limbs) == 1:
        return _decimals(limbs[0], limbs[0] >> 63, kind)
    parts, carry = [], np.zeros(len(limbs[0]), np.int64)
    for limb in _padded(limbs, 4)[:3]:
        limb = limb + carry
        parts.append(limb & _MASK)
        carry = limb >> 32
    top = _padded(limbs, 4)[3] + carry
    if ((top >> 31) != (top >> 63)).any():
        raise OverflowError
    found = _decimals(parts[0] | parts[1] << 32, parts[2] | top << 32, kind)
    most = pa.scalar(Decimal(10**38 - 1).scaleb(-kind.scale, _CONTEXT), kind)
    if pc.any(pc.greater(pc.abs(found), most)).as_py():
        raise OverflowError
    return found


def _decimals(low: I64, high: I64, kind: pa.DataType, none: Mask | None = None) -> pa.Array:
    words = np.empty(2 * len(low), np.int64)
    words[0::2], words[1::2] = low, high
    found = pa.Array.from_buffers(kind, len(low), [None, pa.py_buffer(words)])
    return (
        found if none is None or not none.any() else pc.if_else(pa.array(none), pa.scalar(None, kind), found)
    )
