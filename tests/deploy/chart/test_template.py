"""What helm makes of the chart: objects that any cluster may have, and no more rights than needed."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from joinop.allow import Allow
from joinop.build import access
from joinop.config import Config

from tests.deploy.chart.conftest import BUILD, CHART, Object, Render, of_kind

FULL: dict[str, Any] = {
    "image": {"repository": "r.example/sj", "digest": "sha256:" + "0" * 64, "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "registry"}],
    "jobs": {
        "image": "r.example/jobs:1",
        "pullPolicy": "Never",
        "cpuRequest": "100m",
        "allow": {"secrets": ["streamjoin-*"]},
        "scrapers": [{"namespaceSelector": {}}],
        "pods": {"tolerations": [{"key": "spot", "operator": "Exists"}], "nodeSelector": {"disk": "ssd"}},
        "nodeLossSeconds": 5,
    },
    "watchNamespaces": ["a", "b"],
    "serviceAccount": {"annotations": {"a": "b"}},
    "podAnnotations": {"a": "true"},
    "podLabels": {"team": "joins"},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "high",
    "networkPolicy": {"from": [{"namespaceSelector": {}}]},
    "prometheus": {"url": "https://prometheus.example", "secret": "prometheus"},
    "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "podDisruptionBudget": {"enabled": True},
    "webhook": {
        "enabled": True,
        "tlsSecret": "webhook",
        "annotations": {"cert-manager.io/inject-ca-from": "system/webhook"},
    },
}
MATRIX: dict[str, dict[str, Any]] = {
    "defaults": {},
    "everything": FULL,
    "namespaced": {"watchNamespaces": ["a"]},
    "bare": {
        "crds": {"install": False},
        "rbac": {"create": False, "aggregate": False},
        "serviceAccount": {"create": False},
        "networkPolicy": {"enabled": False},
    },
}
CLUSTERED = ("CustomResourceDefinition", "ValidatingWebhookConfiguration")  # besides Cluster…
WRITE = {"get", "list", "watch", "create", "patch", "delete"}
RIGHTS = {  # what the operator asks for, and what it gives to drivers
    ("streamjoin.dev", "streamjoins"): {"list", "watch"},
    ("streamjoin.dev", "streamjoins/status"): {"patch"},
    ("streamjoin.dev", "streamjoins/finalizers"): {"update"},
    ("apps", "statefulsets"): WRITE,
    ("", "configmaps"): WRITE,
    ("", "services"): WRITE,
    ("", "serviceaccounts"): WRITE,
    ("", "secrets"): {"get", "create"},
    ("", "pods"): WRITE - {"patch"} | {"deletecollection"},
    ("", "persistentvolumeclaims"): {"get"},
    ("", "events"): {"create", "patch", "list"},
    ("rbac.authorization.k8s.io", "roles"): WRITE,
    ("rbac.authorization.k8s.io", "rolebindings"): WRITE,
    ("policy", "poddisruptionbudgets"): WRITE,
    ("networking.k8s.io", "networkpolicies"): WRITE,
    ("monitoring.coreos.com", "podmonitors"): WRITE - {"watch"},
    ("coordination.k8s.io", "leases"): {"get", "create", "update"},
}


def rights(role: Object) -> dict[tuple[str, str], set[str]]:
    """Verbs by group and resource."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for rule in role["rules"]:
        assert set(rule) <= {"apiGroups", "resources", "verbs"}
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                found[group, resource] |= set(rule["verbs"])
    return dict(found)


def pods(objects: list[Object]) -> list[Object]:
    """Every pod that the objects make."""
    return [
        o["spec"] if o["kind"] == "Pod" else o["spec"]["template"]["spec"]
        for o in of_kind(objects, "Pod", "Deployment")
    ]


