"""Law: partials made by panes are those that the rows of all windows give."""

import datetime as dt
from functools import cache
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.aggregate.panes import PanePartials
from joinlib.aggregate.partial import Partials
from joinlib.model.inputs import InputPlan
from joinlib.model.panes import panes_of
from joinlib.model.stage import GroupStage
from joinlib.plan.blocks import pipeline
from joinlib.plan.options import JoinOptions
from joinlib.plan.source import SourceInput
from joinlib.route.split import projected

ROWS = pa.schema(
    [("k", pa.int64()), ("v", pa.decimal128(9, 2)), ("s", pa.string()), ("ts", pa.timestamp("us", "UTC"))]
)
CALLS = "count(*) AS n, count(v) AS c, sum(v) AS s, avg(k) AS a, min(s) AS low, max(v) AS high, sum(k + 1) FILTER (WHERE s > 'a') AS f"
BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@cache
def planned(sql: str) -> tuple[GroupStage, InputPlan]:
    """The first stage, which groups, and its input."""
    stage = pipeline(sql, {"a": SourceInput(ROWS, time="ts")}, JoinOptions(units=2), mode="changelog").stages[
        0
    ]
    assert isinstance(stage, GroupStage)
    return stage, stage.inputs[0]


# Also such that do not begin at whole multiples, or are no multiple of their slide.
WINDOWS = [
    *(
        f"HOP(TABLE a, DESCRIPTOR(ts), INTERVAL {slide} SECONDS, INTERVAL {size} SECONDS, INTERVAL {offset} SECONDS)"
        for slide, size, offset in [(2, 6, 0), (3, 10, 1), (4, 6, 3), (5, 5, 2), (7, 20, 9)]
    ),
    *(
        f"CUMULATE(a, ts, INTERVAL {step} SECONDS, INTERVAL {size} SECONDS)"
        for step, size in [(2, 6), (3, 3), (1, 9)]
    ),
]
values = st.tuples(
    st.sampled_from([1, 2, None]),
    st.one_of(st.none(), st.decimals(-99, 99, places=2)),
    st.sampled_from(["", "a", "b", None]),
    st.one_of(
        st.none(),
        st.integers(-9_000_000, 9_000_000).map(lambda us: BEGIN + dt.timedelta(microseconds=us * 3)),
    ),
)


@given(
    st.sampled_from(WINDOWS),
    st.sampled_from(["k, window_start, window_end", "window_end", "k", "upper(s), window_start"]),
    st.sampled_from(["", "WHERE v > 0", "WHERE k = 1 OR s IS NULL"]),
    st.lists(values, max_size=40),
    st.integers(0, 40),
)
def test_partials(table: str, keys: str, where: str, drawn: list[tuple[object, ...]], cut: int) -> None:
    stage, plan = planned(f"SELECT {CALLS} FROM TABLE({table}) {where} GROUP BY {keys}")
    panes = panes_of(plan, stage.grouping)
    assert panes is not None
    by_window, by_pane = Partials(stage.grouping), PanePartials(panes, stage.grouping)
    for start, end in pairwise([0, min(cut, len(drawn)), len(drawn)]):
        rows = pa.record_batch([pa.array(column) for column in _columns(drawn[start:end])], schema=ROWS)
        by_window.add(projected(plan, rows))
        by_pane.add(projected(panes.rows, rows))
    assert _sorted(by_pane.blocks()) == _sorted(by_window.blocks())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(DISTINCT v) AS n FROM TABLE(HOP(a, ts, INTERVAL 2 SECONDS, INTERVAL 6 SECONDS)) GROUP BY window_end",
        "SELECT count(*) AS n FROM TABLE(HOP(a, ts, INTERVAL 2 SECONDS, INTERVAL 6 SECONDS)) WHERE window_end > ts GROUP BY k",
        "SELECT max(window_end) AS n FROM TABLE(HOP(a, ts, INTERVAL 2 SECONDS, INTERVAL 6 SECONDS)) GROUP BY k",
        "SELECT count(*) AS n FROM TABLE(TUMBLE(a, ts, INTERVAL 6 SECONDS)) GROUP BY window_end",
    ],
)
def test_where_windows_are_more_than_keys(sql: str) -> None:
    """There every row is taken with each of its windows."""
    stage, plan = planned(sql)
    assert panes_of(plan, stage.grouping) is None


def _columns(rows: list[tuple[object, ...]]) -> list[list[object]]:
    return [[row[n] for row in rows] for n in range(len(ROWS))]


def _sorted(blocks: object) -> list[object]:
    return sorted((str(row) for _, block in blocks for row in block.to_pylist()))  # type: ignore[attr-defined]
