"""A join by paths: killed where rows are stored, where tuples hop, and between the two."""

import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.spark.faults import processes
from tests.spark.faults.run import CORES
from tests.spark.faults.scenario import Run, Scenario
from tests.spark.faults.test_executor import CLUSTER
from tests.spark.faults.test_points import RETRYING

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.mark.parametrize("job", ["paths"], indirect=True)
def test_every_point(job: Scenario, undisturbed: Callable[[str], Scenario]) -> None:
    """Workers die before and behind each step of both levels, the driver when all are done."""
    faults = (
        "spooled:0",
        "tidied:1",
        "arranged:2",
        "segment:3",
        "joined:4",
        "handed:5",
        "hopped:6",
        "collected:7",
    )
    assert job.begin(*faults, conf=RETRYING).end() == -9
    job.finish()

    job.check(like=undisturbed(job.kind))


@pytest.mark.parametrize("job", ["paths"], indirect=True)
def test_executors_die_while_tuples_hop(job: Scenario, undisturbed: Callable[[str], Scenario]) -> None:
    """What a dead executor has sent is lost: the first level runs again below hops that have begun, and stores the same."""
    run, stored = job.begin(conf=CLUSTER), dict[Path, int]()
    for batch in (3, 5, 7):
        stored |= _until_it_hops(job, run, batch)
        assert run.kill("executor")
    run.until(done=True)
    assert run.end() == 0

    assert not run.errors
    again = [file for file, inode in stored.items() if file.stat().st_ino != inode]
    assert again, "the first level did not run again"
    job.check(like=undisturbed(job.kind))


@pytest.mark.parametrize("job", ["paths"], indirect=True)
def test_an_executor_dies_when_the_other_is_done(
    job: Scenario, undisturbed: Callable[[str], Scenario]
) -> None:
    """The first level runs again, though Spark has results of the second: that its receipts are others matters to nobody."""
    run = job.begin("hopped:4", conf=CLUSTER)
    (job.folder / "faults" / "hopped:4").write_text("stop")
    while not (stopped := [p.pid for p in processes.of_session(run.session) if p.state == "T"]):
        assert run.alive
        time.sleep(0.1)
    while len(_written(job, 4, level=1)) < CORES - 1:
        assert run.alive
        time.sleep(0.1)
    time.sleep(1)  # the driver hears of it
    executors = processes.of_kind(run.session, "executor")
    for process in psutil.Process(stopped[0]).parents():
        if process.pid in executors:
            processes.kill(process.pid)
    processes.kill(stopped[0])
    run.until(done=True)
    assert run.end() == 0

    assert not run.errors
    job.check(like=undisturbed(job.kind))


def _until_it_hops(job: Scenario, run: Run, batch: int, patience_s: float = 300.0) -> dict[Path, int]:
    """Waits until the first level is done with a batch and the second is not; the inodes of what the first has written."""
    end = time.monotonic() + patience_s
    while len(found := _written(job, batch, level=0)) < CORES:
        assert run.alive and time.monotonic() < end, "the batch has not begun"
        time.sleep(0.001)
    assert len(_written(job, batch, level=1)) < CORES, "the second level was too fast"
    return {file: file.stat().st_ino for file in found}


def _written(job: Scenario, batch: int, level: int) -> list[Path]:
    """The manifests of partitions that are done with a level."""
    return list((job.folder / "checkpoint" / "state" / "manifests" / f"{batch:08d}").glob(f"{level}-*"))
