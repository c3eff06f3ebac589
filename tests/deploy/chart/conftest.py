"""helm where there is one, and the chart rendered by it."""

import os
import runpy
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts" / "streamjoin"
BUILD = ROOT / "manifests" / "build"
Object = dict[str, Any]
Render = Callable[..., list[Object]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `cluster` need one."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("cluster"):
            item.add_marker(pytest.mark.xdist_group("cluster"))
            if not os.environ.get("KUBECONFIG"):
                item.add_marker(
                    pytest.mark.skip(reason="KUBECONFIG names no cluster; `make e2e` brings one up")
                )


@pytest.fixture(scope="session")
def helm() -> str:
    """The command, found as manifests/build finds it."""
    command = runpy.run_path(str(BUILD))["helm"]()
    if command is None:
        pytest.skip("there is no helm; set HELM to one, or run tests/cluster/build helm")
    return str(command)


@pytest.fixture(scope="session")
def render(helm: str) -> Render:
    """The chart's objects for some values; a refusal is an AssertionError with what helm says."""

    def rendered(**values: Any) -> list[Object]:
        done = subprocess.run(
            [helm, "template", "sj", str(CHART), "-n", "system", "-f", "-"],
            input=yaml.safe_dump(values),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [document for document in yaml.safe_load_all(done.stdout) if document]

    return rendered


def of_kind(objects: list[Object], *kinds: str) -> list[Object]:
    """Those of the kinds."""
    return [document for document in objects if document["kind"] in kinds]
