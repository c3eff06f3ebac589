"""What clauses say of the time between two inputs: whoever writes it in whichever way, state is kept no longer than is needed."""

import datetime as dt
from itertools import product

import pyarrow as pa
import pytest

from joinlib.model.joins import Join
from joinlib.model.stage import Stage
from joinlib.plan import JoinOptions, SourceInput, build

SOURCE = SourceInput(pa.schema([("k", pa.int64()), ("t", pa.timestamp("us", "UTC"))]), "t", 0)
SECOND, HOUR, DAY = 1_000_000, 3_600_000_000, 86_400_000_000
EXACT = {  # each with the least and the most of b.t - a.t, in microseconds
    "b.t BETWEEN a.t AND a.t + INTERVAL 1 HOUR": (0, HOUR),
    "b.t - a.t < INTERVAL 1 HOUR AND a.t <= b.t": (0, HOUR - 1),
    "b.t >= a.t AND b.t <= timestampadd(HOUR, 1, a.t)": (0, HOUR),
    "b.t BETWEEN dateadd(MINUTE, -30, a.t) AND a.t": (-HOUR // 2, 0),
    "b.t <= a.t + 2 * INTERVAL 30 MINUTES AND b.t > a.t": (1, HOUR),
    "b.t = a.t + INTERVAL 1 DAY": (DAY, DAY),
    "b.t <= a.t": (None, 0),
}
ROUNDED = {
    "timestampdiff(MINUTE, a.t, b.t) BETWEEN 0 AND 59": (-(60 * SECOND - 1), HOUR - 1),
    "timestampdiff(HOUR, b.t, a.t) < 1 AND b.t <= a.t": (-(2 * HOUR - 1), 0),
    "unix_timestamp(b.t) - unix_timestamp(a.t) <= 10.5": (None, 12_500_000 - 2),
    "abs(unix_timestamp(b.t) - unix_timestamp(a.t)) <= 10": (-12_000_000 + 2, 12_000_000 - 2),
    "10 > abs(unix_seconds(b.t) - unix_seconds(a.t))": (-12_000_000 + 2, 12_000_000 - 2),
    "unix_millis(b.t) = unix_millis(a.t)": (-1998, 1998),
    "CAST(b.t AS BIGINT) - CAST(a.t AS BIGINT) >= 5": (5 * SECOND - 1_999_998, None),
    "CAST(b.t AS DATE) = CAST(a.t AS DATE)": (-DAY + 1, DAY - 1),
    "datediff(b.t, a.t) BETWEEN 0 AND 2": (-DAY + 1, 3 * DAY - 1),
    "to_date(b.t) <= date_add(a.t, 1)": (None, 2 * DAY - 1),
    "to_date(b.t) > to_date(a.t) - INTERVAL 1 DAY": (-2 * DAY + 1, None),
    "date_trunc('hour', b.t) = date_trunc('hour', a.t)": (-HOUR + 1, HOUR - 1),
    "date_trunc('month', b.t) >= date_trunc('month', a.t)": (-31 * DAY + 1, None),
    "date_trunc('minute', b.t) <= a.t + INTERVAL 1 HOUR": (None, HOUR + 60 * SECOND - 1),
}
NONE = (
    "timestampdiff(MONTH, a.t, b.t) <= 1",
    "year(b.t) = year(a.t)",
    "unix_timestamp(b.t) + unix_timestamp(a.t) <= 60",
    "unix_timestamp(b.t) - unix_millis(a.t) <= 60",
    "abs(unix_timestamp(b.t) - unix_timestamp(a.t)) > 60",
    "unix_timestamp(b.t) - a.k <= 60",
    "b.t <> a.t",
    "b.t <= a.t + INTERVAL 1 HOUR OR a.k = 3",
)


def plan(on: str) -> Stage:
    return build(
        f"SELECT a.k AS k FROM a JOIN b ON a.k = b.k AND {on}",
        {"a": SOURCE, "b": SOURCE},
        JoinOptions(units=1),
    )


def bounds(stage: Stage) -> list[tuple[int | None, int | None]]:
    assert isinstance(stage.tree, Join)
    return [(bound.low_us, bound.high_us) for bound in stage.tree.bounds]


@pytest.mark.parametrize("on", EXACT)
def test_a_bound_that_says_all_replaces_its_clause(on: str) -> None:
    stage = plan(on)
    assert bounds(stage) == [EXACT[on]]
    assert isinstance(stage.tree, Join)
    assert stage.tree.predicate is None


@pytest.mark.parametrize("on", ROUNDED)
def test_a_bound_that_follows_from_a_clause_goes_with_it(on: str) -> None:
    """So that rows expire."""
    assert bounds(plan(on)) == [ROUNDED[on]]


@pytest.mark.parametrize("on", NONE)
def test_other_clauses_bound_nothing(on: str) -> None:
    assert bounds(plan(on)) == []


MOMENTS = [
    dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
    for text in (
        "1969-12-31T23:59:58.000001", "1969-12-31T23:59:59.999999", "1970-01-01T00:00:00", "1970-01-01T00:00:00.999999",
        "2024-01-31T22:59:59.999999", "2024-01-31T23:00:00", "2024-01-31T23:59:59.999999", "2024-02-01T00:00:00",
        "2024-02-01T00:00:10.499999", "2024-02-01T00:59:59.999999", "2024-02-01T01:00:00", "2024-02-29T23:59:59", "2024-03-31T00:00:00",
    )
]  # fmt: skip


@pytest.mark.parametrize("on", [*EXACT, *ROUNDED])
def test_no_pair_that_matches_is_out_of_bounds(on: str) -> None:
    """Around the ends of seconds, hours, days and months, and of 1970."""
    (bound,) = bounds(plan(on))
    pair = SourceInput(pa.schema([("k", pa.int64()), *((name, pa.timestamp("us", "UTC")) for name in "ab")]))
    condition = on.replace("a.t", "x.a").replace("b.t", "x.b")
    sql = f"SELECT x.k AS k FROM x JOIN a ON x.k = a.k WHERE {condition}"
    given = build(sql, {"x": pair, "a": SOURCE}, JoinOptions(units=1)).inputs[0]
    pairs = list(product(MOMENTS, MOMENTS))
    columns = {"x.a": pa.array([a for a, _ in pairs]), "x.b": pa.array([b for _, b in pairs])}
    assert given.filter is not None
    matches = given.filter.evaluate(lambda name: columns[name], len(pairs)).to_pylist()
    apart = [(b - a) // dt.timedelta(microseconds=1) for a, b in pairs]
    within = [inside(one, *bound) for one in apart]
    assert all(one in (True, two) for one, two in zip(within, matches, strict=True))
    if on in EXACT:
        assert within == matches
    else:
        assert any(matches)


def inside(apart: int, low: int | None, high: int | None) -> bool:
    return (low is None or low <= apart) and (high is None or apart <= high)
