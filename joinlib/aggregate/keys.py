"""When are two groups, or two results, the same? Law: NULL is one value, NaN is one value, -0.0 equals 0.0."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.expr import types as t
from joinlib.route import nested
from joinlib.route.content import content_hash, same


def alike(key: pa.Array) -> pa.Array:
    """Return keys with equal bits where they are equal in SQL (NaN, -0.0)."""
    if not t.is_float(key.type):
        return key
    plain = pc.add(key, pa.scalar(0.0, key.type))
    return pc.if_else(pc.is_nan(plain), pa.scalar(float("nan"), key.type), plain)


def hashes(keys: Sequence[pa.Array], rows: int) -> pa.Array:
    """Return the hash of each key; NULL hashes like zero."""
    return pa.array(content_hash(keys, rows))


def differ(left: pa.Array, right: pa.Array) -> pa.BooleanArray:
    """Return a mask of the rows in which the two columns differ; never NULL."""
    if left.type == t.NULL:
        return pa.repeat(pa.scalar(False), len(left))
    if t.is_nested(left.type):
        return pa.array(~nested.same(left, right, same))
    different = pc.fill_null(pc.not_equal(left, right), False)
    if t.is_float(left.type):
        different = pc.and_(
            different, pc.invert(pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), False))
        )
    return pc.or_(different, pc.xor(left.is_null(), right.is_null()))
