"""Functions that few ask for: base 32, checksums of messages, vectors, UTF-8, TIMESTAMPs that may not exist."""

import base64
import binascii
import hashlib
import hmac as mac
import math
from typing import Any

import pyarrow as pa

from joinlib.expr import Expr
from joinlib.expr import signatures as s
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.dates import make_timestamp
from joinlib.expr.digits import strict_hex
from joinlib.expr.nodes import NoValueError
from joinlib.expr.signatures import Signature, row
from joinlib.expr.strings import encode, strict_base64


def to_base32(value: bytes) -> str:
    return base64.b32encode(value).decode()


def from_base32(text: str) -> bytes:
    try:
        return base64.b32decode(text + "=" * (-len(text) % 8))
    except binascii.Error as error:
        raise NoValueError("malformed base32") from error


def hmac(key: bytes, message: bytes, name: str = "SHA256") -> bytes:
    known = {
        "MD5": "md5",
        "SHA1": "sha1",
        "SHA224": "sha224",
        "SHA256": "sha256",
        "SHA384": "sha384",
        "SHA512": "sha512",
    }
    found = known.get(name.upper().replace("-", ""))
    if found is None:
        raise NoValueError(f"hmac takes one of {', '.join(known)}")
    return mac.new(key, message, getattr(hashlib, found)).digest()


def to_binary(text: str, form: str = "hex") -> bytes:
    """Read text as hex, base64 or as its UTF-8."""
    known = {"hex": strict_hex, "base64": strict_base64, "utf-8": _utf8, "utf8": _utf8}
    if form.lower() not in known:
        raise NoValueError("to_binary takes 'hex', 'utf-8' or 'base64'")
    return known[form.lower()](text)


def _utf8(text: str) -> bytes:
    return encode(text, "UTF-8")


def tried_binary(text: str, form: str = "hex") -> bytes | None:
    try:
        return to_binary(text, form)
    except NoValueError:
        return None


def valid_utf8(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise NoValueError("malformed UTF-8") from error


def tried_utf8(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def mended_utf8(value: bytes) -> str:
    return value.decode(errors="replace")


def inner_product(left: list[Any], right: list[Any]) -> float | None:
    pairs = _pairs(left, right)
    return None if pairs is None else _short(math.fsum(a * b for a, b in pairs))


def l2_distance(left: list[Any], right: list[Any]) -> float | None:
    pairs = _pairs(left, right)
    return None if pairs is None else _short(math.sqrt(math.fsum((a - b) ** 2 for a, b in pairs)))


def cosine_similarity(left: list[Any], right: list[Any]) -> float | None:
    pairs = _pairs(left, right)
    if not pairs:
        return None
    sizes = math.sqrt(math.fsum(a * a for a, _ in pairs)) * math.sqrt(math.fsum(b * b for _, b in pairs))
    return _short(math.fsum(a * b for a, b in pairs) / sizes) if sizes else None


def _pairs(left: list[Any], right: list[Any]) -> list[tuple[float, float]] | None:
    if len(left) != len(right):
        raise NoValueError("two vectors have one length")
    return None if None in left or None in right else list(zip(left, right))


def _short(value: float) -> float:
    """Round to a FLOAT, which is what vectors hold."""
    return float(pa.scalar(value, pa.float32()).as_py())


def norm(values: list[Any], degree: float = 2.0) -> float | None:
    if degree not in (1.0, 2.0, math.inf):
        raise NoValueError("a vector's norm is of degree 1, 2 or infinity")
    if None in values:
        return None
    if degree == math.inf:
        return max(map(abs, values), default=0.0)
    return _short(math.fsum(map(abs, values)) if degree == 1 else math.sqrt(math.fsum(v * v for v in values)))


def normalized(values: list[Any], degree: float = 2.0) -> list[float] | None:
    size = norm(values, degree)
    return None if not size else [_short(v / size) for v in values]


def tried_timestamp(*given: Any) -> int | None:
    try:
        return make_timestamp(*given)
    except NoValueError:
        return None


def bitmap_bit(number: int) -> int:
    return (number - 1) % 32768 if number > 0 else -number % 32768


def bitmap_bucket(number: int) -> int:
    return (number - 1) // 32768 + 1 if number > 0 else -(-number // 32768)


def bitmap_count(value: bytes) -> int:
    return int.from_bytes(value, "big").bit_count()


_FLOATS = pa.list_(t.FLOAT)


def _vector(name: str, value: Expr) -> Expr:
    return cast(s.array(name, value), _FLOATS)


def _decimal(name: str, value: Expr) -> Expr:
    return s.to(pa.decimal128(16, 6))(name, value)


_PARTS = (s.INT, s.INT, s.INT, s.INT, s.INT, _decimal)
FUNCTIONS: dict[str, Signature] = {
    "to_base32": row(to_base32, t.STRING, s.binary),
    "from_base32": row(from_base32, t.BINARY, s.STRING),
    "hmac": row(hmac, t.BINARY, s.binary, s.binary, s.STRING, least=2),
    "to_binary": row(to_binary, t.BINARY, s.STRING, s.STRING, least=1),
    "try_to_binary": row(tried_binary, t.BINARY, s.STRING, s.STRING, least=1),
    "validate_utf8": row(valid_utf8, t.STRING, s.binary),
    "try_validate_utf8": row(tried_utf8, t.STRING, s.binary),
    "make_valid_utf8": row(mended_utf8, t.STRING, s.binary),
    "vector_inner_product": row(inner_product, t.FLOAT, _vector, _vector),
    "vector_l2_distance": row(l2_distance, t.FLOAT, _vector, _vector),
    "vector_cosine_similarity": row(cosine_similarity, t.FLOAT, _vector, _vector),
    "vector_norm": row(norm, t.FLOAT, _vector, s.DOUBLE, least=1),
    "vector_normalize": row(normalized, _FLOATS, _vector, s.DOUBLE, least=1),
    "try_make_timestamp": row(tried_timestamp, t.TIMESTAMP, *_PARTS, s.STRING, least=6),
    "try_make_timestamp_ltz": row(tried_timestamp, t.TIMESTAMP, *_PARTS, s.STRING, least=6),
    "try_make_timestamp_ntz": row(tried_timestamp, t.TIMESTAMP_NTZ, *_PARTS),
    "bitmap_bit_position": row(bitmap_bit, t.BIGINT, s.BIGINT),
    "bitmap_bucket_number": row(bitmap_bucket, t.BIGINT, s.BIGINT),
    "bitmap_count": row(bitmap_count, t.BIGINT, s.binary),
}
