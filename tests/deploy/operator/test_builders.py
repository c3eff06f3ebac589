"""What must the objects of a job be like? The same each time, safe, and as the driver expects them."""

import json
import re
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from joinop import build, names
from joinop.build.job import quantity
from joinop.build.network import driver_policy
from joinop.build.settings import accepted as held
from joinop.build.settings import config_map, executor
from joinop.build.workload import stateful_set

from joinlib import deploy
from joinlib.spec.pods import Pods
from tests.deploy.operator.objects import accepted, job, stream_join

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", fullmatch=True)


def built(**more: object) -> dict[str, dict]:
    found = build.children(job(**more), monitored=True)
    return {f"{child['kind']}/{child['metadata']['name']}": child for child in found}


@pytest.mark.slow
@given(NAMES, st.booleans(), st.sampled_from(["1", "2Gi", "512Mi"]))
def test_deterministic(name: str, monitored: bool, memory: str) -> None:
    """The same StreamJoin gives the same objects byte for byte, with valid names and labels that fit."""
    one, two = (
        json.dumps(build.children(job(stream_join(name, driver__memory=memory)), monitored=monitored))
        for _ in range(2)
    )

    assert one == two
    for child in json.loads(one):
        assert LABEL.fullmatch(child["metadata"]["name"])
        assert all(len(value) <= 63 for value in child["metadata"]["labels"].values())
        assert child["metadata"]["ownerReferences"][0]["uid"] == f"uid-shop-{name}"
    assert LABEL.fullmatch(deploy.driver_pod(name))


def test_all_kinds() -> None:
    """A job has these objects and no others; the PodMonitor only where the kind exists."""
    assert sorted(built()) == [
        "ConfigMap/late-spec",
        "NetworkPolicy/late-driver",
        "NetworkPolicy/late-executor",
        "PodDisruptionBudget/late-executor",
        "PodMonitor/late",
        "Role/late-driver",
        "RoleBinding/late-driver",
        "Service/late-driver",
        "ServiceAccount/late-driver",
        "StatefulSet/late-driver",
    ]
    assert not [child for child in build.children(job(), monitored=False) if child["kind"] == "PodMonitor"]


def pods() -> dict[str, dict]:
    return {"driver": stateful_set(job())["spec"]["template"]["spec"], "executor": executor(job())["spec"]}


@pytest.mark.parametrize("part", ["driver", "executor"])
def test_restricted(part: str) -> None:
    """Pods keep to the restricted Pod Security Standard, and write to folders of their own only."""
    pod = pods()[part]
    (container,) = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 185
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is (part == "driver")
    assert pod["terminationGracePeriodSeconds"] == 90


@pytest.mark.parametrize("part", ["driver", "executor"])
def test_mounts_match_volumes(part: str) -> None:
    """Each mount has its volume, the folders of the environment can be written, and the spec's volumes are
    there.
    """
    pod = pods()[part]
    (container,) = pod["containers"]
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    environment = {variable["name"]: variable.get("value") for variable in container["env"]}

    assert sorted(mounts) == sorted(volume["name"] for volume in pod["volumes"])
    writable = {mount["mountPath"] for mount in mounts.values() if not mount.get("readOnly")}
    assert {environment[name] for name in ("HOME", "TMPDIR", "STREAMJOIN_LOCAL_DIR")} | {"/data"} == writable


def test_volumes() -> None:
    """Claims, Secrets and folders of the node are mounted where the spec says, read-only where it says so."""
    volumes = [
        {"mountPath": "/data", "claim": "shared"},
        {"mountPath": "/data/orders", "hostPath": "/srv/orders", "readOnly": True},
        {"mountPath": "/secrets/kafka", "secret": "kafka-login"},
    ]
    pod = stateful_set(job(stream_join(volumes=volumes)))["spec"]["template"]["spec"]

    assert pod["volumes"][-3:] == [
        {"name": "volume-0", "persistentVolumeClaim": {"claimName": "shared"}},
        {"name": "volume-1", "hostPath": {"path": "/srv/orders", "type": "Directory"}},
        {"name": "volume-2", "secret": {"secretName": "kafka-login", "defaultMode": 0o440}},
    ]
    assert pod["containers"][0]["volumeMounts"][-2:] == [
        {"name": "volume-1", "mountPath": "/data/orders", "readOnly": True},
        {"name": "volume-2", "mountPath": "/secrets/kafka", "readOnly": True},
    ]


