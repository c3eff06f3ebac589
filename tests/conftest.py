"""What all tests share: Hypothesis tries few, small examples and does not time them on a busy machine;
in CI it tries the same ones every time.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from joinlib.state import unit as units

settings.register_profile(
    "quick", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=2000)
settings.register_profile("ci", parent=settings.get_profile("quick"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "quick")


@pytest.fixture(autouse=True)
def _let_go_of_state() -> Iterator[None]:
    """Tests make thousands of units; each holds files open for as long as a worker would keep it."""
    yield
    units._open.clear()
