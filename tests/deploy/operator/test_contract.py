"""What the operator writes, the driver reads: `joinlib.deploy` is the one place where both are agreed on."""

import ast
from pathlib import Path
from typing import get_args

import pytest
from joinop.build.pod import pod_security
from joinop.build.workload import service, stateful_set
from kubernetes.client import ApiClient, Configuration
from kubernetes.dynamic import DynamicClient

import joinlib.deploy
from jobs.driver.cluster import lease_of
from jobs.driver.environment import driver_environment
from jobs.spark_conf import confs
from joinlib import deploy
from joinlib.spec.model import StreamJoin
from tests.deploy.operator.objects import accepted, job, stream_join

ROOT = Path(__file__).parents[3]
DOWNWARD = {
    "metadata.name": "late-driver-0",
    "metadata.namespace": "shop",
    "status.podIP": "10.0.0.7",
    "metadata.uid": "0a1b2c3d",
}


def environment(**more: str) -> dict[str, str]:
    """The variables of a driver's container, as the kubelet fills them in."""
    (container,) = stateful_set(job(**more))["spec"]["template"]["spec"]["containers"]
    return {
        entry["name"]: entry["value"]
        if "value" in entry
        else DOWNWARD[entry["valueFrom"]["fieldRef"]["fieldPath"]]
        for entry in container["env"]
    }


def test_the_driver_understands_its_environment() -> None:
    """Every variable that the operator sets arrives in the driver's environment."""
    found = driver_environment(environment(http_secret="certificate", cpu_request="500m"))

    assert found.place is not None
    assert (found.place.pod.name, found.place.pod.namespace) == ("late-driver-0", "shop")
    assert (found.place.image, found.place.cpu) == ("streamjoin:1", "500m")
    assert found.place.template == "/etc/streamjoin/executor.yaml"
    assert found.place.secret == "/etc/streamjoin-rpc/token"
    assert (found.place.local, found.place.temporary) == ("/var/streamjoin", "/tmp")
    assert str(found.token_file) == "/etc/streamjoin-token/token"
    assert str(found.tls) == "/etc/streamjoin-tls"
    assert (found.owner, found.port) == ("uid-shop-late", 8080)
    assert found.config_hash == accepted(stream_join()).config_hash


def test_no_spec_sets_a_variable_of_the_driver() -> None:
    """Each one that the operator sets has a reserved prefix, or is none of a login."""
    prefixes = tuple(f"{prefix}_" for prefix in deploy.RESERVED)
    ours = [value for name, value in vars(deploy.Variable).items() if name.isupper()]

    assert set(environment(http_secret="certificate", cpu_request="1")) - {"HOME", "TMPDIR"} <= set(ours)
    assert all(name.startswith(prefixes) for name in ours)


def test_ports_are_the_same_everywhere() -> None:
    """Executors dial the ports that the driver binds and that its Service and its policy name."""
    place = driver_environment(environment()).place
    assert place is not None
    bound = confs(accepted(stream_join()).model, place)
    named = {port["name"]: port["port"] for port in service(job())["spec"]["ports"]}

    assert bound["spark.driver.port"] == str(named["rpc"])
    assert bound["spark.driver.blockManager.port"] == str(named["blocks"])


@pytest.mark.parametrize("name", ["late", "x" * deploy.NAME_MAX, "x" * (deploy.PREFIX_MAX - 1) + "-yyy"])
def test_names_fit(name: str) -> None:
    """Names of pods are labels too; Spark takes a prefix of 47 characters and no doubled dash."""
    prefix = deploy.executor_prefix(name, "0a1b2c3d")

    assert len(f"{deploy.driver(name)}-0123456789") <= 63
    assert len(prefix) <= 47
    assert "--" not in prefix


def test_the_lease_is_the_drivers_own() -> None:
    """The driver may write only the Lease that its Role names."""
    client = DynamicClient(ApiClient(Configuration()), discoverer=lambda *_: None)
    lease = lease_of(accepted(stream_join()).model, "shop", "uid", client)

    assert lease.name == deploy.driver("late")
    assert lease.metadata["labels"] == deploy.match("late", deploy.DRIVER)


def test_the_kind_is_the_models() -> None:
    """A type has to be written out; it says the same."""
    fields = StreamJoin.model_fields

    assert get_args(fields["api_version"].annotation) == (deploy.API_VERSION,)
    assert get_args(fields["kind"].annotation) == (deploy.KIND,)


def test_the_image_is_built_for_it() -> None:
    """User, folders and entry point of the pods are those of the Dockerfile."""
    text = (ROOT / "Dockerfile").read_text()

    assert pod_security()["runAsUser"] == deploy.USER
    assert f"useradd --uid {deploy.USER} --create-home {Path(deploy.HOME).name}" in text
    assert f"/opt/streamjoin {deploy.LOCAL}" in text
    assert f'ENTRYPOINT ["{deploy.ENTRY}"]' in text


def test_it_imports_nothing_of_ours() -> None:
    """Both sides can read it, whatever they may import otherwise."""
    tree = ast.parse(Path(joinlib.deploy.__file__).read_text())
    imported = [
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]

    assert imported == ["collections.abc", "dataclasses", "typing"]