def test_variables_come_from_secrets() -> None:
    """Driver and executors have them by name of Secret and entry, beside their own; Spark keeps what a
    template has.
    """
    env = {
        "SHOP_PASSWORD": {"secret": "shop-login", "key": "password"},
        "AUDIT_URI": {"secret": "audit", "key": "uri"},
    }
    (driver,) = stateful_set(job(stream_join(env=env)))["spec"]["template"]["spec"]["containers"]
    template = yaml.safe_load(
        built(given=stream_join(env=env))["ConfigMap/late-spec"]["data"]["executor.yaml"]
    )
    for container in (driver, *template["spec"]["containers"]):
        given = [variable for variable in container["env"] if "secretKeyRef" in variable.get("valueFrom", {})]
        assert given == [
            {"name": "AUDIT_URI", "valueFrom": {"secretKeyRef": {"name": "audit", "key": "uri"}}},
            {
                "name": "SHOP_PASSWORD",
                "valueFrom": {"secretKeyRef": {"name": "shop-login", "key": "password"}},
            },
        ]
        names_of_all = [variable["name"] for variable in container["env"]]
        assert len(set(names_of_all)) == len(names_of_all)


def test_driver() -> None:
    """The driver gets what the spec asks for, and knows its image, its executors' template and its token."""
    (container,) = stateful_set(job(stream_join(driver__cores=2, driver__memory="3Gi")))["spec"]["template"][
        "spec"
    ]["containers"]
    environment = {variable["name"]: variable.get("value") for variable in container["env"]}

    assert container["resources"] == {"requests": {"cpu": "2", "memory": "3Gi"}, "limits": {"memory": "3Gi"}}
    assert environment["STREAMJOIN_IMAGE"] == container["image"] == "streamjoin:1"
    assert environment["STREAMJOIN_EXECUTOR_TEMPLATE"] == "/etc/streamjoin/executor.yaml"
    assert environment["STREAMJOIN_TOKEN_FILE"] == "/etc/streamjoin-token/token"
    assert environment["STREAMJOIN_RPC_FILE"] == "/etc/streamjoin-rpc/token"
    assert {"POD_NAME", "POD_NAMESPACE", "POD_IP", "POD_UID"} <= set(environment)


def test_suspended() -> None:
    """A suspended job has no driver, and everything else."""
    assert stateful_set(job(suspended=True))["spec"]["replicas"] == 0
    assert stateful_set(job())["spec"]["replicas"] == 1


def test_config_map_holds_the_document() -> None:
    """The driver reads what was accepted, and the operator can read it back."""
    found = config_map(job())

    assert yaml.safe_load(found["data"]["spec.yaml"]) == accepted(stream_join()).document == held(found)
    assert yaml.safe_load(found["data"]["executor.yaml"])["kind"] == "Pod"
    assert held(None) is None
    assert held({"data": {"spec.yaml": "a: ["}}) is None


def test_role_is_narrow() -> None:
    """A driver may not read secrets or config maps, patch anything, or touch another job's lease."""
    rules = built()["Role/late-driver"]["rules"]

    assert {resource for rule in rules for resource in rule["resources"]} == {"pods", "leases"}
    assert not any(verb in rule["verbs"] for rule in rules for verb in ("*", "patch"))
    assert [rule["resourceNames"] for rule in rules if "update" in rule["verbs"]] == [["late-driver"]]


