"""What a real API server says of the kind: what is wrong is refused with field and fix, what is right is taken."""

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.kube import Kube
from tests.deploy.chart.conftest import ROOT
from tests.deploy.chart.documents import BAD, FINE, GOOD, changed

pytestmark = pytest.mark.cluster

MANIFESTS = ROOT / "manifests"
EXAMPLES = sorted([*MANIFESTS.glob("[0-9]*.yaml"), *(MANIFESTS / "examples").glob("*.yaml")])


@pytest.fixture
def live(space: Kube) -> Iterator[str]:
    """A suspended job on the cluster, by its name. Its status is given as the operator would."""
    name = f"live-{uuid.uuid4().hex[:6]}"
    document = changed(changed(GOOD, "metadata.name", name), "spec.suspend", True)
    space.run("create", "-f", "-", stdin=yaml.safe_dump(document))
    yield name
    space.delete("sj", name, "--wait=false")


def started(space: Kube, name: str) -> None:
    """A driver has begun the checkpoint."""
    status = {"status": {"checkpoint": {"folder": "/data/checkpoint", "fingerprint": "{}"}}}
    space.run("patch", "sj", name, "--subresource=status", "--type=merge", "-p", json.dumps(status))


def patched(space: Kube, name: str, spec: dict[str, Any]) -> str:
    """What is said of a change, tried but not made."""
    change = json.dumps({"spec": spec})
    return space.run("patch", "sj", name, "--type=merge", "--dry-run=server", "-p", change, check=False)


def create(space: Kube, document: dict[str, Any]) -> str:
    """What is said of a new job, tried but not made."""
    return space.run("create", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(document), check=False)


def test_the_definition_is_accepted_without_a_warning(space: Kube) -> None:
    """Structural, no name in conflict, and within the cost of rules."""
    conditions = {
        c["type"]: c["status"] for c in space.get("crd", "streamjoins.streamjoin.dev")["status"]["conditions"]
    }

    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions
    text = space.run(
        "apply",
        "--server-side",
        "--force-conflicts",
        "--dry-run=server",
        "-f",
        str(MANIFESTS / "crd.yaml"),
        check=False,
    )
    assert "arning" not in text


@pytest.mark.parametrize(
    ("place", "value", "field", "fix"), BAD, ids=[f"{b[0]}-{n}" for n, b in enumerate(BAD)]
)
def test_what_is_wrong_is_refused(space: Kube, place: str, value: Any, field: str, fix: str) -> None:
    """The message names the field and says what to write."""
    said = re.sub(r"\[([A-Za-z ]+)\]", r".\1", create(space, changed(GOOD, place, value)))  # inputs[orders]

    assert "created" not in said
    assert field in said
    assert fix in said


@pytest.mark.parametrize(("place", "value"), FINE, ids=[f"{f[0]}-{n}" for n, f in enumerate(FINE)])
def test_what_is_right_is_taken(space: Kube, place: str, value: Any) -> None:
    """Next to what is wrong."""
    said = create(space, changed(GOOD, place, value))

    assert "created (server dry run)" in said, said


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_taken(space: Kube, path: Path) -> None:
    """All manifests, those for a local run too: the kind is one."""
    said = space.run("apply", "--server-side", "--dry-run=server", "-f", str(path), check=False)

    assert "serverside-applied (server dry run)" in said
    assert "rror" not in said


def test_what_a_checkpoint_pins_stays(space: Kube, live: str) -> None:
    """Free until a driver has started; then only together with a new checkpoint."""
    generator = {"orders": {"files": None, "generator": {}}}
    assert "patched" in patched(space, live, {"inputs": generator})

    started(space, live)

    assert "spec.inputs" in (said := patched(space, live, {"inputs": generator}))
    assert "begin a new checkpoint" in said
    assert "patched" in patched(
        space, live, {"executors": {"max": 2, "memory": "3Gi"}, "batch": {"maxRows": 5}}
    )
    assert "patched" in patched(space, live, {"join": {"units": 16}})  # the state is divided anew
    assert "patched" in patched(space, live, {"inputs": generator, "checkpoint": {"path": "/data/other"}})

    space.patch("sj", live, {"spec": {"checkpoint": {"reset": "two"}}})
    assert "patched" in patched(space, live, {"inputs": generator})  # no driver has begun that one yet


