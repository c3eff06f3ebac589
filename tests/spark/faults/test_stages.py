"""Two operators in one query: killed in either, and between them."""

from collections.abc import Callable

import pytest

from tests.spark.faults.scenario import Scenario
from tests.spark.faults.test_points import RETRYING

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize("job", ["stages"], indirect=True)
def test_every_point(job: Scenario, undisturbed: Callable[[str], Scenario]) -> None:
    """Workers die while the first stage sends and logs and as the second begins, the driver when both are done."""
    faults = ("spooled:0", "joined:1", "handed:2", "segment:3", "handed:4", "collected:5")
    assert job.begin(*faults, conf=RETRYING).end() == -9
    job.finish()

    job.check(like=undisturbed(job.kind))
