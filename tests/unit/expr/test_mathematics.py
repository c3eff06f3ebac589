"""Functions of doubles are the C library's, bit by bit: numpy's depend on the processor, and executors need not be alike."""

import math
from collections.abc import Callable
from random import Random

import pyarrow as pa
import pytest

from joinlib.expr.mathematics import doubles, power_of_java

DRAW = Random(7)
WIDE = [DRAW.uniform(-30, 30) for _ in range(3000)]
UNIT = [DRAW.uniform(-1, 1) for _ in range(3000)]
ABOVE = [abs(value) + 1 for value in WIDE]
ONE: list[tuple[str, Callable[[float], float], list[float]]] = [
    ("acos", math.acos, UNIT), ("acosh", math.acosh, ABOVE), ("asin", math.asin, UNIT), ("asinh", math.asinh, WIDE),
    ("atan", math.atan, WIDE), ("atanh", math.atanh, UNIT), ("cos", math.cos, WIDE), ("cosh", math.cosh, WIDE),
    ("exp", math.exp, WIDE), ("expm1", math.expm1, WIDE), ("ln", math.log, ABOVE), ("log10", math.log10, ABOVE),
    ("log1p", math.log1p, ABOVE), ("log2", math.log2, ABOVE), ("sin", math.sin, WIDE), ("sinh", math.sinh, WIDE),
    ("tan", math.tan, WIDE), ("tanh", math.tanh, WIDE),
    ("cot", lambda x: 1 / math.tan(x), WIDE), ("csc", lambda x: 1 / math.sin(x), WIDE), ("sec", lambda x: 1 / math.cos(x), WIDE),
]  # fmt: skip


@pytest.mark.parametrize(("name", "of_c", "values"), ONE, ids=[name for name, _, _ in ONE])
def test_of_one(name: str, of_c: Callable[[float], float], values: list[float]) -> None:
    assert doubles(pa.array(values), name).to_pylist() == [of_c(value) for value in values]


@pytest.mark.parametrize(("name", "of_c"), [("pow", math.pow), ("atan2", math.atan2)])
def test_of_two(name: str, of_c: Callable[[float, float], float]) -> None:
    pairs = list(zip(ABOVE, UNIT, strict=True))
    found = doubles(pa.array(ABOVE), pa.array(UNIT), name).to_pylist()
    assert found == [of_c(*pair) for pair in pairs]
    if name == "pow":
        assert [power_of_java(*pair) for pair in pairs] == found


def test_roots_of_cubes_are_exact() -> None:
    """The C library's of 27 is 3.0000000000000004."""
    roots = [float(n) for n in range(-500, 501)]
    assert doubles(pa.array([n**3 for n in roots]), "cbrt").to_pylist() == roots
    assert [math.copysign(1, n) for n in doubles(pa.array([0.0, -0.0]), "cbrt").to_pylist()] == [1, -1]
    ends = doubles(pa.array([math.inf, -math.inf, math.nan]), "cbrt").to_pylist()
    assert ends[:2] == [math.inf, -math.inf]
    assert math.isnan(ends[2])