def test_a_checkpoint_pins_where_rows_lie(space: Kube, live: str) -> None:
    """Subgroups, and what is known to have them, stay; a strategy that may only change the index is left to the driver."""
    spread = {"join": {"strategy": "biclique", "subgroups": 2}}
    started(space, live)

    assert "patched" in patched(space, live, {"join": {"strategy": "multiway"}})
    assert "patched" in patched(space, live, {"join": {"strategy": "biclique"}})
    assert "would not be found elsewhere" in patched(space, live, spread)
    assert "patched" in patched(space, live, {**spread, "checkpoint": {"reset": "two"}})


def test_scale(space: Kube, live: str) -> None:
    """`kubectl scale` sets the executors that are wanted, between min and max."""
    said = space.run("scale", "sj", live, "--replicas=9", check=False)
    assert "is not between min and max; change one" in said

    space.run("scale", "sj", live, "--replicas=3")

    assert space.get("sj", live)["spec"]["executors"]["instances"] == 3
    status = {"status": {"executors": {"ready": 2, "wanted": 3, "selector": "app.kubernetes.io/instance=x"}}}
    space.run("patch", "sj", live, "--subresource=status", "--type=merge", "-p", json.dumps(status))
    scale = json.loads(
        space.run(
            "get",
            "--raw",
            f"/apis/streamjoin.dev/v1alpha1/namespaces/{space.namespace}/streamjoins/{live}/scale",
        )
    )
    assert scale["spec"] == {"replicas": 3}
    assert scale["status"] == {"replicas": 2, "selector": "app.kubernetes.io/instance=x"}


def test_columns(space: Kube, live: str) -> None:
    """`kubectl get sj` shows phase, executors, load, skew, lag and age."""
    status = {
        "phase": "Running",
        "executors": {"ready": 2, "wanted": 3},
        "memoryLoad": "0.42",
        "skew": "0.1",
        "lag": 7,
    }
    space.run(
        "patch", "sj", live, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status})
    )

    head, row = space.run("get", "sj", live).splitlines()

    assert head.split() == ["NAME", "PHASE", "READY", "WANTED", "LOAD", "SKEW", "LAG", "AGE"]
    assert row.split()[:-1] == [live, "Running", "2", "3", "0.42", "0.1", "7"]


def test_status_and_spec_are_apart(space: Kube, live: str) -> None:
    """Who writes one cannot write the other; a wrong status is refused too."""
    space.run("patch", "sj", live, "--type=merge", "-p", json.dumps({"status": {"phase": "Failed"}}))
    assert space.get("sj", live).get("status", {}).get("phase") != "Failed"

    wrong = json.dumps({"status": {"phase": "Dancing"}})
    said = space.run("patch", "sj", live, "--subresource=status", "--type=merge", "-p", wrong, check=False)
    assert "status.phase" in said


def test_every_field_can_be_explained(space: Kube) -> None:
    """`kubectl explain` has a sentence for the kind and for fields deep in it."""
    for field in (
        "streamjoin",
        "streamjoin.spec.inputs.eventTime.delay",
        "streamjoin.status.conditions.message",
    ):
        assert "<empty>" not in space.run("explain", field)


def test_the_plain_install_is_taken(space: Kube) -> None:
    """Every object of it, without a warning from the restricted Pod Security Standard."""
    text = (MANIFESTS / "install.yaml").read_text().replace("streamjoin-system", space.namespace)
    space.run(
        "label", "namespace", space.namespace, "pod-security.kubernetes.io/warn=restricted", "--overwrite"
    )

    said = space.run(
        "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", stdin=text, check=False
    )

    assert said.count("serverside-applied (server dry run)") == len(list(yaml.safe_load_all(text)))
    assert "arning" not in said.replace("WARNING: version difference", "")
