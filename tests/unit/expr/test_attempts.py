"""try_divide and try_mod: what the computation gives row by row, and NULL where it has no value; zeros cost nothing extra."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from joinlib.errors import SpecError
from joinlib.expr import Expr, ref
from joinlib.expr.arithmetic import arithmetic
from joinlib.expr.attempts import BUILT

VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [-128, -7, 0, 1, 100, None],
    pa.int64(): [-(2**63), -7, 0, 1, 100, None],
    pa.float64(): [-2.5, -0.0, 0.0, 3.0, float("nan"), float("inf"), None],
    pa.decimal128(10, 2): [Decimal("-2.50"), Decimal(0), Decimal("3.00"), None],
}
DIVISORS: dict[pa.DataType, list[Any]] = {
    kind: [-1, 0, 2, None]
    if pa.types.is_integer(kind)
    else [Decimal(-1), Decimal(0), Decimal("0.01"), None]
    if pa.types.is_decimal(kind)
    else [-1.0, 0.0, -0.0, 2.0, float("nan"), None]
    for kind in VALUES
}


def alone(body: Expr, pairs: list[tuple[Any, Any]], kind: pa.DataType) -> Iterator[Any]:
    for left, right in pairs:
        columns = {"a": pa.array([left], kind), "b": pa.array([right], kind)}
        try:
            found = body.evaluate(columns.__getitem__, 1)
            yield found.to_pylist()[0]
        except SpecError:
            yield None


@pytest.mark.parametrize("kind", VALUES, ids=str)
@pytest.mark.parametrize(("name", "sign"), [("try_divide", "/"), ("try_mod", "%")])
def test_each_row_as_it_is_alone(name: str, sign: str, kind: pa.DataType) -> None:
    pairs = [(left, right) for left in VALUES[kind] for right in DIVISORS[kind]]
    columns = {"a": pa.array([a for a, _ in pairs], kind), "b": pa.array([b for _, b in pairs], kind)}
    tried = BUILT[name](ref("a", kind), ref("b", kind))
    wanted = [*alone(arithmetic(sign, ref("a", kind), ref("b", kind)), pairs, kind)]
    found = tried.evaluate(columns.__getitem__, len(pairs)).to_pylist()
    assert [*map(str, found)] == [*map(str, wanted)]


@pytest.mark.parametrize("name", ["try_divide", "try_mod"])
def test_zeros_are_no_failures(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of many is divided by once."""
    calls = []
    whole = Expr.evaluate

    def counted(self: Expr, *arguments: Any) -> Any:
        calls.append(self.sql)
        return whole(self, *arguments)

    tried = BUILT[name](ref("a", pa.int64()), ref("b", pa.int64()))
    monkeypatch.setattr(Expr, "evaluate", counted)
    columns = {"a": pa.array(range(1000)), "b": pa.array([n % 2 for n in range(1000)])}
    assert tried.evaluate(columns.__getitem__, 1000).null_count == 500
    assert len(calls) == 2, "the call, and what it tries"
