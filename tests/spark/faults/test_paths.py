"""A join by paths: killed where rows are stored, where tuples hop, and between the two."""

from collections.abc import Callable

import pytest

from tests.spark.faults.scenario import Scenario
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
