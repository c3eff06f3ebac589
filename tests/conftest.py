"""What all tests share: Hypothesis tries few, small examples and does not time them on a busy machine;
in CI it tries the same ones every time. At its end a run says what it did not run, and why.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """By folder and reason; into the file STREAMJOIN_NOT_RUN as well, for whoever runs pytest more than once."""
    reports = terminalreporter.stats.get("skipped", [])
    counts = Counter((Path(r.nodeid.partition("::")[0]).parent, _reason(r)) for r in reports)
    lines = [f"{folder}: {count}: {reason}" for (folder, reason), count in sorted(counts.items())]
    if lines:
        terminalreporter.section("not run")
        for line in lines:
            terminalreporter.line(line)
    if into := os.environ.get("STREAMJOIN_NOT_RUN"):
        with open(into, "a") as file:
            file.writelines(f"{line}\n" for line in lines)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    told = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return " ".join(told.removeprefix("Skipped: ").split())


@pytest.fixture(autouse=True)
def _let_go_of_state() -> Iterator[None]:
    """Tests make thousands of units; each holds files open for as long as a worker would keep it."""
    yield
    units._open.clear()
