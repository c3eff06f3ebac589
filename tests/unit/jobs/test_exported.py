"""Figures of executors, units and inputs: what is not known is not said."""

from dataclasses import replace
from math import isclose, sqrt

from jobs.exported import metrics, values
from jobs.figures import Took, beginning
from jobs.pace import Lap, Pace
from jobs.probes import Chooser
from jobs.view import Moment
from joinlib.lookup.used import Used
from joinlib.metric.heap import Heap
from joinlib.metric.table import LEVELS, METRICS
from joinlib.model.time import NEVER
from tests.unit.jobs.test_figures import RECEIPT, Report

UNITS = 4
_TREND = [[[1.0, 0.0]] * 3] * 3
PROBES = {"orders": [[1, 2], [0, 2], [0, 1]], "known": [_TREND, _TREND, [[9, 0]] * 3, 1e-6, 1e-6]}
# Units 0 and 2 on executor 1, 1 and 3 on executor 2; unit 3 is the hot one.
RECEIPTS = tuple(
    replace(
        RECEIPT,
        unit=u,
        batch=1,
        executor=str(u % 2 + 1),
        rows_in=(6 if u == 3 else 0, 5),
        state_rows=10 * (u + 1),
        working_set=700,
        memory_limit=1000,
        highest=(8_000_000, 9_000_000),
        watermark=7_000_000,
        commit_seconds=0.01,
        runs=(1, 2, 0, 0, 0, 1, 1),
        run_bytes=(10, 20, 0, 0, 0, 40, 80),
        merged_bytes=7,
        tables=(
            Used(hits=5, misses=1, expired=1, queries=1, rows=2, bytes=20, budget=30, version=1, table="t"),
        ),
        probes=({**PROBES, "predicted": [1e-6] * 3, "measured": [2e-6] * 3},),
    )
    for u in range(UNITS)
)
FIGURES = beginning(2, 0.0).after(Report(1, RECEIPTS), 1.0).after(Report(2, RECEIPTS), 2.0)
MOMENT = Moment(
    ("orders", "payments"),
    phase="Running",
    figures=FIGURES,
    took=Took(2, 0.5, {"addBatch": 0.4}),
    steps={"addBatch": 0.8},
    done_at=100.0,
    lag={"orders": {"rows": 3}},
    pace=Pace(
        (
            Lap(90.0, 0.5, {"orders": 0}, {"orders": 50}, 0, 2),
            Lap(100.0, 0.5, {"orders": 100}, {"orders": 3}, 100, 2),
        ),
        100.0,
    ),
    there=("1", "2"),
    wanted=2,
    budget=1600,
    partitions=4,
    probes=(Chooser(0, 0, UNITS, ("orders", "payments", "refunds")),),
    loads={"t": {"version": 1, "seconds": 0.5, "at": 90.0, "kept": 0}},
    route_skew={"hash": 0.5, "rule": 0.1},
    heap=Heap(300, 800, 1.5),
    heaps={"1": Heap(100, 400, 0.5), "0": Heap(90, 400, 0.1)},
    origin=("first", 7),
    hot={"orders": 0.5},
)


def found(moment: Moment, name: str, units: int = UNITS) -> dict[tuple[str, ...], float | None]:
    return dict(values(moment, units, 2.0)[f"streamjoin_{name}"])


def test_an_executor_holds_what_its_units_hold() -> None:
    """Two units of 400 bytes each, of which 120 are sorted on disk; loads add up to that of the job."""
    assert found(MOMENT, "executor_state_bytes") == {("1",): 560, ("2",): 560}
    assert found(MOMENT, "executor_state_rows") == {("1",): 40, ("2",): 60}
    assert found(MOMENT, "executor_memory_load") == {("1",): 0.35, ("2",): 0.35}
    assert found(MOMENT, "executor_units") == {("1",): 2, ("2",): 2}
    assert found(MOMENT, "executor_capacity_bytes") == {("1",): 1600, ("2",): 1600}
    assert found(MOMENT, "executor_working_set_bytes") == {("1",): 700, ("2",): 700}
    assert found(MOMENT, "executor_memory_limit_bytes") == {("1",): 1000, ("2",): 1000}
    assert MOMENT.memory_load == 0.35
    assert found(MOMENT, "state_bytes") == {(): 1600}


def test_runs_that_are_sorted_on_disk_are_no_load() -> None:
    """With join.memory: 12 GB of state, of which 1 GB are in memory, on two executors that may hold 1 GB each."""
    units = tuple(
        replace(r, state_bytes=3 * 10**9, index_bytes=0, run_bytes=(10**8, 15 * 10**7, 10**9, 175 * 10**7))
        for r in RECEIPTS
    )
    moment = replace(MOMENT, budget=10**9, figures=beginning(2, 0.0).after(Report(1, units), 1.0))
    assert (moment.memory_load, found(moment, "state_bytes")) == (0.5, {(): 12 * 10**9})
    assert found(moment, "executor_state_bytes") == {("1",): 5 * 10**8, ("2",): 5 * 10**8}


def test_a_new_executor_holds_nothing_and_says_so() -> None:
    """Zero is known here; of its container nothing is, before its first task."""
    moment = replace(MOMENT, there=("1", "2", "3"))
    assert found(moment, "executor_state_bytes") == {("1",): 560, ("2",): 560, ("3",): 0}
    assert ("3",) not in found(moment, "executor_working_set_bytes")