def test_network_policies() -> None:
    """Spark's ports are for executors, HTTP for operator, Prometheus and labelled pods, executors for their
    own job.
    """
    spark, http = built()["NetworkPolicy/late-driver"]["spec"]["ingress"]
    (inside,) = built()["NetworkPolicy/late-executor"]["spec"]["ingress"]

    assert [port["port"] for port in spark["ports"]] == [7078, 7079]
    assert spark["from"] == [{"podSelector": {"matchLabels": deploy.match("late", "executor")}}]
    assert [port["port"] for port in http["ports"]] == [8080]
    assert len(http["from"]) == 1  # outside a cluster there is no operator's namespace
    assert http["from"][-1] == {"podSelector": {"matchLabels": {"streamjoin.dev/client": "late"}}}
    assert inside == {"from": [{"podSelector": {"matchLabels": deploy.match("late")}}]}


def test_from_outside_only_named_namespaces_come_in() -> None:
    """A label can be written by always in a namespace of his own, its name cannot."""
    scraper = {"namespaceSelector": {"matchLabels": {"team": "metrics"}}}
    policy = driver_policy(replace(job(), operator="system", scrapers=(scraper,)))
    operator, other, _ = policy["spec"]["ingress"][1]["from"]

    assert operator == {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "system"}},
        "podSelector": {"matchLabels": names.OPERATOR},
    }
    assert other == scraper


def test_secret_is_not_derived() -> None:
    """The token is what it was given, and no other object knows it."""
    assert build.secret(job(), "late-token", "hunter2")["data"] == {"token": "aHVudGVyMg=="}
    assert "hunter2" not in json.dumps(build.children(job(), monitored=True))


def test_http_is_in_clear_or_secured() -> None:
    """With a Secret: its certificate is mounted by the driver alone, probes and Prometheus speak TLS, who
    looks has the token.
    """
    plain, secured = (build.children(job(http_secret=name), monitored=True) for name in (None, "drivers-tls"))
    assert "tls" not in json.dumps(plain)
    found = {child["kind"]: child["spec"] for child in secured if "spec" in child}
    pod = found["StatefulSet"]["template"]["spec"]
    (container,) = pod["containers"]
    assert {"name": "tls", "secret": {"secretName": "drivers-tls", "defaultMode": 0o440}} in pod["volumes"]
    assert {"name": "tls", "mountPath": "/etc/streamjoin-tls", "readOnly": True} in container["volumeMounts"]
    assert {"name": "STREAMJOIN_TLS_FOLDER", "value": "/etc/streamjoin-tls"} in container["env"]
    assert {
        container[f"{kind}Probe"]["httpGet"]["scheme"] for kind in ("startup", "liveness", "readiness")
    } == {"HTTPS"}
    assert "drivers-tls" not in next(c for c in secured if c["kind"] == "ConfigMap")["data"]["executor.yaml"]
    (endpoint,) = found["PodMonitor"]["podMetricsEndpoints"]
    assert endpoint["scheme"] == "https"
    assert endpoint["authorization"] == {"credentials": {"name": "late-token", "key": "token"}}
    assert endpoint["tlsConfig"] == {
        "ca": {"secret": {"name": "drivers-tls", "key": "ca.crt"}},
        "serverName": "late-driver.shop.svc",
    }


def test_executors_know_the_driver_and_not_the_operator() -> None:
    """The Secret of Spark's RPC is mounted by both at the place that the driver tells Spark; the operator's
    by the driver.
    """
    driver = stateful_set(job())["spec"]["template"]["spec"]
    executor = yaml.safe_load(built()["ConfigMap/late-spec"]["data"]["executor.yaml"])["spec"]
    held = [
        [volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume]
        for pod in (driver, executor)
    ]
    assert held == [["late-token", "late-rpc"], ["late-rpc"]]
    for pod in (driver, executor):
        (container,) = pod["containers"]
        (mount,) = [m for m in container["volumeMounts"] if m["name"] == "rpc"]
        assert mount == {"name": "rpc", "mountPath": "/etc/streamjoin-rpc", "readOnly": True}


