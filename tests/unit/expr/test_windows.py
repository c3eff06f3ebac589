"""Windows of time, against a loop that tries them all."""

import random

import pyarrow as pa
import pytest

from joinlib.expr import Expr, ref
from joinlib.expr import types as t
from joinlib.expr.behind import behind
from joinlib.expr.functions import function
from joinlib.expr.nodes import constant

AT = ref("at", t.TIMESTAMP_NTZ)
SHAPES = [(10, 10, 0), (10, 5, 0), (10, 3, 1), (3, 10, 2), (7, 7, -4), (1, 1, 0), (12, 4, 5)]


def number(value: int) -> Expr:
    return constant(pa.scalar(value, t.BIGINT), str(value))


def moments(draw: random.Random) -> list[int | None]:
    return [None if draw.random() < 0.1 else draw.randint(-100, 100) for _ in range(200)]


def values(made: Expr, at: list[int | None]) -> list:
    column = pa.array(at, pa.int64()).cast(t.TIMESTAMP_NTZ)
    found = made.evaluate(lambda _: column, len(at))
    found.validate(full=True)
    assert found.type == made.type
    plain = found.cast(pa.list_(pa.int64()) if pa.types.is_list(found.type) else pa.int64())
    return plain.to_pylist()


def starts(moment: int, size: int, slide: int, offset: int) -> list[int]:
    """All starts of windows that hold the moment."""
    return [
        s for s in range(moment - size, moment + 1) if (s - offset) % slide == 0 and s <= moment < s + size
    ]


@pytest.mark.parametrize(("size", "slide", "offset"), SHAPES)
def test_hop(size: int, slide: int, offset: int) -> None:
    at = moments(random.Random(size))
    made = function("$hop", [AT, number(size), number(slide), number(offset)])
    assert values(made, at) == [None if m is None else starts(m, size, slide, offset) for m in at]


@pytest.mark.parametrize(("size", "_", "offset"), SHAPES)
def test_tumble(size: int, _: int, offset: int) -> None:
    at = moments(random.Random(size))
    made = function("$tumble", [AT, number(size), number(offset)])
    assert values(made, at) == [None if m is None else starts(m, size, size, offset)[0] for m in at]


@pytest.mark.parametrize(("size", "step", "offset"), [(12, 4, 0), (10, 10, 3), (6, 1, -2)])
def test_cumulate(size: int, step: int, offset: int) -> None:
    at = moments(random.Random(size))
    made = function("$cumulate", [AT, number(size), number(step), number(offset)])

    def ends(m: int) -> list[int]:
        start = starts(m, size, size, offset)[0]
        return [e for e in range(start + step, start + size + 1, step) if e > m]

    assert values(made, at) == [None if m is None else ends(m) for m in at]


def test_no_rows_and_only_nulls() -> None:
    made = function("$hop", [AT, number(10), number(5), number(0)])
    assert values(made, []) == []
    assert values(made, [None]) == [None]


@pytest.mark.parametrize("name", ["$tumble", "$hop", "$cumulate"])
def test_nothing_is_further_behind_than_said(name: str) -> None:
    numbers = [number(n) for n in ((10, 0) if name == "$tumble" else (10, 5, 0))]
    made = function(name, [AT, *numbers])
    limit = behind(made, {"at": 7})
    assert limit == {"$tumble": 16, "$hop": 16, "$cumulate": 6}[name]
    lists = [v if isinstance(v, list) else [v] for v in values(made, list(range(43, 100)))]
    assert min(e for one in lists for e in one) >= 50 - limit
    assert behind(made, {}) is None
