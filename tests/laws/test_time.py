"""Laws of time: who is waited for, who is late, what comes out at the end, what is forgotten."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

from joinlib.model.stage import Stage
from joinlib.model.time import ALWAYS, NEVER
from joinlib.model.tuning import Tuning
from joinlib.model.watermark import Tick
from joinlib.plan.build import build
from joinlib.plan.options import JoinOptions
from joinlib.plan.source import SourceInput
from tests.laws.harness import Flow

UTC = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("k", pa.int64()), ("t", UTC)])
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
BOUND = "b.t BETWEEN a.t AND a.t + INTERVAL 2 SECONDS"
INNER = f"SELECT a.k, b.t FROM a JOIN b ON a.k = b.k AND {BOUND}"
LEFT = f"SELECT a.k, b.k AS bk FROM a LEFT JOIN b ON a.k = b.k AND {BOUND}"
FULL = f"SELECT a.k, b.k AS bk FROM a FULL JOIN b ON a.k = b.k AND {BOUND}"
ANTI = f"SELECT a.k FROM a LEFT ANTI JOIN b ON a.k = b.k AND {BOUND}"
PLAIN = "SELECT a.k, b.k AS bk FROM a LEFT JOIN b ON a.k = b.k"


def stage(sql: str, units: int = 2, delay_s: int = 0, names: str = "ab", **more: int) -> Stage:
    return build(
        sql,
        dict.fromkeys(names, SourceInput(SCHEMA, "t", delay_s * 1_000_000)),
        JoinOptions(units=units, **more),
    )


def at(*rows: tuple[int | None, int | None]) -> pa.RecordBatch:
    """Rows (key, seconds)."""
    times = [None if s is None else START + dt.timedelta(seconds=s) for _, s in rows]
    return pa.record_batch([pa.array([k for k, _ in rows], pa.int64()), pa.array(times, UTC)], SCHEMA)


def stored(flow: Flow) -> int:
    return sum(side.rows for m in flow.manifests for side in m.sides)


@pytest.mark.parametrize("sql", [LEFT, FULL, ANTI])
def test_a_silent_input_holds_everything_back(sql: str, tmp_path: Path) -> None:
    """While b never speaks no row of a comes out alone and none is lost; once it speaks, all do."""
    flow = Flow(stage(sql), tmp_path)

    assert [r for n in range(9) for r in flow.batch({"a": at((n, 100 * n))})] == []
    assert {m.watermark for m in flow.manifests} == {NEVER} and stored(flow) == 9
    met = [r[0] for r in flow.batch({"b": at((3, 301), (99, 801))}) if r[0] is not None]
    assert sorted(met) == [
        k for k in range(8) if k != 3 or sql != ANTI
    ]  # the watermark is now 800: 8 may meet somebody


def test_an_idle_input_is_not_waited_for(tmp_path: Path) -> None:
    """Said to be idle, a silent input leaves the minimum; what it brings behind the watermark is late and counted."""
    flow = Flow(stage(LEFT), tmp_path)

    assert flow.batch({"a": at((1, 0), (2, 50))}, idle="b") == [(1, None)]
    assert flow.batch({"b": at((1, 1), (2, 51))}) == [(2, 2)]
    assert flow.late == {"a": 0, "b": 1}


def test_late_rows_are_left_out_and_counted_by_input(tmp_path: Path) -> None:
    """A row behind the watermark of the batch before joins nothing; one in the batch that moves the watermark does."""
    flow = Flow(stage(INNER), tmp_path)
    flow.batch({"a": at((1, 5), (1, 0)), "b": at((1, 5))})

    assert flow.batch({"a": at((1, 3), (1, 4), (1, 5)), "b": at((1, 4))}) == [
        (1, START + dt.timedelta(seconds=5))
    ]
    assert flow.late == {"a": 2, "b": 1}
    assert {i: sum(m.rows[i] for m in flow.manifests) for i in (0, 1)} == {0: 3, 1: 1}


def test_the_delay_is_allowed(tmp_path: Path) -> None:
    """Rows as late as the delay are taken, and find partners that waited for them."""
    flow = Flow(stage(INNER, delay_s=10), tmp_path)
    flow.batch({"a": at((1, 2)), "b": at((9, 12))})
    flow.batch({"a": at((9, 12))})

    assert flow.batch({"b": at((1, 2))}) == [(1, START + dt.timedelta(seconds=2))]
    assert flow.late == {"a": 0, "b": 0}


def test_a_row_without_a_time_matches_nothing_and_is_never_late(tmp_path: Path) -> None:
    """NULL is outside every bound: inner rows vanish, outer rows come out at once, the watermark does not care."""
    inner, left = Flow(stage(INNER), tmp_path / "1"), Flow(stage(LEFT), tmp_path / "2")
    for flow in (inner, left):
        flow.batch({"a": at((9, 50)), "b": at((9, 50))})

    assert inner.batch({"a": at((1, None)), "b": at((1, 50), (1, None))}) == []
    assert left.batch({"a": at((1, None)), "b": at((1, 50), (1, None))}) == [(1, None)]
    assert left.late == inner.late == {"a": 0, "b": 0}


def test_units_without_rows_keep_up(tmp_path: Path) -> None:
    """Ticks move the watermark of units that get no rows, and their waiting rows come out."""
    flow = Flow(stage(LEFT, units=8), tmp_path)
    flow.batch({"a": at(*((k, 0) for k in range(20)))})

    assert sorted(flow.batch({"a": at((99, 10)), "b": at((99, 10))}))[:-1] == [(k, None) for k in range(20)]
    assert len({m.watermark for m in flow.manifests}) == 1


@pytest.mark.parametrize("sql", [LEFT, FULL, ANTI, PLAIN])
def test_closing_releases_each_row_once(sql: str, tmp_path: Path) -> None:
    """What waited comes out when all inputs are closed, and never again; state is empty then."""
    flow = Flow(stage(sql), tmp_path)
    flow.batch({"a": at((1, 0), (None, 0), (2, 0)), "b": at((2, 1))})

    first = flow.batch({}, closed=True)
    assert sorted(r[0] for r in first if r[0] is not None) == [1]
    assert flow.batch({}, closed=True) == []
    assert stored(flow) == 0 and {m.watermark for m in flow.manifests} == {ALWAYS}


def test_one_closed_input_does_not_close_the_others(tmp_path: Path) -> None:
    """Only when all are closed is it over; a closed one is not waited for."""
    flow = Flow(stage(LEFT), tmp_path)
    closed = [Tick(1, closed=True)]

    assert flow.batch({"a": at((1, 0))}, ticks=closed) == []
    assert flow.batch({"a": at((2, 100))}, ticks=closed) == [(1, None)]
    assert flow.batch({}, closed=True) == [(2, None)]


def test_inner_joins_run_on_after_closing(tmp_path: Path) -> None:
    """Closing says nothing to an inner join: what comes later meets what was stored."""
    flow = Flow(stage(INNER), tmp_path)
    flow.batch({"a": at((1, 0), (1, 5))})
    flow.batch({}, closed=True)

    assert flow.batch({"b": at((1, 6))}) == [(1, START + dt.timedelta(seconds=6))]
    assert flow.late == {"a": 0, "b": 0}


def test_expiry_drops_runs(tmp_path: Path) -> None:
    """A window's state does not grow with the stream: whole runs go, and in time their files."""
    flow = Flow(stage(INNER, units=1), tmp_path, Tuning(spans=2, retain_batches=2))
    sizes, files = [], []
    for n in range(60):
        flow.batch({name: at((1, n), (2, n)) for name in "ab"})
        sizes.append(stored(flow))
        files.append(len(flow.files()))

    assert max(sizes[10:]) <= 2 * 2 * 6  # two inputs, two rows a second, the window and the spans of two runs
    assert max(files[10:]) <= 30
    assert sum(flow.run([]).values()) == 0


