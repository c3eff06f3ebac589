"""What happens while rows flow: folders that grow, silence, late rows, closing, running on, many units."""

import os
from collections import Counter
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark import TaskContext

from joinlib.direct.report import Report
from joinlib.engine.task import JoinTask
from joinlib.errors import SpecError
from joinlib.model.tuning import Tuning
from joinlib.spark.job import RunningJob
from tests.spark.trial import Trial, plain, rows_of, until

pytestmark = pytest.mark.spark

PAIR = "k BIGINT, v BIGINT"
TIMED = "k BIGINT, at TIMESTAMP"
INNER = "SELECT o.k AS k, o.v AS ov, p.v AS pv FROM orders o JOIN payments p ON o.k = p.k"
LEFT = "SELECT o.k AS k, o.v AS ov, p.v AS pv FROM orders o LEFT JOIN payments p ON o.k = p.k"
NEAR = (
    "SELECT o.k AS k, o.at AS oat, p.at AS pat FROM orders o LEFT JOIN payments p ON o.k = p.k"
    " AND p.at BETWEEN o.at AND o.at + INTERVAL 10 MINUTES"
)


def pairs(trial: Trial, **options: Any) -> Trial:
    for name in ("orders", "payments"):
        trial.input(name, PAIR, **options)
    return trial


def rows(start: int, count: int) -> list[tuple[int, int]]:
    return [(v % 7, v) for v in range(start, start + count)]


def at(minute: float) -> datetime:
    return datetime(2026, 1, 1) + timedelta(minutes=minute)  # noqa: DTZ001 - as in most files, no zone


def read(reports: list[Report]) -> int:
    return sum(r.rows_in for r in reports)


def test_a_folder_grows_backwards_and_the_job_goes_on(trial: Trial) -> None:
    """Files that sort before those already read still come, while the job runs, after a stop, and after closing."""
    pairs(trial, orderBy="name")
    plan = trial.compiled(INNER)
    trial.write("orders", "m", rows(0, 9))
    trial.write("payments", "m", rows(3, 5))

    def grow(job: RunningJob, reports: list[Report]) -> None:
        until(job, lambda: read(reports) == 14)
        trial.write("payments", "f", rows(20, 6))
        until(job, lambda: read(reports) == 20)
        trial.write("orders", "a", rows(40, 4))
        until(job, lambda: read(reports) == 24)

    first = trial.watch(plan, grow)
    assert len(first.reports) >= 3
    assert trial.output(INNER) == trial.expected(INNER)

    trial.write("orders", "Z", rows(60, 3))
    second = trial.run_plan(plan)  # closes the inputs
    assert (second.rows_in, second.lag["orders"]["slices"]) == (3, 0)
    assert second.reports[0].batch == first.reports[-1].batch + 1
    assert trial.output(INNER) == trial.expected(INNER)

    trial.write("payments", "0", rows(70, 5))
    third = trial.run_plan(plan)  # an inner join goes on after closing
    assert third.rows_in == 5
    assert trial.output(INNER) == trial.expected(INNER)


def test_closing_is_final_for_an_outer_join(trial: Trial) -> None:
    """Unmatched rows have come out: running again is fine as long as nothing is new, and refused if something is."""
    pairs(trial)
    plan = trial.compiled(LEFT)
    trial.write("orders", "a", rows(0, 9))
    trial.write("payments", "a", rows(3, 2))
    trial.run_plan(plan)
    before = trial.expected(LEFT)
    assert trial.output(LEFT) == before
    assert trial.run_plan(plan).reports == []
    new = trial.write("payments", "b", rows(0, 1))
    with pytest.raises(SpecError) as refused:
        trial.run_plan(plan)
    assert "closed by --until-done" in plain(refused.value)
    assert "new checkpoint" in str(refused.value)
    assert trial.output(LEFT) == before
    new.unlink()


def test_order_by_name_and_by_time(trial: Trial) -> None:
    """One file a batch, in the order asked for: by name the small one first, by time of modification the large one."""
    for name, order in (("orders", "name"), ("payments", "modified")):
        trial.input(name, PAIR, orderBy=order, maxFilesPerBatch=1)
        for age, (file, count) in enumerate((("a", 3), ("b", 5), ("c", 7))):
            path = trial.write(name, file, rows(0, count))
            os.utime(path, ns=(10**18, 10**18 - age * 10**9))
    ran = trial.run(INNER)
    taken = [
        tuple(map(sum, zip(*(r.rows_in for r in report.receipts), strict=True))) for report in ran.reports
    ]
    assert [t for t in taken if any(t)] == [(3, 7), (5, 5), (7, 3)]
    assert trial.output(INNER) == trial.expected(INNER)