@given(st.integers(1, 2**45))
def test_quantity(amount: int) -> None:
    """Bytes are written as Kubernetes would, so that they come back the same."""
    text = quantity(amount)
    number, suffix = re.fullmatch(r"(\d+)([KMGTPE]i|[kMGTPE])?", text).groups()

    step = 1024 if amount % 1024 == 0 else 1000
    powers = ["", "K", "M", "G", "T", "P", "E"]

    assert int(number) * step ** powers.index((suffix or "").rstrip("i").upper()) == amount
    assert int(number) % step or (suffix or "").startswith("E")


@given(NAMES, NAMES, st.sampled_from(["", "-driver", "-executor", "-spec", "-token", "-rpc"]))
def test_names_never_meet(one: str, two: str, ending: str) -> None:
    """Two jobs of a namespace have no object in common, also if one is called as the other's objects are."""
    two = f"{one}{ending}"[:40].rstrip("-") if ending else two
    left, right = (
        {
            (child["kind"], child["metadata"]["name"])
            for child in build.children(job(stream_join(name)), monitored=True)
        }
        for name in (one, two)
    )

    assert one == two or not left & right


PLACED = {
    "imagePullSecrets": ["registry"],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    },
    "priorityClassName": "high",
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
}
LOST = [
    {
        "key": f"node.kubernetes.io/{what}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 30,
    }
    for what in ("not-ready", "unreachable")
]


@pytest.mark.parametrize("part", ["driver", "executor"])
def test_placing(part: str) -> None:
    """What the spec says of pods is in both, word for word; constraints are about pods of the same part."""
    made = job(stream_join(pods=PLACED))
    pod = {"driver": stateful_set(made)["spec"]["template"]["spec"], "executor": executor(made)["spec"]}[part]

    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["tolerations"] == [*PLACED["tolerations"], *LOST]
    assert {name: pod[name] for name in ("nodeSelector", "affinity", "priorityClassName")} == {
        name: PLACED[name] for name in ("nodeSelector", "affinity", "priorityClassName")
    }
    (spread,) = pod["topologySpreadConstraints"]
    assert spread["labelSelector"] == {"matchLabels": deploy.match("late", part)}


def test_placing_by_default() -> None:
    """What a spec leaves out is as the chart says, field by field; a lost node is put up with for as long
    as it says.
    """
    defaults = Pods.model_validate({"priorityClassName": "low", "nodeSelector": {"disk": "hdd"}})
    made = job(stream_join(pods={"priorityClassName": "high"}), default_pods=defaults, node_loss_s=5)
    pod = executor(made)["spec"]

    assert (pod["priorityClassName"], pod["nodeSelector"]) == ("high", {"disk": "hdd"})
    assert [each["tolerationSeconds"] for each in pod["tolerations"]] == [5, 5]
    own = job(stream_join(pods={"tolerations": [{"key": LOST[1]["key"], "operator": "Exists"}]}))
    assert [each["key"] for each in executor(own)["spec"]["tolerations"]] == [LOST[1]["key"], LOST[0]["key"]]


def test_resources() -> None:
    """CPU and disk, asked for and limited; the folder of indexes may not hold more than the pod."""
    places = {f"{part}__{name}": value for part in ("driver", "executors") for name, value in
              {"cpuRequest": "500m", "cpuLimit": "2", "storage": "8Gi"}.items()}  # fmt: skip
    made = job(stream_join(**places), cpu_request="50m")
    driver = stateful_set(made)["spec"]["template"]["spec"]
    disk = {"ephemeral-storage": "8Gi"}

    assert driver["containers"][0]["resources"] == {
        "requests": {"cpu": "500m", "memory": "2Gi", **disk},
        "limits": {"cpu": "2", "memory": "2Gi", **disk},
    }
    template = executor(made)["spec"]
    assert template["containers"][0]["resources"] == {"requests": disk, "limits": disk}  # Spark adds the rest
    for pod in (driver, template):
        assert {"name": "local", "emptyDir": {"sizeLimit": "8Gi"}} in pod["volumes"]
