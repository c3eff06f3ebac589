"""Small batches, which one task runs from the slices to the receipts: killed at named points, and run again."""

from pathlib import Path

import pytest

from joinlib.checkpoint import batches
from tests.spark.faults.drawn import drawn
from tests.spark.faults.scenario import scenario
from tests.spark.faults.test_points import RETRYING

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.mark.parametrize("kind", drawn("small", ["paths", "groups"], 1))
def test_every_point(kind: str, tmp_path: Path) -> None:
    """The task and the driver die between levels, before and after manifests and results."""
    with (
        scenario(tmp_path / "calm", kind, partitions=None) as calm,
        scenario(tmp_path / "job", kind, partitions=None) as job,
    ):
        calm.finish()
        last = {"paths": "hopped", "groups": "grouped"}[kind]
        inside = job.begin("spooled:0", f"{last}:2", "written:3", "collected:4", conf=RETRYING)
        assert inside.end() == -9
        assert not inside.errors, "the task is run again in the same batch"
        assert job.begin(f"{last}:4", "published:6", conf=RETRYING).end() == -9
        job.finish()
        job.check(like=calm)
        ends = batches.ends(job.folder / "checkpoint" / "spark")
        assert all(end["small"] for end in ends), "also the last one, which closes the inputs"


def test_its_envelope_says_that_it_is_small(tmp_path: Path) -> None:
    """One that was cut off is a single task again, also where a run is told another spread; and so the other way round."""
    with scenario(tmp_path / "job", "full", partitions=None) as job:
        spark = job.folder / "checkpoint" / "spark"
        assert job.begin("published:2").end() == -9
        assert job.begin("collected:3", partitions=2).end() == -9
        assert batches.partitions(spark) == 2
        assert job.begin("collected:5").end() == -9
        assert [batches.offset(spark, batch)["small"] for batch in range(6)] == [True] * 3 + [
            False,
            True,
            True,
        ]
        job.finish()
        assert {len(list(job.trial.out.glob(f"batch={n}/*"))) for n in (0, 1, 2, 4, 5)} == {1}
        assert len(list(job.trial.out.glob("batch=3/*"))) == 2
        job.check_output(job)
