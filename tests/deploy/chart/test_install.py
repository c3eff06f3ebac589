"""The chart on a real cluster, as one installs it who has a namespace and not the cluster: `helm install`, `helm test`, `helm uninstall`."""

import os
import subprocess
from collections.abc import Iterator

import pytest
import yaml

from tests.cluster.kube import Kube
from tests.deploy.chart.conftest import CHART
from tests.deploy.chart.documents import GOOD, changed

pytestmark = pytest.mark.cluster

IMAGE = os.environ.get("STREAMJOIN_IMAGE", "localhost/streamjoin:dev")


@pytest.fixture(scope="module")
def release(helm: str, space: Kube) -> Iterator[str]:
    """A release that serves its own namespace, in which only restricted pods may run."""
    repository, _, tag = IMAGE.rpartition(":")
    values = {
        "image": {"repository": repository, "tag": tag},
        "watchNamespaces": [space.namespace],
        "crds": {"install": False},
        "rbac": {"aggregate": False},  # of the cluster, and perhaps there
    }
    space.run(
        "label", "namespace", space.namespace, "pod-security.kubernetes.io/enforce=restricted", "--overwrite"
    )
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


def test_it_is_well(helm: str, space: Kube, release: str) -> None:
    """`helm test` asks the API server for the kind and the operator for its health."""
    assert "Succeeded" in run(helm, space, "test", release, "--timeout=90s")


def test_its_rights_are_enough(space: Kube, release: str) -> None:
    """In its namespace it makes all that a job needs, and is refused nothing."""
    del release
    job = changed(changed(GOOD, "metadata.name", "rights"), "spec.suspend", True)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    space.apply(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": claim},
        job,
    )

    space.until("the job rests", lambda: space.get("sj", "rights")["status"]["phase"] == "Suspended", 60)

    for kind in ("serviceaccount", "role", "rolebinding", "service", "statefulset", "poddisruptionbudget"):
        assert space.get(kind, "rights-driver"), kind
    log = space.run("logs", "-l", "app.kubernetes.io/component=operator", "--tail=-1")
    assert "orbidden" not in log
    assert "ERROR" not in log


def test_its_rights_end_at_its_namespace(space: Kube, release: str) -> None:
    """It may not even look elsewhere."""
    who = f"--as=system:serviceaccount:{space.namespace}:{release}-operator"

    def may(namespace: str, verb: str, what: str) -> bool:
        asked = Kube(namespace).run("auth", "can-i", verb, *what.split(), who, check=False)
        return "yes" in asked.splitlines()

    assert may(space.namespace, "patch", "statefulsets.apps")
    assert not may("default", "get", "streamjoins.streamjoin.dev")
    assert not may("default", "list", "pods")
    for verb, what in (
        ("list", "secrets"),
        ("delete", "secrets"),
        ("create", "pods --subresource=exec"),
        ("delete", "streamjoins"),
        ("*", "*"),
    ):
        assert not may(space.namespace, verb, what), f"{verb} {what}"


def test_an_uninstall_leaves_the_kind_and_the_jobs(helm: str, space: Kube, release: str) -> None:
    """Nobody loses his jobs by it, and nothing of the operator stays."""
    run(helm, space, "uninstall", release, "--wait")

    assert space.get("crd", "streamjoins.streamjoin.dev")
    assert "rights" in space.names("sj")
    assert (
        space.every(
            "deploy,sa,role,rolebinding,service,networkpolicy", f"app.kubernetes.io/instance={release}"
        )
        == []
    )
