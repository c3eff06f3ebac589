"""The power of the machine fails at any moment: what was done is there afterwards, and the job goes on to the answer.

Two kinds of jobs in each run (`drawn`). STREAMJOIN_POWER_CUTS: how many cuts each takes (one unless told).
"""

import os
import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.spark.faults.disk import Disk, disk
from tests.spark.faults.drawn import SEED, drawn
from tests.spark.faults.scenario import FEATURES, FILES, TUNING, Run, Scenario, scenario
from tests.spark.faults.test_changes import Changing

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
CUTS = int(os.environ.get("STREAMJOIN_POWER_CUTS", "1"))


KINDS = ("full", "stages", "groups", "sealing", "paths", "nested", "small", "direct", "wide")


@pytest.mark.parametrize("kind", drawn("power", KINDS, 2))
def test_power_fails_at_any_moment(kind: str, tmp_path: Path, undisturbed: Callable[[str], Scenario]) -> None:
    """Inputs, checkpoint and results are on the disk that fails; what a reader saw of batches that are done stays.

    `nested`: several stages, of groups, a join and a top-n, over rows that change. `small`: a task that runs all levels of a
    path join. `direct`: the same without Spark. `wide`: so too, and two processes run each batch.
    """
    print(f"STREAMJOIN_FAULT_SEED={SEED}")
    draw = random.Random(f"{SEED}{kind}")
    paths = dict.fromkeys(("small", "direct", "wide"), ("paths", Scenario))
    own = {"nested": ("nested", Changing), **paths}
    query, made_as = own.get(kind, (kind, Scenario))
    small: dict[str, Any] = {"partitions": None}
    direct = {**small, "direct": True}
    wide = {**direct, "tuning": {**TUNING, "small_rows": 0}}
    more = {"small": small, "direct": direct, "wide": wide}.get(kind, FEATURES.get(kind, {}))
    with ExitStack() as stack:
        drive = stack.enter_context(disk(tmp_path))
        job = stack.enter_context(scenario(drive.folder / "job", query, made_as, apart=True, **more))
        drive.sync()
        _cut(drive, job, draw)
        job.finish()
        if kind in own:
            calm = stack.enter_context(scenario(tmp_path / "calm", query, made_as, **more))
            calm.finish()
        same = kind != "wide"  # Spark runs the batches behind the cut, and its map tasks write segments
        job.check(like=calm if kind in own else undisturbed(kind), same=same)


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
    drive.fail(run, job.indexes)
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
