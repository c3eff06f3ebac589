"""Functions of doubles and of bits. Law: Java's results; NULL, not an error, outside a logarithm's domain."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.expr import Expr
from joinlib.expr import signatures as s
from joinlib.expr import types as t
from joinlib.expr.nodes import call, columnar, constant
from joinlib.expr.rows import NoValueError
from joinlib.expr.signatures import Signature, row

F64 = npt.NDArray[np.float64]


def _of_c(name: str) -> Callable[..., F64]:
    """Return a function of the C library, which has one result everywhere: numpy's own depend on the processor."""
    kernel = getattr(pc, name)
    return lambda *given: kernel(*map(pa.array, given)).to_numpy(zero_copy_only=False)


def _quotient(value: float, by: Callable[[F64], F64]) -> Callable[[F64], F64]:
    return lambda x: value / by(x)


def _cbrt(x: F64) -> F64:
    """Compute the C library's root after another step of Newton's: by itself that of 27 is 3.0000000000000004."""
    root = np.fromiter(map(math.cbrt, x.tolist()), np.float64, len(x))
    square = root * root
    better = root - (square * root - x) / (3 * square)
    return np.where(np.isfinite(better), better, root)


def _sign(x: F64) -> F64:
    """Compute the sign; as in Java, that of -0.0 is -0.0."""
    return np.where(x == 0, x, np.sign(x))


_ATAN2 = _of_c("atan2")
_COS, _LN, _POWER, _SIN, _TAN = map(_of_c, ("cos", "ln", "power", "sin", "tan"))
_ONE: dict[str, Callable[..., Any]] = {
    **{name: _of_c(name) for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "exp", "expm1", "log10", "log1p", "log2", "sinh", "tanh",
    )},
    "cbrt": _cbrt, "cos": _COS, "cot": _quotient(1.0, _TAN), "csc": _quotient(1.0, _SIN), "degrees": np.degrees,
    "ln": _LN, "radians": np.radians, "rint": np.rint, "sec": _quotient(1.0, _COS), "sign": _sign, "signum": _sign,
    "sin": _SIN, "sqrt": np.sqrt, "tan": _TAN,
}  # fmt: skip
_TWO: dict[str, Callable[..., Any]] = {
    "atan2": lambda y, x: _ATAN2(y + 0.0, x + 0.0), "hypot": np.hypot, "log": lambda base, x: _LN(x) / _LN(base), "pow": _POWER,
    "power": _POWER,
}  # fmt: skip
_ABOVE = {
    "ln": 0.0,
    "log": 0.0,
    "log10": 0.0,
    "log2": 0.0,
    "log1p": -1.0,
}  # arguments must be greater, else NULL


def of_doubles(name: str, *given: Expr) -> Expr:
    """Build the call of a function of one or two doubles."""
    key = "ln" if name == "log" and len(given) == 1 else name
    values = [s.DOUBLE(name, value) for value in given]
    return call(doubles, tuple(values), t.DOUBLE, f"{key}({', '.join(v.sql for v in values)})", key)


@columnar
def doubles(*given: Any) -> pa.Array:
    """The kernel: columns of doubles, then the function's name."""
    *columns, name = given
    numbers = [c.fill_null(1.0).to_numpy(zero_copy_only=False) for c in columns]
    unknown = np.zeros(len(numbers[0]), np.bool_)
    for column, values in zip(columns, numbers):
        unknown |= column.is_null().to_numpy(zero_copy_only=False)
        if name in _ABOVE:
            unknown |= values <= _ABOVE[name]
    with np.errstate(all="ignore"):
        found = (_ONE.get(name) or _TWO[name])(*numbers)
    return pa.array(found, t.DOUBLE, mask=unknown)


def fixed(name: str) -> Expr:
    """Build pi() or e()."""
    return constant(pa.scalar(math.pi if name == "pi" else math.e), f"{name}()")


def power_of_java(base: float, exponent: float) -> float:
    """Java's pow: of 1 or to NaN it is NaN where C has 1."""
    if math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
        return math.nan
    return float(pc.power(pa.scalar(base), pa.scalar(exponent)).as_py())


def factorial(number: int) -> int | None:
    return math.factorial(number) if 0 <= number <= 20 else None


