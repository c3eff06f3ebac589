"""Which comparisons the index of a join without an equality is asked."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from joinlib.index.inequality import Op, build
from joinlib.index.permuted import PermutedRun
from joinlib.join import theta
from joinlib.model.operator import Operator
from joinlib.plan import JoinOptions, SourceInput
from joinlib.plan.blocks import pipeline

INPUT = SourceInput(pa.schema([("v", pa.int64()), ("t", pa.timestamp("us", "UTC"))]), "t", 0)
BOUND = " AND b.t BETWEEN a.t - INTERVAL 5 SECONDS AND a.t + INTERVAL 1 SECOND"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many comparisons each run was asked."""
    seen: list[int] = []
    whole = PermutedRun.probe

    def probe(self: PermutedRun, *arguments: Any, **more: Any) -> Any:
        seen.append(len(self.shape.ops))
        return whole(self, *arguments, **more)

    monkeypatch.setattr(PermutedRun, "probe", probe)
    return seen


@pytest.mark.parametrize(
    ("window", "comparisons"),
    [
        pytest.param(100_000, 1, id="a run inside the window"),
        pytest.param(1_000, 1, id="a run at its edge"),
        pytest.param(10, 3, id="a run that is hardly in it"),
    ],
)
def test_a_window_is_asked_where_it_leaves_out_nearly_all(
    asked: list[int], window: int, comparisons: int
) -> None:
    number = np.arange(10_000)
    run = build([number % 7, number, number], [Op.LT, Op.GE, Op.LE])
    probes = run.shape.prepare([number % 7, number + window, number - window])
    list(theta.matches(run, probes, 2, 1_000_000))
    assert asked == [comparisons]


def test_a_window_alone_is_always_asked(asked: list[int]) -> None:
    number = np.arange(100)
    run = build([number, number], [Op.GE, Op.LE])
    found = theta.matches(run, run.shape.prepare([number + 100, number - 100]), 2, 1_000_000)
    assert sum(len(rows) for _, rows in found) == 100 * 100
    assert asked == [2]


TIMED, NUMBERED = {"a": INPUT, "b": INPUT}, dict.fromkeys("ab", SourceInput(INPUT.schema, numbered=True))


@pytest.mark.parametrize(
    ("on", "others", "inputs", "options"),
    [
        ("a.v < b.v", 1, TIMED, {}),
        ("a.v < b.v" + BOUND, 1, TIMED, {}),
        ("a.v <> b.v AND ABS(a.v - b.v) < 3" + BOUND, 3, TIMED, {"retention_us": 10**7}),
        ("a.v < b.v AND a.t < b.t", 1, TIMED, {"retention_us": 10**7}),
        ("TRUE" + BOUND, 0, TIMED, {}),
        ("a.v < b.v", 1, NUMBERED, {"window_rows": 10}),
    ],
)
def test_limits_of_time_are_the_last_conditions(
    on: str, others: int, inputs: dict[str, SourceInput], options: dict[str, int]
) -> None:
    """On this it stands that they can be left out."""
    made = pipeline(f"SELECT a.v AS x, b.v AS y FROM a JOIN b ON {on}", inputs, JoinOptions(**options))
    op = made.stages[0].root
    assert isinstance(op, Operator)
    timed = {column for bound in op.bounds for column in (bound.left, bound.right)}
    assert len(op.index_conditions) - theta._limits(op) == others
    assert all({c.left.sql, c.right.sql} <= timed for c in op.index_conditions[others:])