def test_generated_rows_silence_and_idle_units(trial: Trial) -> None:
    """3 keys on 32 units in one state partition, against an input that never says a word: all come out alone."""
    trial.input("payments", PAIR)
    trial.schemas["made"] = "k BIGINT, n BIGINT"
    trial.options["made"] = {"generator": {"rows": 500, "keys": 3, "seed": 7}}
    sql = "SELECT m.k AS k, m.n AS n, p.v AS v FROM made m LEFT JOIN payments p ON m.k = p.k"
    plan = trial.compiled(sql, join={"units": 32}, batch={"maxRows": 100})
    ran = trial.run_plan(plan, partitions=1)
    assert [len(r.receipts) for r in ran.reports] == [32] * len(ran.reports)
    assert sum(1 for r in ran.reports[-1].receipts if sum(r.rows_in) == r.state_rows == 0) >= 29
    out = trial.output("SELECT 1 AS k, 1 AS n, 1 AS v")
    assert sorted(n for _, n, _ in out) == list(range(500))
    assert {k for k, _, _ in out} <= {0, 1, 2}
    assert {v for _, _, v in out} == {None}
    assert out.total() == ran.rows_out == 500


def test_late_rows_are_counted_by_input_and_left_out(trial: Trial) -> None:
    """What is behind the watermark when it comes is not joined; the run says how much, by input, also after a restart."""
    for name in ("orders", "payments"):
        trial.input(
            name, TIMED, orderBy="name", maxFilesPerBatch=1, eventTime={"column": "at", "delay": "1m"}
        )
        trial.write(name, "a", [(k, at(30 + k)) for k in range(5)])
    trial.write("orders", "b", [(1, at(20)), (2, at(21)), (3, at(40))])
    trial.write("payments", "b", [(1, at(5)), (3, at(42)), (4, at(50))])
    plan = trial.compiled(NEAR)

    def both(job: RunningJob, reports: list[Report]) -> None:
        until(job, lambda: bool(reports) and reports[-1].late() == (2, 1))

    trial.watch(plan, both)
    trial.write("orders", "c", [(4, at(41)), (4, at(1))])
    ran = trial.run_plan(plan)
    assert ran.late == (3, 1)
    in_time = {
        "orders": [*((k, at(30 + k)) for k in range(5)), (3, at(40)), (4, at(41))],
        "payments": [*((k, at(30 + k)) for k in range(5)), (3, at(42)), (4, at(50))],
    }
    assert trial.output(NEAR) == trial.expected(NEAR, **in_time)


def test_a_silent_input_is_not_waited_for(trial: Trial) -> None:
    """`idle` takes an input without rows out of the watermark's minimum: the other's rows come out alone."""
    trial.input("orders", TIMED, eventTime={"column": "at"})
    trial.input("payments", TIMED, eventTime={"column": "at", "idle": "500ms"})
    trial.write("orders", "a", [(k, at(k)) for k in range(60)])
    plan = trial.compiled(NEAR)

    def alone(job: RunningJob, reports: list[Report]) -> None:
        until(job, lambda: sum(r.rows_out for r in reports) == 49)  # watermark at 59 minutes: those before 49
        trial.write("payments", "a", [(50, at(52)), (3, at(59)), (58, at(62))])  # late; alone; a match
        until(job, lambda: reports[-1].late() == (0, 1))
        until(job, lambda: sum(r.rows_out for r in reports) >= 50)

    trial.watch(plan, alone)
    out = trial.output(NEAR)
    assert sum(n for row, n in out.items() if row[2] is None) >= 49
    assert [row[0] for row in out if row[2] is not None] == [58]


@dataclass(frozen=True)
class Witness(JoinTask):
    """Notes, wherever a task unpacks it, which process serves which state partition."""

    seen: Path = Path()

    def __reduce__(self) -> tuple[object, ...]:
        return (_witnessed, tuple(getattr(self, f.name) for f in fields(self)))


def _witnessed(*values: Any) -> Witness:
    task, context = Witness(*values), TaskContext.get()
    if context is not None:
        (task.seen / f"{context.partitionId()}-{os.getpid()}").touch()
    return task


def test_any_process_serves_any_unit(trial: Trial, tmp_path: Path) -> None:
    """32 units on two workers, in many batches: several processes served them, and nothing shows in the result."""
    pairs(trial, orderBy="name", maxFilesPerBatch=1)
    seen = tmp_path / "seen"
    seen.mkdir()
    sql = LEFT.replace("o.k = p.k", "o.v = p.v")
    plan = trial.compiled(sql, tuning=Tuning(small_rows=-1), join={"units": 32})
    join = plan.join
    plan = replace(plan, join=Witness(**{f.name: getattr(join, f.name) for f in fields(join)}, seen=seen))
    for name in ("orders", "payments"):
        for file in range(4):
            trial.write(name, f"{file}", rows(file * 90 + (name == "orders") * 30, 90))
    ran = trial.run_plan(plan)
    served = [path.name.split("-") for path in seen.iterdir()]
    assert {partition for partition, _ in served} == {"0", "1"}
    assert len({pid for _, pid in served}) >= 2
    assert [sorted(r.unit for r in report.receipts) for report in ran.reports] == [list(range(32))] * len(
        ran.reports
    )
    assert trial.output(sql) == trial.expected(sql)
    assert ran.rows_in == 720


