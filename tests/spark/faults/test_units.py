"""The number of units is changed, and the driver or the power dies while the state is divided: all of it is there, in one way
or in the other, and the output is the answer. One kind of jobs in each run (`drawn`).
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from joinlib.checkpoint.identity import units_of
from tests.spark.faults.disk import disk
from tests.spark.faults.drawn import drawn
from tests.spark.faults.scenario import Run, Scenario, scenario
from tests.spark.faults.test_changes import Changing

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
Fail = Callable[[Scenario, Run], None]
World = Callable[[Path, str, type[Scenario]], AbstractContextManager[tuple[Scenario, Fail]]]


@contextmanager
def _killed(folder: Path, kind: str, made_as: type[Scenario]) -> Iterator[tuple[Scenario, Fail]]:
    with scenario(folder / "job", kind, made_as) as job:
        yield job, lambda job, run: None


@contextmanager
def _without_power(folder: Path, kind: str, made_as: type[Scenario]) -> Iterator[tuple[Scenario, Fail]]:
    """What was not on the disk when the driver died is gone."""
    with disk(folder) as drive, scenario(drive.folder / "job", kind, made_as, apart=True) as job:
        drive.sync()
        yield job, lambda job, run: drive.fail(run, job.indexes)


CASES: dict[str, tuple[World, type[Scenario]]] = {
    "full": (_killed, Scenario),
    "paths": (_without_power, Scenario),
    "totals": (_without_power, Changing),
}


@pytest.mark.parametrize("kind", drawn("units", [*CASES], 1))
def test_a_division_that_dies(kind: str, tmp_path: Path, undisturbed: Callable[[str], Scenario]) -> None:
    """In each of its steps, by a kill or without power; and a batch dies, which is run again as it was begun."""
    world, made_as = CASES[kind]
    with ExitStack() as stack:
        job, fail = stack.enter_context(world(tmp_path, kind, made_as))
        assert job.begin(last=1).end() == 0

        job.divide(8)
        _dies(job, "divided:5", fail)
        assert units_of(job.checkpoint) == 4

        job.divide(2)  # what the other division has left is swept
        _dies(job, f"replacing:{_done(job)}", fail)
        job.divide(16)  # that to 2 is finished, and that to 16 begins
        _dies(job, f"replaced:{_done(job)}", fail)
        _dies(job, f"collected:{_done(job) + 2}", fail)
        assert units_of(job.checkpoint) == 16

        job.divide(2)  # a batch was cut off: it and the others of this run have 16
        job.finish()
        assert units_of(job.checkpoint) == 16
        calm = _calm(stack, tmp_path, kind, made_as, undisturbed)
        job.check_output(like=calm)
        job.finish()
        assert units_of(job.checkpoint) == 2 and _most(job) == 2
        job.check_output(like=calm)


def _calm(
    stack: ExitStack, folder: Path, kind: str, made_as: type[Scenario], undisturbed: Callable[[str], Scenario]
) -> Scenario:
    if made_as is Scenario:
        return undisturbed(kind)
    calm = stack.enter_context(scenario(folder / "calm", kind, made_as))
    calm.finish()
    return calm


def _dies(job: Scenario, point: str, fail: Fail) -> None:
    run = job.begin(point)
    assert run.end() == -9, run.lines[-3:]
    fail(job, run)
    for fault in (job.folder / "faults").iterdir():  # that it is gone was not on the disk
        fault.unlink()


def _done(job: Scenario) -> int:
    return max(int(f.name) for f in (job.checkpoint / "spark" / "commits").iterdir() if f.name.isdigit())


def _most(job: Scenario) -> int:
    """Of all stages: one more than the last unit that has a folder."""
    return 1 + max(int(f.name) for f in (job.checkpoint / "state").glob("[0-9]*/[0-9]*"))