@pytest.mark.parametrize("values", MATRIX.values(), ids=MATRIX)
def test_values_render(render: Render, helm: str, values: dict[str, Any]) -> None:
    """Objects with a name and a namespace, or none; lint finds nothing."""
    objects = render(**values)
    lint = [helm, "lint", "--strict", str(CHART), "-f", "-"]

    assert len({(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects}) == len(
        objects
    )
    for o in objects:
        apart = o["kind"].startswith("Cluster") or o["kind"] in CLUSTERED
        assert apart != ("namespace" in o["metadata"]), o["metadata"]
    subprocess.run(lint, input=yaml.safe_dump(values), text=True, check=True, capture_output=True)


@pytest.mark.parametrize("values", MATRIX.values(), ids=MATRIX)
def test_pods_are_restricted(render: Render, values: dict[str, Any]) -> None:
    """As the restricted Pod Security Standard has it, and a file system that nobody writes to."""
    found = pods(render(**values))

    assert len(found) == 2
    for pod in found:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        assert all({"emptyDir", "secret"} & set(volume) for volume in pod.get("volumes", ()))
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert set(container["resources"]["limits"]) == {"memory"}  # a CPU limit would only slow it


def test_rights_are_exactly_these(render: Render) -> None:
    """The operator's, by one ClusterRole; and no wildcard."""
    (role,) = (r for r in of_kind(render(), "ClusterRole") if r["metadata"]["name"] == "system-sj-operator")

    assert rights(role) == RIGHTS | {("", "nodes"): {"get"}}  # which no Role can give
    assert "*" not in json.dumps([r["rules"] for r in of_kind(render(), "ClusterRole", "Role")])


def test_what_is_given_is_held(render: Render) -> None:
    """Kubernetes lets nobody give a right that he has not: a driver's Role would be refused."""
    job = SimpleNamespace(name="job", object=lambda kind, name, **more: more)
    given = rights(
        {"rules": [{k: v for k, v in r.items() if k != "resourceNames"} for r in access.role(job)["rules"]]}
    )
    (role,) = (r for r in of_kind(render(watchNamespaces=["a"]), "Role") if r["metadata"]["namespace"] == "a")

    missing = {what: verbs - rights(role).get(what, set()) for what, verbs in given.items()}
    assert not any(missing.values()), missing


def test_namespaced_rights(render: Render) -> None:
    """The same in each namespace that is served, and nothing that reaches further."""
    objects = render(watchNamespaces=["a", "b"])

    roles = {r["metadata"]["namespace"]: r for r in of_kind(objects, "Role")}
    own = roles.pop("system")["rules"]
    assert [(r["resources"], r["verbs"], r.get("resourceNames")) for r in own] == [
        (["leases"], ["create"], None),
        (["leases"], ["get", "update"], ["sj-operator"]),
    ]
    assert {namespace: rights(role) for namespace, role in roles.items()} == {"a": RIGHTS, "b": RIGHTS}
    assert {r["metadata"]["namespace"] for r in of_kind(objects, "RoleBinding")} == {"a", "b", "system"}
    assert {r["metadata"]["name"] for r in of_kind(objects, "ClusterRole")} == {
        "streamjoin-view",
        "streamjoin-edit",
    }
    assert of_kind(objects, "ClusterRoleBinding") == []


@pytest.mark.slow
def test_bindings_lead_from_the_account_to_the_role(render: Render) -> None:
    """Names agree, whoever made the account."""
    for name, values in (
        ("sj-operator", {}),
        ("mine", {"serviceAccount": {"create": False, "name": "mine"}}),
    ):
        objects = render(**values)
        (deployment,) = of_kind(objects, "Deployment")
        (binding,) = of_kind(objects, "ClusterRoleBinding")

        assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == name
        assert [(s["name"], s["namespace"]) for s in binding["subjects"]] == [(name, "system")]
        assert binding["roleRef"]["name"] in {r["metadata"]["name"] for r in of_kind(objects, "ClusterRole")}


def test_users_reach_their_jobs(render: Render) -> None:
    """Nobody writes the status by hand."""
    view, edit = (
        {r["metadata"]["name"]: r for r in of_kind(render(), "ClusterRole")}[f"streamjoin-{n}"]
        for n in ("view", "edit")
    )

    assert rights(view) == {
        ("streamjoin.dev", r): {"get", "list", "watch"}
        for r in ("streamjoins", "streamjoins/status", "streamjoins/scale")
    }
    assert ("streamjoin.dev", "streamjoins/status") not in rights(edit)
    assert rights(edit)["streamjoin.dev", "streamjoins/scale"] == {"update", "patch"}


@pytest.mark.slow
def test_the_operator_is_found_by_its_jobs(render: Render) -> None:
    """Under the name that a job's NetworkPolicy lets in; with the images that the values name."""
    (deployment,) = of_kind(render(**FULL), "Deployment")
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    env = {e["name"]: e["value"] for e in container["env"] if "value" in e}

    assert pod["metadata"]["labels"]["app.kubernetes.io/name"] == "streamjoin-operator"
    assert (container["image"], env["JOINOP_IMAGE"]) == (
        "r.example/sj@sha256:" + "0" * 64,
        "r.example/jobs:1",
    )
    assert (env["JOINOP_IMAGE_PULL_POLICY"], env["JOINOP_CPU_REQUEST"]) == ("Never", "100m")
    config = Config.of(env)  # as the operator reads it
    assert (config.pods.node_selector, config.pods.tolerations[0].key) == ({"disk": "ssd"}, "spot")
    assert config.node_loss_s == 5
    assert (container["args"], env["JOINOP_NAMESPACES"]) == (["operator"], "a,b")
    assert env["JOINOP_NAMESPACE"] == deployment["metadata"]["namespace"]
    assert (config.allow, config.scrapers) == (Allow(secrets=("streamjoin-*",)), ({"namespaceSelector": {}},))
    assert env["JOINOP_PROMETHEUS_URL"] == "https://prometheus.example"
    assert env["JOINOP_PROMETHEUS_TOKEN_FILE"] == "/etc/prometheus/token"
    assert {"name": "prometheus", "mountPath": "/etc/prometheus", "readOnly": True} in container[
        "volumeMounts"
    ]
    for kind in ("Service", "NetworkPolicy", "PodMonitor", "PodDisruptionBudget"):
        (found,) = of_kind(render(**FULL), kind)
        selector = found["spec"].get("selector", found["spec"].get("podSelector"))
        labels = selector.get("matchLabels", selector)
        assert labels.items() <= pod["metadata"]["labels"].items(), kind


@pytest.mark.slow
def test_one_of_several_acts(render: Render) -> None:
    """Two by default, on two nodes if there are two, that know one Lease and each its own name; a drain leaves one."""
    for values, replicas, budgets in (({}, 2, 1), ({"replicas": 1}, 1, 0), ({"replicas": 3}, 3, 1)):
        objects = render(**values)
        (deployment,) = of_kind(objects, "Deployment")
        pod = deployment["spec"]["template"]["spec"]
        env = {e["name"]: e.get("value", e.get("valueFrom")) for e in pod["containers"][0]["env"]}

        assert deployment["spec"]["replicas"] == replicas
        assert env["JOINOP_LEASE"] == "system/sj-operator"
        assert env["JOINOP_POD"] == {"fieldRef": {"fieldPath": "metadata.name"}}
        (apart,) = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        chosen = apart["podAffinityTerm"]["labelSelector"]["matchLabels"]
        assert chosen == deployment["spec"]["selector"]["matchLabels"]
        assert [b["spec"]["minAvailable"] for b in of_kind(objects, "PodDisruptionBudget")] == [1] * budgets
    (deployment,) = of_kind(render(affinity={"nodeAffinity": {}}), "Deployment")
    assert deployment["spec"]["template"]["spec"]["affinity"] == {"nodeAffinity": {}}


def test_only_metrics_and_health_are_open(render: Render) -> None:
    """One port, the one that the container has."""
    (policy,) = of_kind(render(), "NetworkPolicy")

    assert policy["spec"]["policyTypes"] == ["Ingress"]
    assert policy["spec"]["ingress"] == [{"ports": [{"port": "http", "protocol": "TCP"}]}]


def test_the_kind_stays(render: Render) -> None:
    """An uninstall keeps it; who brings it himself gets none."""
    (crd,) = of_kind(render(), "CustomResourceDefinition")

    assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert crd == yaml.safe_load((CHART / "files" / "crd.yaml").read_text())
    assert of_kind(render(crds={"install": False}), "CustomResourceDefinition") == []


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"image": {"tagg": "1"}}, "tagg"),
        ({"watchNamespaces": ["A B"]}, "watchNamespaces"),
        ({"crds": {"install": "yes"}}, "install"),
        ({"image": {"digest": "sha256:1"}}, "digest"),
        ({"replicas": -1}, "replicas"),
    ],
)
def test_a_wrong_value_is_refused(render: Render, values: dict[str, Any], named: str) -> None:
    """With its name, before anything is installed."""
    with pytest.raises(AssertionError, match=named):
        render(**values)