def width_bucket(value: float, low: float, high: float, count: int) -> int | None:
    """Number the bucket of a histogram; 0 and count + 1 are outside. NULL for a range that is none."""
    if count <= 0 or count >= 2**63 - 1 or low == high or not all(map(math.isfinite, (low, high))):
        return None
    if math.isnan(value):
        return None
    lower, upper = min(low, high), max(low, high)
    if value < lower or value > upper or (value == upper and low < high) or (value == lower and low > high):
        below = value < lower if low < high else value > upper
        return 0 if below else count + 1
    part = (value - low) / (high - low) if low < high else (low - value) / (low - high)
    return int(count * part) + 1


def bit_count(value: int) -> int:
    return (int(value) & (2**64 - 1)).bit_count()


def bit_get(value: int, at: int, kinds: tuple[pa.DataType, ...]) -> int:
    size = 1 if kinds[0] == t.BOOLEAN else kinds[0].bit_width
    if not 0 <= at < size:
        raise NoValueError("the position of a bit is from 0 to the width of the type less 1")
    return value >> at & 1


def _wrapped(value: int, bits: int) -> int:
    value &= 2**bits - 1
    return value - 2**bits if value >> bits - 1 else value


def shift_left(value: int, by: int, kinds: tuple[pa.DataType, ...]) -> int:
    bits = kinds[0].bit_width
    return _wrapped(value << by % bits, bits)


def shift_right(value: int, by: int, kinds: tuple[pa.DataType, ...]) -> int:
    return value >> by % kinds[0].bit_width


def shift_right_unsigned(value: int, by: int, kinds: tuple[pa.DataType, ...]) -> int:
    bits = kinds[0].bit_width
    return _wrapped((value & 2**bits - 1) >> by % bits, bits)


def bit_and(left: int, right: int) -> int:
    return left & right


def bit_or(left: int, right: int) -> int:
    return left | right


def bit_xor(left: int, right: int) -> int:
    return left ^ right


def bit_not(value: int) -> int:
    return ~value


def _shifted(name: str, value: Expr) -> Expr:
    """Shifts are of INT or BIGINT."""
    value = s.whole_number(name, value)
    return value if value.type == t.BIGINT else s.INT(name, value)


def _any_bits(name: str, value: Expr) -> Expr:
    return value if value.type == t.BOOLEAN else s.whole_number(name, value)


def _wider(*kinds: pa.DataType) -> pa.DataType:
    return t.widest_number(*kinds)


def _first(kind: pa.DataType, *_: pa.DataType) -> pa.DataType:
    return kind


_BITS = dict(zip(("&", "|", "^"), (bit_and, bit_or, bit_xor)))
_SHIFTS = {"<<": shift_left, ">>": shift_right, ">>>": shift_right_unsigned}
SIGNS = {
    **{sign: row(of, _wider, s.whole_number, s.whole_number) for sign, of in _BITS.items()},
    **{sign: row(of, _first, _shifted, s.INT, kinds=True) for sign, of in _SHIFTS.items()},
    "~": row(bit_not, _first, s.whole_number),
}  # operators, by how they are written
FUNCTIONS: dict[str, Signature] = {
    "pow": row(power_of_java, t.DOUBLE, s.DOUBLE, s.DOUBLE),
    "power": row(power_of_java, t.DOUBLE, s.DOUBLE, s.DOUBLE),
    "factorial": row(factorial, t.BIGINT, s.INT),
    "width_bucket": row(width_bucket, t.BIGINT, s.DOUBLE, s.DOUBLE, s.DOUBLE, s.BIGINT),
    "bit_count": row(bit_count, t.INT, _any_bits),
    "bit_get": row(bit_get, t.TINYINT, s.whole_number, s.INT, kinds=True),
    "getbit": row(bit_get, t.TINYINT, s.whole_number, s.INT, kinds=True),
    "shiftleft": SIGNS["<<"],
    "shiftright": SIGNS[">>"],
    "shiftrightunsigned": SIGNS[">>>"],
}
TWO = ("atan2", "hypot")  # these take two arguments, log one or two
BOTH = (*TWO, "log")
BUILT = {name: partial(of_doubles, name) for name in (*_ONE, *_TWO) if name not in FUNCTIONS}
