"""helm where there is one, the chart rendered by it, and a namespace where there is a cluster."""

import os
import runpy
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.kube import Kube

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts" / "streamjoin"
BUILD = ROOT / "manifests" / "build"
IMAGE = os.environ.get("STREAMJOIN_IMAGE", "localhost/streamjoin:dev")
Object = dict[str, Any]
Render = Callable[..., list[Object]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `cluster` share one."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("cluster"):
            item.add_marker(pytest.mark.xdist_group("cluster"))


@pytest.fixture(scope="session")
def helm() -> str:
    """The command, found as manifests/build finds it."""
    command = runpy.run_path(str(BUILD))["helm"]()
    if command is None:
        pytest.skip("there is no helm; set HELM to one, or run tools/cluster/build helm")
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


def definition() -> dict[str, Any]:
    """The kind, with the marks by which helm takes it for its own should it be installed on this cluster later."""
    document = yaml.safe_load((ROOT / "manifests" / "crd.yaml").read_text())
    release = {
        "meta.helm.sh/release-name": "streamjoin",
        "meta.helm.sh/release-namespace": "streamjoin-system",
    }
    document["metadata"]["annotations"] |= release
    document["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "Helm"}
    return document


@pytest.fixture(scope="module")
def space() -> Iterator[Kube]:
    """A namespace of its own on a cluster that has the kind."""
    kube = Kube(f"kind-{uuid.uuid4().hex[:8]}")
    kube.run(
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=helm",
        "-f",
        "-",
        stdin=yaml.safe_dump(definition()),
    )
    kube.run("wait", "crd/streamjoins.streamjoin.dev", "--for=condition=Established", "--timeout=30s")
    kube.run("create", "namespace", kube.namespace)
    yield kube
    kube.run("delete", "namespace", kube.namespace, "--wait=false")


@pytest.fixture(scope="module")
def release(helm: str, space: Kube) -> Iterator[str]:
    """A release that serves its own namespace and no other."""
    repository, _, tag = IMAGE.rpartition(":")
    values = {
        "image": {"repository": repository, "tag": tag},
        "watchNamespaces": [space.namespace],
        "crds": {"install": False},
        "jobs": {"cpuRequest": "50m"},
        "rbac": {"aggregate": False},  # of the cluster, and perhaps there
    }
    name = "own"
    run(
        helm,
        space,
        "install",
        name,
        str(CHART),
        "--wait",
        "--timeout=120s",
        "-f",
        "-",
        stdin=yaml.safe_dump(values),
    )
    yield name
    run(helm, space, "uninstall", name, "--wait", "--ignore-not-found")


def run(helm: str, space: Kube, *arguments: str, stdin: str = "") -> str:
    """helm in the namespace; what it prints. Fails with what it complains about and what the namespace looks like."""
    done = subprocess.run(
        [helm, "-n", space.namespace, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, f"helm {' '.join(arguments)}: {done.stderr}{done.stdout}\n{picture(space)}"
    return done.stdout


def picture(space: Kube) -> str:
    """Pods, events and the operator's log."""
    parts = (
        ("get", "pods", "-o", "wide"),
        ("get", "events"),
        ("logs", "-l", "app.kubernetes.io/component=operator"),
    )
    return "\n".join(space.run(*part, check=False) for part in parts)
