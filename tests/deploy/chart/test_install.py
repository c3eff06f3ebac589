"""The chart on a real cluster, as one installs it who has a namespace and not the cluster: `helm install`, `helm test`, `helm uninstall`."""

import pytest

from tests.cluster.kube import Kube
from tests.deploy.chart.conftest import CHART, run
from tests.deploy.chart.documents import GOOD, changed

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module", autouse=True)
def restricted(space: Kube) -> None:
    """Only pods of the restricted Pod Security Standard may run here."""
    space.run(
        "label", "namespace", space.namespace, "pod-security.kubernetes.io/enforce=restricted", "--overwrite"
    )


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

    space.until("the job rests", lambda: space.get("sj", "rights")["status"]["phase"] == "Suspended")

    for kind in ("serviceaccount", "role", "rolebinding", "service", "statefulset"):
        assert space.get(kind, "rights-driver"), kind
    assert space.get("poddisruptionbudget", "rights-executor")
    log = space.run("logs", "-l", "app.kubernetes.io/component=operator", "--tail=-1")
    assert "orbidden" not in log
    assert not [line for line in log.splitlines() if "ERROR" in line and "will retry" not in line]


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


def test_a_webhook(helm: str, space: Kube, release: str) -> None:
    """What cannot be run is refused when it is applied, with the place; nothing is while no operator answers.

    An upgrade keeps its certificate.
    """
    upgrade = ("upgrade", release, str(CHART), "--reuse-values", "--wait", "--timeout=120s", "--set")
    run(helm, space, *upgrade, "webhook.enabled=true")
    secret, configuration = f"{release}-operator-webhook", f"{space.namespace}-{release}-operator"
    made = space.get("secret", secret)["data"]
    run(helm, space, *upgrade, "replicas=1")
    assert space.get("secret", secret)["data"] == made

    sql = GOOD["spec"]["sql"]
    wrong = changed(
        changed(GOOD, "metadata.name", "wrong"), "spec.sql", sql.replace("SELECT ", "SELECT nowhere, ", 1)
    )
    wrong = changed(wrong, "spec.checkpoint.path", "/data/wrong")
    space.until("it is refused", lambda: "spec.sql: line 1, column 8" in space.apply(wrong, check=False))
    assert "wrong" not in space.names("sj")
    right = changed(changed(wrong, "spec.sql", sql), "spec.suspend", True)
    space.apply(right)
    assert "denied the request" in space.apply(wrong, check=False)
    assert space.get("sj", "wrong")["spec"]["sql"] == sql

    told = space.apply(changed(right, "spec.sql", sql.replace(" JOIN", " LEFT JOIN")), check=False)
    assert "Warning: no driver is known to have begun the state" in told
    assert "the joins were inner(0, 1) and are left(0, 1)" in told
    assert "wrong configured" in told
    unread = changed(right, "spec.sql", "SELECT o.k FROM orders o")
    assert "spec.inputs.payments: no query reads it" in space.apply(unread, check=False)
    space.apply(right)

    space.run("scale", "deployment", f"{release}-operator", "--replicas=0")
    space.until("no operator answers", lambda: not space.names("pod", "app.kubernetes.io/component=operator"))
    space.apply(changed(wrong, "metadata.name", "later"))
    assert "later" in space.names("sj")
    run(helm, space, *upgrade, "webhook.enabled=false")
    assert configuration not in space.names("validatingwebhookconfigurations")


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