def test_units_of_an_executor_that_is_gone_are_held_by_those_that_are_there() -> None:
    """If no row comes for them, no batch says where they are; the sum is known all the same."""
    assert found(replace(MOMENT, there=("1",)), "executor_state_bytes") == {("1",): 1120}
    assert found(replace(MOMENT, there=("1", "7")), "executor_state_bytes") == {("1",): 840, ("7",): 280}
    assert found(replace(MOMENT, there=("1",)), "executor_units") == {("1",): 2}
    assert found(replace(MOMENT, there=("1",)), "executor_capacity_bytes") == {("1",): 1600}
    unheard = replace(MOMENT, stored=frozenset({9}))
    assert found(unheard, "executor_state_bytes") == {}
    assert found(unheard, "state_bytes") == {(): None}


def test_the_heap_of_the_driver() -> None:
    """Unknown before the JVM has said it."""
    assert found(MOMENT, "driver_heap_bytes") == {(): 300}
    assert found(MOMENT, "driver_heap_limit_bytes") == {(): 800}
    assert found(MOMENT, "driver_gc_seconds_total") == {(): 1.5}
    assert found(replace(MOMENT, heap=None), "driver_heap_bytes") == {(): None}


def test_heaps_of_executors() -> None:
    """Of those that have told; one that has left is not shown any more."""
    assert found(MOMENT, "executor_heap_bytes") == {("1",): 100}
    assert found(MOMENT, "executor_heap_limit_bytes") == {("1",): 400}
    assert found(MOMENT, "executor_gc_seconds_total") == {("1",): 0.5}


def test_a_fork_says_whose_it_is() -> None:
    """The other job, and behind which of its batches; what is no fork has no such series."""
    assert found(MOMENT, "forked_batch") == {("first",): 7}
    assert found(replace(MOMENT, origin=None), "forked_batch") == {}


def test_skew_of_the_latest_batch() -> None:
    """All rows of orders went to one unit of four, DS = √4; payments are even."""
    skew = found(MOMENT, "input_skew")
    assert isclose(skew["orders",] or 0, sqrt(UNITS))
    assert skew["payments",] == 0
    assert found(MOMENT, "hottest_unit_ratio") == {("orders",): 1.0, ("payments",): 0.25}


def test_an_empty_batch_leaves_the_skew_as_it_was() -> None:
    """It woke no unit."""
    moment = replace(MOMENT, figures=FIGURES.after(Report(3, ()), 3.0))
    assert found(moment, "input_skew") == found(MOMENT, "input_skew")


def test_units_that_were_not_woken_had_no_rows() -> None:
    """They count in DS: one unit of eight with all rows is √8."""
    skew = found(
        replace(MOMENT, figures=beginning(2, 0.0).after(Report(1, RECEIPTS[3:]), 1.0)), "input_skew", 8
    )
    assert isclose(skew["orders",] or 0, sqrt(8))


def test_hot_keys_are_told_by_who_knows_them() -> None:
    """Where they are spread, the router; else what units have beyond the median one; nothing of rows that have no key."""
    receipts = tuple(replace(r, rows_in=(60 if r.unit == 3 else 20, 5)) for r in RECEIPTS)
    moment = replace(MOMENT, figures=beginning(2, 0.0).after(Report(1, receipts), 1.0), hot={})
    assert found(moment, "hot_key_ratio") == {("orders",): None, ("payments",): None}
    hashed = replace(moment, hashed=frozenset(moment.sources))
    assert found(hashed, "hot_key_ratio") == {("orders",): 40 / 120, ("payments",): 0}
    assert found(replace(hashed, hot={"orders": 0.25}), "hot_key_ratio")["orders",] == 0.25


def test_work_of_units_adds_up() -> None:
    """Two batches of the same."""
    assert found(MOMENT, "unit_rows_in_total")["3",] == 22
    assert found(MOMENT, "unit_rows_out_total")["0",] == 10
    assert isclose(found(MOMENT, "unit_seconds_total")["0",] or 0, 0.2)
    assert isclose(found(MOMENT, "unit_commit_seconds_total")["0",] or 0, 0.02)


def test_many_units_are_not_told_apart() -> None:
    """The number of series is bounded."""
    assert not [name for name in values(MOMENT, 2048, 2.0) if name.startswith("streamjoin_unit_")]


def test_runs_by_level() -> None:
    """Heads, then levels; what is higher than the last label counts there; what merges wrote adds up over batches."""
    assert found(MOMENT, "runs") == {(at,): n for at, n in zip(LEVELS, (4, 8, 0, 0, 0, 8), strict=True)}
    assert found(MOMENT, "run_bytes")[LEVELS[-1],] == 480
    assert found(MOMENT, "merged_bytes_total") == {(): 56}
    assert found(replace(MOMENT, stored=frozenset({9})), "runs") == {}


def test_time_of_inputs() -> None:
    """How far each is ahead of the watermark; an input without a time says nothing."""
    assert found(MOMENT, "event_time_seconds") == {("orders",): 8, ("payments",): 9}
    assert found(MOMENT, "watermark_delay_seconds") == {("orders",): 1, ("payments",): 2}
    untimed = Report(1, tuple(replace(r, highest=(NEVER, NEVER), watermark=NEVER) for r in RECEIPTS))
    moment = replace(MOMENT, figures=beginning(2, 0.0).after(untimed, 1.0))
    assert not [v for v in found(moment, "event_time_seconds").values() if v is not None]
    assert found(moment, "watermark_delay_seconds") == {}


def test_a_driver_exports_every_figure_of_the_table() -> None:
    """No more and no less; the histogram is kept by the driver itself."""
    names = {m.name for m in METRICS if m.source == "driver" and m.kind != "histogram"}
    assert values(MOMENT, UNITS, 2.0).keys() == names
    shown = {f"{f.name}_total" if f.type == "counter" else f.name for f in metrics(MOMENT, UNITS, 2.0)}
    assert shown == names
