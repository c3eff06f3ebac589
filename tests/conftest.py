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


@pytest.hookimpl(trylast=True)  # after the folders have said which of theirs are marked
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `cluster` need one."""
    if os.environ.get("KUBECONFIG"):
        return
    for item in items:
        if item.get_closest_marker("cluster"):
            item.add_marker(pytest.mark.skip(reason="KUBECONFIG names no cluster; `make e2e` brings one up"))


@pytest.fixture(autouse=True)
def _let_go_of_state() -> Iterator[None]:
    """Tests make thousands of units; each holds files open for as long as a worker would keep it."""
    yield
    units._open.clear()
