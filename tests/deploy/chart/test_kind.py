"""What a real API server says of the kind: what is wrong is refused with field and fix, what is right is taken."""

import copy
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

pytestmark = pytest.mark.cluster

MANIFESTS = ROOT / "manifests"
EXAMPLES = sorted([*MANIFESTS.glob("0*.yaml"), *(MANIFESTS / "examples").glob("*.yaml")])
GONE = object()
GOOD: dict[str, Any] = {
    "apiVersion": "streamjoin.dev/v1alpha1",
    "kind": "StreamJoin",
    "metadata": {"name": "good"},
    "spec": {
        "sql": "SELECT o.k FROM orders o JOIN payments p ON o.k = p.k",
        "inputs": {
            "orders": {"schema": "k BIGINT, at TIMESTAMP", "files": {"path": "/data/in/orders"}},
            "payments": {"schema": "k BIGINT, at TIMESTAMP", "generator": {"rows": 10}},
        },
        "output": {"files": {"path": "/data/out"}},
        "join": {"units": 8},
        "checkpoint": {"path": "/data/checkpoint"},
        "volumes": [
            {"mountPath": "/data", "claim": "data"},
            {"mountPath": "/old", "hostPath": "/old", "readOnly": True},
        ],
        "executors": {"min": 1, "max": 4, "cores": 2, "memory": "2Gi"},
    },
}
FILES = "spec.inputs.orders.files"
BAD: list[tuple[str, Any, str, str]] = [  # what is changed, to what, the field named, the fix
    ("metadata.name", "a" * 41, "metadata.name", "shorten it"),
    ("metadata.name", "7-seas", "metadata.name", "begin with a letter"),
    ("metadata.name", "a.b", "metadata.name", "write lower-case letters"),
    ("spec.sql", " ", "spec.sql", "write a SELECT"),
    ("spec.sql", GONE, "spec.sql", "Required value"),
    ("spec.sqll", "x", "spec.sqll", "unknown field"),
    ("spec.inputs", {}, "spec.inputs", "at least 1"),
    (
        "spec.inputs.bad name",
        {"schema": "k INT", "generator": {}},
        "spec.inputs",
        "write letters, digits and '_'",
    ),
    (f"{FILES}.path", "s3://bucket/in", f"{FILES}.path", "name a folder of a volume"),
    (f"{FILES}.path", "/elsewhere", "spec.inputs", "lies under no volume; mount one"),
    (f"{FILES}.path", "/database/in", "spec.inputs", "lies under no volume"),
    (f"{FILES}.path", "", f"{FILES}.path", "at least 1"),
    (f"{FILES}.csv", {"header": False}, f"{FILES}.csv", "write format: csv"),
    (f"{FILES}.format", "orc", f"{FILES}.format", 'supported values: "parquet", "csv", "jsonl"'),
    (f"{FILES}.pth", "x", f"{FILES}.pth", "unknown field"),
    (
        "spec.inputs.orders.kafka",
        {"bootstrapServers": "k:9092", "topic": "t"},
        "spec.inputs.orders",
        "write exactly one of",
    ),
    (
        "spec.inputs.payments.generator",
        GONE,
        "spec.inputs.payments",
        "write exactly one of files, generator, kafka or",
    ),
    ("spec.inputs.payments.role", "table", "spec.inputs.payments.role", "remove role, or use another source"),
    (
        "spec.inputs.payments.generator.rows",
        0,
        "spec.inputs.payments.generator.rows",
        "greater than or equal to 1",
    ),
    (
        "spec.inputs.orders.eventTime",
        {"column": "at", "delay": "10"},
        "spec.inputs.orders.eventTime.delay",
        "is no duration; write each unit once",
    ),
    ("spec.output.noop", {}, "spec.output", "write exactly one of files, kafka, console or noop"),
    ("spec.output.files", GONE, "spec.output", "write exactly one of"),
    (
        "spec.output.files.path",
        "/old/out",
        "spec.output.files.path",
        "under no volume that can be written; mount one",
    ),
    ("spec.output.files.path", "/data/checkpoint/out", "spec.output.files.path", "use folders apart"),
    ("spec.output.files.path", "/data/in", "spec.inputs", "use folders apart"),
    ("spec.checkpoint.path", "/nowhere", "spec.checkpoint.path", "mount one that holds it"),
    ("spec.checkpoint.path", "gs://b/c", "spec.checkpoint.path", "is on an object store"),
    ("spec.checkpoint.path", "/data", "spec.output.files.path", "use folders apart"),
    ("spec.checkpoint.reset", "a b", "spec.checkpoint.reset", "is no word; write letters"),
    ("spec.checkpoint", GONE, "spec.checkpoint", "Required value"),
    ("spec.join.units", 6, "spec.join.units", "write 1, 2, 4, 8"),
    ("spec.join.units", 131072, "spec.join.units", "less than or equal to 65536"),
    (
        "spec.join.units",
        4,
        "spec.join",
        "units is less than executors.max x executors.cores; raise units",
    ),
    (
        "spec.join.retention",
        "1h",
        "spec.join",
        "needs eventTime on every stream; add it, or remove retention",
    ),
    ("spec.join.retention", "30m2h", "spec.join.retention", "the largest first, such as 10s"),
    ("spec.join.retention", "", "spec.join.retention", "is no duration"),
    ("spec.join.retention", "0s", "spec.join.retention", "write 10s, 500ms or 2h30m"),
    ("spec.executors.min", 5, "spec.executors.min", "lower min or raise max"),
    (
        "spec.executors.instances",
        5,
        "spec.executors.instances",
        "is not between min and max; change one",
    ),
    ("spec.executors.memory", "8GB", "spec.executors.memory", "write 8Gi or 512Mi"),
    (
        "spec.executors.memory",
        "900Mi",
        "spec.executors.memory",
        "write more than 684Mi and 150Mi for each core",
    ),
    ("spec.executors.cores", 0, "spec.executors.cores", "greater than or equal to 1"),
    ("spec.executors.max", "four", "spec.executors.max", "must be of type integer"),
    ("spec.scaling", {"target": 0.9}, "spec.scaling.target", "write low < target < high"),
    ("spec.scaling", {"low": 0.6}, "spec.scaling.target", "write low < target < high"),
    ("spec.scaling", {"high": 1.5}, "spec.scaling.high", "less than or equal to 1"),
    ("spec.scaling", {"period": "0s"}, "spec.scaling.period", "write 60s"),
    ("spec.volumes", [{"mountPath": "/data"}], "spec.volumes[0]", "write exactly one of claim or hostPath"),
    (
        "spec.volumes",
        [{"mountPath": "/data", "claim": "c", "hostPath": "/d"}],
        "spec.volumes[0]",
        "write exactly one of",
    ),
    ("spec.volumes", [{"mountPath": "data", "claim": "c"}], "spec.volumes[0].mountPath", "write /data"),
    ("spec.volumes", [{"mountPath": "/data", "claim": "c"}] * 2, "spec.volumes[1]", "Duplicate value"),
    ("spec.image", "a b", "spec.image", "write it without spaces"),
    ("spec.suspend", "yes", "spec.suspend", "must be of type boolean"),
]
FINE: list[tuple[str, Any]] = [
    ("metadata.name", "a" * 40),
    ("spec.inputs.orders.role", "table"),
    (f"{FILES}.csv", {"header": True}),
    (f"{FILES}.path", "../in"),  # for a local run; the operator judges
    (f"{FILES}.path", "/old/in"),
    ("spec.volumes", [{"mountPath": "/data/", "claim": "data"}]),
    ("spec.checkpoint.reset", "second.try"),
    ("spec.executors.instances", 4),
    ("spec.executors", GONE),
    ("spec.executors.memory", "985Mi"),  # with two cores
    ("spec.join", GONE),
    ("spec.scaling", {}),
    ("spec.volumes", [{"mountPath": f"/data{n or ''}", "claim": "data"} for n in range(16)]),
]


