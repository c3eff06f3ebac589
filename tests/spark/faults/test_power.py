"""The power of the machine fails at any moment: what could be seen is there afterwards, and the job goes on to the answer.

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

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
CUTS = int(os.environ.get("STREAMJOIN_POWER_CUTS", "1"))
SEED = int(os.environ.get("STREAMJOIN_FAULT_SEED", random.randrange(10**6)))


@pytest.mark.parametrize("kind", ["full", "stages", "groups", "sealing"])
def test_power_fails_at_any_moment(kind: str, tmp_path: Path, undisturbed: Callable[[str], Scenario]) -> None:
    """Inputs, checkpoint and results are on the disk that fails; whatever a reader saw of the results stays."""
    print(f"STREAMJOIN_FAULT_SEED={SEED}")
    draw = random.Random(f"{SEED}{kind}")
    with disk(tmp_path) as drive, scenario(drive.folder / "job", kind, **FEATURES.get(kind, {})) as job:
        drive.sync()
        for at in range(CUTS):
            run = job.begin()
            run.until_batches(draw.randrange(FILES // CUTS))
            time.sleep(draw.random())
            _fail(drive, job, run, at)
        job.finish()
        job.check(like=undisturbed(kind))


def _fail(drive: Disk, job: Scenario, run: Run, at: int) -> None:
    """The power fails and comes back."""
    seen = _visible(job.trial.out)
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
