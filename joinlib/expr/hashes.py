"""Hashes of values, one row at a time. Law: the same numbers as Spark's, bit for bit."""

import hashlib
import struct
import zlib
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import xxhash

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr import signatures as s
from joinlib.expr import types as t
from joinlib.expr.signatures import Signature, row

_U32 = 2**32 - 1
_SEED = 42
_EXACT = Context(prec=40)  # a DECIMAL has at most 38 digits, the context of Python's own keeps 28
Bytes = Callable[[bytes, int], int]


def md5(value: bytes) -> str:
    return hashlib.md5(value).hexdigest()


def sha1(value: bytes) -> str:
    return hashlib.sha1(value).hexdigest()


def sha2(value: bytes, bits: int) -> str | None:
    of = {
        0: hashlib.sha256,
        224: hashlib.sha224,
        256: hashlib.sha256,
        384: hashlib.sha384,
        512: hashlib.sha512,
    }
    return of[bits](value).hexdigest() if bits in of else None


def crc32(value: bytes) -> int:
    return zlib.crc32(value)


def xxhash64(*given: Any) -> int:
    """Hash values one after the other, each with the hash before it as seed."""
    *values, kinds = given
    return _signed(_chain(values, kinds, _xxhash, False), 64)


def murmur3(*given: Any) -> int:
    *values, kinds = given
    return _signed(_chain(values, kinds, _murmur, True), 32)


def _chain(values: Any, kinds: Any, of: Bytes, murmur: bool, seed: int = _SEED) -> int:
    for value, kind in zip(values, kinds):
        if value is not None:
            seed = _hashed(value, kind, of, murmur, seed)
    return seed


def _hashed(value: Any, kind: pa.DataType, of: Bytes, murmur: bool, seed: int) -> int:
    if pa.types.is_list(kind):
        return _chain(value, [kind.value_type] * len(value), of, murmur, seed)
    if t.is_struct(kind):
        return _chain(value.values(), t.parts(kind), of, murmur, seed)
    return of(_bytes(value, kind), seed)


def _bytes(value: Any, kind: pa.DataType) -> bytes:
    """Return what is hashed of a value: small whole numbers in 4 bytes, others in 8."""
    if kind in (t.BOOLEAN, t.TINYINT, t.SMALLINT, t.INT, t.DATE):
        return struct.pack("<i", int(value))
    if t.is_float(kind):
        return struct.pack("<f" if kind == t.FLOAT else "<d", value + 0.0)
    if t.is_decimal(kind):
        whole = int(Decimal(value).scaleb(kind.scale, _EXACT))
        return struct.pack("<q", whole) if kind.precision <= 18 else _big(whole)
    if isinstance(value, int):
        return struct.pack("<q", value)
    return value.encode() if isinstance(value, str) else bytes(value)


def _big(number: int) -> bytes:
    bits = number.bit_length() if number >= 0 else (number + 1).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def _signed(number: int, bits: int) -> int:
    return number - (1 << bits) if number >> bits - 1 else number


def _xxhash(value: bytes, seed: int) -> int:
    return xxhash.xxh64_intdigest(value, seed)


def _murmur(value: bytes, seed: int) -> int:
    """Spark's Murmur3: the bytes after the last whole word are words of their own."""
    end = len(value) // 4 * 4
    words = [*struct.unpack(f"<{end // 4}I", value[:end]), *(b - 256 * (b > 127) & _U32 for b in value[end:])]
    for word in words:
        word = word * 0xCC9E2D51 & _U32
        word = (word << 15 | word >> 17) & _U32
        seed ^= word * 0x1B873593 & _U32
        seed = (seed << 13 | seed >> 19) & _U32
        seed = seed * 5 + 0xE6546B64 & _U32
    seed ^= len(value)
    seed = (seed ^ seed >> 16) * 0x85EBCA6B & _U32
    seed = (seed ^ seed >> 13) * 0xC2B2AE35 & _U32
    return seed ^ seed >> 16


def _hashable(name: str, value: Expr) -> Expr:
    todo = [value.type]
    while todo:
        kind = todo.pop()
        if pa.types.is_map(kind):
            raise SpecError(f"{name}: a MAP has no hash, since its entries have no order")
        todo += t.parts(kind)
    return value


def _of_all(of: Callable[..., int], kind: pa.DataType) -> Signature:
    return row(of, kind, _hashable, least=1, repeats=True, lenient=True, kinds=True)


FUNCTIONS: dict[str, Signature] = {
    "md5": row(md5, t.STRING, s.binary),
    "sha": row(sha1, t.STRING, s.binary),
    "sha1": row(sha1, t.STRING, s.binary),
    "sha2": row(sha2, t.STRING, s.binary, s.INT),
    "crc32": row(crc32, t.BIGINT, s.binary),
    "hash": _of_all(murmur3, t.INT),
    "xxhash64": _of_all(xxhash64, t.BIGINT),
}