def test_values_are_described() -> None:
    """values.yaml and its schema hold the same keys, each with a sentence; this needs no helm."""
    schema = json.loads((CHART / "values.schema.json").read_text())

    def compare(node: dict[str, Any], values: Any, place: str) -> None:
        if "properties" not in node:
            assert node["description"].endswith("."), place
            return
        assert set(node["properties"]) - {"global"} == set(values), place
        for name, value in values.items():
            compare(node["properties"][name], value, f"{place}.{name}")

    compare(schema, yaml.safe_load((CHART / "values.yaml").read_text()), "")


def test_nothing_is_out_of_date() -> None:
    """What manifests/build writes is what is there; of the plain install only the kind where helm is missing."""
    done = subprocess.run(
        [sys.executable, str(BUILD), "--check"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_blank_lines_that_a_helm_leaves(tmp_path: Path) -> None:
    """Versions of helm differ in them; the plain install is the same."""
    helm = tmp_path / "helm"
    documents = f"sed '1,/restricted/d; s/^---$/\\n\\n---/' {BUILD.parent / 'install.yaml'}"
    helm.write_text(f"#!/bin/sh\nexec {documents}\n")
    helm.chmod(0o755)
    done = subprocess.run(
        [sys.executable, str(BUILD), "--check"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HELM": str(helm)},
    )

    assert done.returncode == 0, done.stdout + done.stderr