def test_retention_is_a_predicate(tmp_path: Path) -> None:
    """Rows further apart than the retention never match, whether or not the older one is still there."""
    sql = "SELECT a.t, b.t AS bt FROM a JOIN b ON a.k = b.k"
    for tuning in (Tuning(), Tuning(seal_rows=1, spans=1)):
        flow = Flow(stage(sql, retention_us=3_000_000), tmp_path / str(tuning.spans), tuning)
        rows = {"a": [at((1, n)) for n in range(12)], "b": [at((1, n)) for n in range(12)]}
        found = flow.run([{"a": a, "b": b} for a, b in zip(rows["a"], rows["b"])])

        assert len(found) == sum(abs(x - y) <= 3 for x in range(12) for y in range(12))


def test_pairs_are_kept_for_a_left_join_above(tmp_path: Path) -> None:
    """A bound of a LEFT JOIN is no bound between the inputs of its left side."""
    sql = (
        "SELECT a.k, b.k AS bk, c.k AS ck FROM a JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k"
        " AND c.t BETWEEN a.t AND a.t + INTERVAL 1 SECOND AND c.t BETWEEN b.t AND b.t + INTERVAL 1 SECOND"
    )
    flow = Flow(stage(sql, names="abc"), tmp_path, Tuning(seal_rows=1))
    for n in (0, 50):
        flow.batch({"a": at((n, n)), "b": at((99, n)), "c": at((99, n))})

    assert flow.run([{"b": at((0, 60))}]) == {(0, 0, None): 1}


def test_a_bound_within_the_left_side(tmp_path: Path) -> None:
    """A time bound between two inputs of the left side decides what matches, not what stays."""
    sql = "SELECT a.k, c.k AS ck FROM a JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k AND b.t <= a.t"
    flow = Flow(stage(sql, names="abc"), tmp_path)
    flow.batch({"c": at((1, 0), (2, 0))})

    assert flow.run([{"a": at((1, 5), (2, 5)), "b": at((1, 5), (2, 6))}]) == {(1, 1): 1, (2, None): 1}


def test_a_hot_key_comes_in_bounded_frames(tmp_path: Path) -> None:
    """200 x 200 rows of one key: every pair once, never more than the allowed pairs at a time."""
    flow = Flow(
        stage("SELECT a.t, b.t AS bt FROM a JOIN b ON a.k = b.k", units=1), tmp_path, Tuning(probe_pairs=64)
    )
    flow.batch({"a": at(*((1, s) for s in range(200)))})
    flow.batch({"a": at(*((1, s) for s in range(200, 250)))})

    found = flow.batch({"b": at(*((1, s) for s in range(200)))})
    assert len(found) == len(set(found)) == 250 * 200
    assert flow.largest <= 64
