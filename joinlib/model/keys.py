"""Decides which keys a 64-bit hash identifies."""

from collections.abc import Sequence

import pyarrow as pa


def hash_is_key(types: Sequence[pa.DataType], bits: int = 64) -> bool:
    """Return whether equal hashes imply equal keys: one column of at most 64 bits is mixed by a bijection.

    types: the types of the key's columns. bits: how many top bits of the hash vary (tests force collisions).
    """
    return len(types) == 1 and bits == 64 and not _wide(types[0])


def _wide(type: pa.DataType) -> bool:
    return pa.types.is_string(type) or pa.types.is_binary(type) or pa.types.is_decimal(type)