def test_the_console_shows_the_first_rows(trial: Trial) -> None:
    """Reports carry them; nothing is written."""
    pairs(trial)
    trial.write("orders", "a", rows(0, 9))
    trial.write("payments", "a", rows(0, 9))
    ran = trial.run(INNER, output={"console": {"rows": 3}})
    ((sample, of),) = [r.samples[""] for r in ran.reports if r.samples]
    assert of == ran.rows_out
    assert ran.rows_out == trial.expected(INNER).total()
    assert sample.num_rows == 3
    assert not rows_of(sample) - trial.expected(INNER)
    assert not trial.out.exists()


def test_files_that_were_read_go_and_their_names_come_again(trial: Trial) -> None:
    """While the job runs and after a restart: no row is lost or comes twice, and of the folder only the last batches stay."""
    trial.input("orders", PAIR, orderBy="name", maxFilesPerBatch=1, done="archive", archive="read")
    trial.input("payments", PAIR, orderBy="name")
    trial.write("payments", "all", rows(0, 20))
    made = rows(0, 30)
    trial.fill("orders", made, 10)
    plan = trial.compiled(INNER)
    trial.run_plan(plan)
    gone = sorted(f.name for f in (trial.folder / "read").iterdir())
    assert gone == sorted(
        {f"{n:03d}.parquet" for n in range(10)} - {f.name for f in (trial.folder / "orders").iterdir()}
    )
    assert "000.parquet" in gone and "008.parquet" not in gone
    made += rows(100, 6)
    trial.write("orders", "000", rows(100, 6))
    trial.run_plan(plan)
    assert trial.output(INNER) == trial.expected(INNER, orders=made)


def test_a_query_that_reads_less_goes_on(trial: Trial) -> None:
    """The state keeps what it reads no more, of inputs and of joined rows; so it may come back."""
    text = "SELECT o.v AS id{} FROM orders o JOIN payments p ON o.k = p.k AND o.v <> p.v LEFT JOIN refunds r ON r.k = o.k"
    narrow, wide = text.format(""), text.format(", p.v AS pv, r.v AS rv")
    names = ("orders", "payments", "refunds")
    for name in names:
        trial.input(name, PAIR)
    for batch, sql in enumerate((wide, narrow, wide)):
        for start, name in enumerate(names[: 2 + batch]):  # refunds come when other rows wait for them
            trial.write(name, str(batch), rows(10 * batch + start, 6))
        trial.run(sql, output={"mode": "changelog", "files": {"path": f"out{batch}"}})
    assert +_changes(trial, "?", "id") == trial.expected(narrow)


def test_groups_that_compute_less_go_on(trial: Trial) -> None:
    """Aggregates go and come back, and their state with them; in whatever order they are selected."""
    text = "SELECT o.k, {} FROM orders o JOIN payments p ON o.k = p.k GROUP BY o.k"
    narrow = text.format("count(*) AS n")
    wide = text.format("max(p.v) AS m, sum(o.v + p.v) AS s, count(*) AS n, count(DISTINCT p.v) AS d")
    back = text.format("count(DISTINCT p.v) AS d, sum(o.v + p.v) AS s, count(*) AS n")
    for name in ("orders", "payments"):
        trial.input(name, PAIR)
    for batch, sql in enumerate((wide, narrow, back)):
        since = trial.expected(sql) if batch else Counter()
        for start, name in enumerate(("orders", "payments")):
            trial.write(name, str(batch), rows(10 * batch + start, 6))
        trial.run(sql, output={"mode": "changelog", "files": {"path": f"out{batch}"}})
        since.update(_changes(trial, str(batch), ("k, m, s, n, d", "k, n", "k, d, s, n")[batch]))
        assert +since == trial.expected(sql)
    assert +_changes(trial, "?", "k, n") == trial.expected(narrow)


def _changes(trial: Trial, out: str, columns: str) -> Counter[tuple[Any, ...]]:
    """What these columns of changes come to."""
    told = duckdb.sql(
        f"SELECT {columns}, sum(CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1 ELSE -1 END)::BIGINT"
        f" FROM read_parquet('{trial.folder}/out{out}/batch=*/*.parquet', union_by_name=true) GROUP BY ALL"
    )
    return Counter({tuple(row[:-1]): row[-1] for row in told.fetchall()})