def changed(document: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    """A copy in which one field is another, or gone."""
    result = copy.deepcopy(document)
    *path, last = place.split(".")
    node = result
    for step in path:
        node = node.setdefault(step, {})
    if value is GONE:
        del node[last]
    else:
        node[last] = value
    return result


@pytest.fixture(scope="module")
def space() -> Iterator[Kube]:
    """A namespace of its own on a cluster that has the kind."""
    kube = Kube(f"kind-{uuid.uuid4().hex[:8]}")
    kube.run("apply", "--server-side", "--force-conflicts", "-f", str(MANIFESTS / "crd.yaml"))
    kube.run("wait", "crd/streamjoins.streamjoin.dev", "--for=condition=Established", "--timeout=30s")
    kube.run("create", "namespace", kube.namespace)
    yield kube
    kube.run("delete", "namespace", kube.namespace, "--wait=false")


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
    said = re.sub(r"\[([a-z ]+)\]", r".\1", create(space, changed(GOOD, place, value)))  # inputs[orders]

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
    assert "patched" in patched(space, live, {"join": {"units": 16}})
    assert "patched" in patched(space, live, {"inputs": generator})

    started(space, live)

    said = patched(space, live, {"join": {"units": 16}})
    assert "spec.join" in said
    assert (
        "units is fixed for the life of a checkpoint; set it back, or begin a new checkpoint with another checkpoint.path"
        in said
    )
    assert "spec.inputs" in (said := patched(space, live, {"inputs": generator}))
    assert "begin a new checkpoint" in said
    assert "patched" in patched(
        space, live, {"executors": {"max": 2, "memory": "3Gi"}, "batch": {"maxRows": 5}}
    )
    assert "patched" in patched(space, live, {"join": {"units": 16}, "checkpoint": {"reset": "two"}})
    assert "patched" in patched(space, live, {"inputs": generator, "checkpoint": {"path": "/data/other"}})


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
