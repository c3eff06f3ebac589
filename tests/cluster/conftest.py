"""The product on a real cluster: the chart installed once, a namespace and a claim for each test, the operator's log at the end."""

import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import prometheus
from tests.cluster.jobs import Store
from tests.cluster.kube import Kube, helm, reachable

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "streamjoin"
SYSTEM = "streamjoin-system"
_SPACE = "e2e-"  # begins the names of the tests' namespaces


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs a cluster; `make e2e` says which."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.cluster)
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def image() -> str:
    """The image under test, which the cluster's nodes hold."""
    return os.environ.get("STREAMJOIN_IMAGE", "localhost/streamjoin:dev")


@pytest.fixture(scope="package")
def system(image: str) -> Iterator[Kube]:
    """The namespace of the operator, installed by helm as a user would."""
    repository, _, tag = image.rpartition(":")
    values = [
        "--set",
        f"image.repository={repository}",
        "--set",
        f"image.tag={tag}",
        "--set",
        "jobs.cpuRequest=50m",
    ]
    helm(
        "upgrade",
        "--install",
        "streamjoin",
        str(CHART),
        "-n",
        SYSTEM,
        "--create-namespace",
        "--wait",
        *values,
    )
    kube = Kube(SYSTEM)
    yield kube
    _await_the_end_of_spaces()
    unexpected = [line for line in _log(kube).splitlines() if _is_error(line)]
    helm("uninstall", "streamjoin", "-n", SYSTEM, "--wait")
    Kube("default").delete("namespace", SYSTEM)
    assert not unexpected, unexpected[:20]


def _is_error(line: str) -> bool:
    """A watch that is tried again is none: the API server says 429 while it takes in a kind that was just made."""
    return (" ERROR " in line or "Traceback" in line) and "will retry" not in line


def _log(kube: Kube) -> str:
    return "\n".join(kube.run("logs", pod, "--tail=-1", check=False) for pod in kube.names("pods"))


@contextmanager
def _namespace() -> Iterator[Kube]:
    kube = Kube(f"{_SPACE}{uuid.uuid4().hex[:8]}")
    kube.run("create", "namespace", kube.namespace)
    yield kube
    kube.run("delete", "namespace", kube.namespace, "--ignore-not-found", "--wait=false")


@pytest.fixture
def space(system: Kube) -> Iterator[Kube]:
    """A namespace of its own; that nothing of it stays is seen when all tests are done: pods take 15 s to end."""
    del system
    with _namespace() as kube:
        yield kube


@pytest.fixture(scope="module")
def shared(system: Kube, image: str) -> Iterator[tuple[Kube, Store]]:
    """A namespace and its claim for all tests of a file: what these have in common is a job, which takes a minute to start."""
    del system
    with _namespace() as kube:
        store = Store(kube, image)
        store.make()
        yield kube, store


def _await_the_end_of_spaces() -> None:
    kube = Kube("default")
    kube.until(
        "the tests' namespaces are gone",
        lambda: not any(name.startswith(_SPACE) for name in kube.names("namespaces")),
    )


@pytest.fixture
def store(space: Kube, image: str) -> Store:
    """The namespace's claim."""
    made = Store(space, image)
    made.make()
    return made


@pytest.fixture
def run_locally(tmp_path: Path) -> Callable[[str], Path]:
    """Runs a spec's text on this machine to its end; the folder that stands for /data."""

    def run(text: str) -> Path:
        data = tmp_path / "data"
        spec = tmp_path / "spec.yaml"
        spec.write_text(text.replace("/data", str(data)))
        command = shutil.which("streamjoin") or str(ROOT / ".venv" / "bin" / "streamjoin")
        subprocess.run([command, "run", str(spec), "--until-done"], check=True, timeout=200)
        return data

    return run


@pytest.fixture
def watched(system: Kube, space: Kube, tmp_path: Path) -> Iterator[prometheus.Prometheus]:
    """A Prometheus that scrapes the driver every second, and an operator that asks it."""
    address = reachable()
    if address is None:
        pytest.skip("the cluster's pods cannot be reached from this machine")
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            {
                "job_name": "drivers",
                "file_sd_configs": [{"files": [str(tmp_path / "targets.json")], "refresh_interval": "1s"}],
            }
        ],
    }
    with prometheus.running(tmp_path, config, address) as running:
        values = ["-n", SYSTEM, "--reuse-values", "--wait"]
        helm("upgrade", "streamjoin", str(CHART), *values, "--set", f"prometheus.url={running.url}")
        try:
            yield running
        finally:
            helm("upgrade", "streamjoin", str(CHART), *values, "--set", "prometheus.url=")
