"""The power of the machine fails at any moment: what was done is there afterwards, and the job goes on to the answer.

STREAMJOIN_POWER_CUTS: how many cuts each kind of query takes (one unless told); STREAMJOIN_FAULT_SEED: when.
"""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.spark.faults.disk import Disk, disk
from tests.spark.faults.scenario import FEATURES, FILES, Run, Scenario, scenario
from tests.spark.faults.test_changes import Changing

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
CUTS = int(os.environ.get("STREAMJOIN_POWER_CUTS", "1"))
SEED = int(os.environ.get("STREAMJOIN_FAULT_SEED", random.randrange(10**6)))


def test_power_fails_in_small_batches(tmp_path: Path) -> None:
    """A task that runs all levels of a path join."""
    print(f"STREAMJOIN_FAULT_SEED={SEED}")
    draw = random.Random(f"{SEED} small")
    with (
        disk(tmp_path) as drive,
        scenario(tmp_path / "calm", "paths", partitions=None) as calm,
        scenario(drive.folder / "job", "paths", partitions=None) as job,
    ):
        drive.sync()
        _cut(drive, job, draw)
        calm.finish()
        job.finish()
        job.check(like=calm)


@pytest.mark.parametrize("kind", ["full", "stages", "groups", "sealing", "paths"])
def test_power_fails_at_any_moment(kind: str, tmp_path: Path, undisturbed: Callable[[str], Scenario]) -> None:
    """Inputs, checkpoint and results are on the disk that fails; what a reader saw of batches that are done stays."""
    print(f"STREAMJOIN_FAULT_SEED={SEED}")
    draw = random.Random(f"{SEED}{kind}")
    with disk(tmp_path) as drive, scenario(drive.folder / "job", kind, **FEATURES.get(kind, {})) as job:
        drive.sync()
        _cut(drive, job, draw)
        job.finish()
        job.check(like=undisturbed(kind))


def test_power_fails_below_a_nested_query(tmp_path: Path) -> None:
    """Several stages, of groups, a join and a top-n, over rows that change."""
    print(f"STREAMJOIN_FAULT_SEED={SEED}")
    draw = random.Random(f"{SEED} nested")
    with (
        disk(tmp_path) as drive,
        scenario(tmp_path / "calm", "nested", Changing) as calm,
        scenario(drive.folder / "job", "nested", Changing) as job,
    ):
        drive.sync()
        _cut(drive, job, draw)
        calm.finish()
        job.finish()
        job.check(like=calm)


def _cut(drive: Disk, job: Scenario, draw: random.Random) -> None:
    """The power fails at random moments."""
    for at in range(CUTS):
        run = job.begin()
        run.until_batches(draw.randrange(FILES // CUTS))
        time.sleep(draw.random())
        _fail(drive, job, run, at)


def _fail(drive: Disk, job: Scenario, run: Run, at: int) -> None:
    """The power fails and comes back.

    A folder can be seen a moment before its name is on the disk; that it stays is promised once its batch is done, which the
    run tells then. On a busy machine that moment is long.
    """
    done = max(r.reported for r in job.runs)
    seen = {name: rows for name, rows in _visible(job.trial.out).items() if int(name[6:]) <= done}
    drive.fail(run, job.folder / "indexes")
    there = _visible(job.trial.out)
    print(
        f"cut {at} of {job.kind}: {len(seen)} batches seen, {sum(seen.values())} rows, {len(there)} batches after"
    )
    assert seen.items() <= there.items(), "results that could be seen are gone"


def _visible(out: Path) -> dict[str, int]:
    """The rows of each batch that a reader sees."""
    return {
        folder.name: sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))
        for folder in out.glob("batch=*")
    }
