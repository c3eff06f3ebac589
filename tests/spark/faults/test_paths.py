"""A join by paths: killed where rows are stored, where tuples hop, and between the two."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

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


def _until_it_hops(job: Scenario, run: Run, batch: int, patience_s: float = 300.0) -> dict[Path, int]:
    """Waits until the first level is done with a batch and the second is not; the inodes of what the first has written."""
    manifests = job.folder / "checkpoint" / "state" / "manifests" / f"{batch:08d}"
    end = time.monotonic() + patience_s
    while len(found := list(manifests.glob("0-*"))) < CORES:
        assert run.alive and time.monotonic() < end, "the batch has not begun"
        time.sleep(0.001)
    assert len(list(manifests.glob("1-*"))) < CORES, "the second level was too fast"
    return {file: file.stat().st_ino for file in found}
