"""Kill it at a named point and run it again: nothing is lost, nothing comes twice."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.faults.scenario import QUERIES, Scenario, scenario

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


RETRYING = {"spark.master": "local[2,4]"}  # a task may fail three times, as on a cluster


def test_every_point(job: Scenario, undisturbed: Callable[[str], Scenario]) -> None:
    """A full join whose workers and drivers die at every point of a batch, each in a batch of its own."""
    workers = job.begin("spooled:0", "index:1", "segment:2", "joined:3", "collected:4", conf=RETRYING)
    workers.until(batch=2)
    job.leave_behind(batch=2)
    assert workers.end() == -9
    assert not workers.errors, "the task is run again in the same batch"
    assert job.begin("spooled:4", "written:5", "staged:5", conf=RETRYING).end() == -9
    assert job.begin("published:6").end() == -9
    job.finish()

    job.check(like=undisturbed(job.kind))


@pytest.mark.parametrize("job", ["band", "itself"], indirect=True)
def test_join_biclique(job: Scenario, undisturbed: Callable[[str], Scenario]) -> None:
    """A join whose rows are stored in one unit and probe others dies while it sends, joins and writes; with itself, too."""
    assert job.begin("spooled:0", "segment:2", "joined:3", "collected:4", conf=RETRYING).end() == -9
    assert job.begin("published:6").end() == -9
    job.finish()

    job.check(like=undisturbed(job.kind))


@pytest.mark.parametrize("job", ["sealing"], indirect=True)
def test_seals_and_merges(job: Scenario, undisturbed: Callable[[str], Scenario]) -> None:
    """A full join with a budget that each batch exceeds dies when a head is sealed, and in and behind merges."""
    points = ("sealed:1", "piece:2", "merged:3", "sealed:5", "piece:5", "merged:5", "collected:6")
    assert job.begin(*points, conf=RETRYING).end() == -9
    job.finish()

    job.check(like=undisturbed(job.kind))


@pytest.mark.parametrize("job", ["inner"], indirect=True)
def test_local_run_ends_with_a_clear_error(job: Scenario, undisturbed: Callable[[str], Scenario]) -> None:
    """Without a cluster a run ends when a worker or the JVM dies, says so in one line, and goes on when run again; an inner join."""
    worker = job.begin("joined:2")
    assert worker.end() == 1
    assert worker.errors == [
        "a Python worker died (killed, or out of memory); run again, the job goes on where it was"
    ]
    jvm = job.begin()
    jvm.until(batch=4)
    jvm.kill("jvm")
    assert jvm.end() == 1
    assert jvm.errors == [
        "Spark's JVM died (killed, or out of memory); run again, the job goes on where it was"
    ]
    job.finish()

    job.check(like=undisturbed(job.kind))


@pytest.mark.parametrize("job", ["groups"], indirect=True)
def test_groups(job: Scenario, undisturbed: Callable[[str], Scenario]) -> None:
    """A query with GROUP BY dies in the join's units, before and after groups are written, and in the driver."""
    workers = job.begin("handed:1", "grouped:3", "joined:4", "published:6", conf=RETRYING)
    assert workers.end() == -9
    job.finish()

    job.check(like=undisturbed(job.kind))


def test_results_that_are_gathered(tmp_path: Path) -> None:
    """A full join whose driver dies before and after batches that wait become a folder; at its end nothing waits."""
    compact = {"compact": {"every": "1h", "size": "1"}}  # no batch waits for another
    with scenario(tmp_path / "job", "full", files=compact) as job:
        assert job.begin("gathered:2", "joined:1", conf=RETRYING).end() == -9
        job.files["compact"]["size"] = "1Gi"
        (job.folder / "spec.yaml").write_text(json.dumps(job._spec()))
        assert job.begin("published:5").end() == -9
        assert job.begin("released:5").end() == -9
        seen = {f.name for f in job.trial.out.glob("batch=*")}
        assert "batch=5" in seen and (job.trial.out / ".waiting" / "batch=5").is_dir()
        job.finish()

        assert not list((job.folder / "faults").iterdir())
        assert job.trial.output(QUERIES["full"]) == job.trial.expected(QUERIES["full"])
        assert {f.parent.name for f in job.trial.out.rglob("part-*")} == {
            f.name for f in job.trial.out.glob("batch=*")
        }
        assert not (job.trial.out / ".waiting").exists()
        assert len({f.name for f in job.trial.out.glob("batch=*")} - seen) == 1
