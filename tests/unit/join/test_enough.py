"""Rows that are left out are never missed: in every window there is one that was kept, if there was one at all."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.join.enough import enough
from joinlib.model.joins import Join
from joinlib.model.operator import Operator
from joinlib.plan.build import build
from joinlib.plan.options import JoinOptions
from joinlib.plan.source import SourceInput
from joinlib.state.side import Arrival

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.timestamp("us", "UTC"))])
START = datetime(2024, 1, 1, tzinfo=UTC)
WINDOWS = {
    "b.t BETWEEN a.t - INTERVAL 2 SECONDS AND a.t + INTERVAL 1 SECOND": (-2, 1),
    "b.t >= a.t - INTERVAL 2 SECONDS": (-2, None),
    "b.t <= a.t + INTERVAL 1 SECOND": (None, 1),
    "TRUE": (None, None),
}


def operators(where: str) -> list[Operator]:
    """The joins that bring NULLs of both sides to what they decide about."""
    sql = f"SELECT a.k FROM a WHERE k NOT IN (SELECT k FROM b WHERE {where})"
    stage = build(sql, dict.fromkeys("ab", SourceInput(SCHEMA, "t")), JoinOptions(units=2))
    assert isinstance(stage.tree, Join)
    found = list(stage.operators)
    return [op for op in found if not op.sides[0].keys]


def part(op: Operator, times: list[int]) -> Arrival:
    columns = [pa.array([0] * len(times), pa.uint64())]
    columns += [pa.array([START + timedelta(seconds=t) for t in times], SCHEMA.field("t").type)] * (
        len(op.sides[1].schema) - 1
    )
    return Arrival(pa.record_batch(columns, op.sides[1].schema))


@pytest.mark.parametrize("where", WINDOWS)
@given(times=st.lists(st.integers(0, 18), min_size=1, max_size=12))
def test_no_window_misses_a_row_that_was_left_out(where: str, times: list[int]) -> None:
    """Whenever a row of the first input comes."""
    low, high = WINDOWS[where]
    for op in operators(where):
        kept = enough(part(op, times), op).rows
        assert kept.num_rows
        left = [(t - START).seconds for t in kept.column(1).to_pylist()] if kept.num_columns > 1 else times
        for at in range(-5, 25):
            window = -99 if low is None else at + low, 99 if high is None else at + high

            assert any(window[0] <= t <= window[1] for t in left) == any(
                window[0] <= t <= window[1] for t in times
            )


def test_few_rows_are_left_of_many() -> None:
    """Two of each stretch as long as the window, of which 100 seconds touch 12; of rows that nothing tells apart two."""
    for where, most in (("TRUE", 2), ("b.t BETWEEN a.t AND a.t + INTERVAL 9 SECONDS", 24)):
        for op in operators(where):
            assert enough(part(op, [*range(100)] * 3), op).rows.num_rows <= most


def test_where_more_is_asked_all_rows_are_needed() -> None:
    """One that lies in the window may fail the rest of the condition."""
    for op in operators("b.t < a.t AND hour(b.t) <> a.k"):
        rows = part(op, [*range(9)])

        assert enough(rows, op) is rows
