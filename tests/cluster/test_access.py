"""Who may do what: the operator and the drivers just what they need, a stranger nothing."""

import base64
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pyarrow as pa
import pytest

from tests.cluster.jobs import Store, expected, job
from tests.cluster.kube import Kube, Object, reachable
from tests.cluster.test_runs import running
from tests.postgres.database import NAME, PASSWORD, USER, Database

_ASK = """
import json, sys, urllib.request, urllib.error
body = json.dumps({'total': 1, 'reason': 'by hand'}).encode()
request = urllib.request.Request('http://job-driver:8080/v1/executors', method='POST', data=body)
if len(sys.argv) > 1: request.add_header('Authorization', 'Bearer ' + sys.argv[1])
try: print(urllib.request.urlopen(request, timeout=10).status)
except urllib.error.HTTPError as e: print(e.code)
"""


def may(kube: Kube, account: str, verb: str, resource: str, *more: str) -> bool:
    """Whether a service account may do it in the namespace."""
    who = f"--as=system:serviceaccount:{account}"
    return kube.run("auth", "can-i", verb, resource, who, *more, check=False).strip().startswith("yes")


_NAMED = """SELECT o.k AS k, o.v AS ov, p.v AS pv, n.name AS name
FROM orders o JOIN payments p ON o.k = p.k JOIN names n ON n.k = o.k"""
_NAMES = pa.table({"k": pa.array(range(0, 4500, 2)), "name": [f"name {k}" for k in range(0, 4500, 2)]})
_LOGIN = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "shop-login"},
    "data": {"password": base64.b64encode(PASSWORD.encode()).decode()},
}


@contextmanager
def _shop(address: str) -> Iterator[Object]:
    """A PostgreSQL that pods can reach, and wants a password; how a job names it, with the table `names`."""
    shop = Database(listen_addresses=f"127.0.0.1,{address}")
    with open(shop.folder / "data" / "pg_hba.conf", "a") as rules:
        rules.write(f"host {NAME} {USER} all scram-sha-256\n")
    with shop:
        shop.fill("names", _NAMES)
        where = {**shop.fields, "host": address, "passwordEnv": "SHOP_PASSWORD"}
        yield {"schema": "k BIGINT, name STRING", "postgres": {**where, "table": "names"}}


@pytest.fixture(scope="module")
def running_job(shared: tuple[Kube, Store]) -> Iterator[tuple[Kube, Store]]:
    """A job that goes on for some minutes; it looks names up where its pods can reach this machine."""
    space, _ = shared
    with ExitStack() as stack:
        document = job("job", rows=9000, rate=20)
        if address := reachable():
            document["spec"]["sql"] = _NAMED
            document["spec"]["inputs"]["names"] = stack.enter_context(_shop(address))
            document["spec"]["env"] = {"SHOP_PASSWORD": {"secret": "shop-login", "key": "password"}}
        space.apply(_LOGIN, document)
        running(space, "job", 1)
        yield shared
        space.delete("sj", "job")


def test_rights_are_exact(system: Kube, running_job: tuple[Kube, Store]) -> None:
    """A table of what each may do and, more important, may not."""
    space, _ = running_job
    driver = f"{space.namespace}:job-driver"
    for verb in ("create", "get", "list", "watch", "delete"):
        assert may(space, driver, verb, "pods")
    for verb, resource, *more in (
        ("get", "secrets"),
        ("list", "secrets"),
        ("create", "configmaps"),
        ("create", "deployments"),
        ("create", "rolebindings"),
        ("patch", "streamjoins"),
        ("create", "pods", "--subresource=exec"),
    ):
        assert not may(space, driver, verb, resource, *more), f"a driver may {verb} {resource}"
    assert not may(Kube("default"), driver, "get", "pods")
    operator = (
        f"{system.namespace}:{system.names('serviceaccount', 'app.kubernetes.io/component=operator')[0]}"
    )
    assert may(space, operator, "patch", "statefulsets.apps")
    assert may(space, operator, "get", "nodes")  # is that of a driver lost?
    for verb, resource, *more in (
        ("list", "secrets"),
        ("delete", "namespaces"),
        ("create", "clusterroles"),
        ("create", "pods", "--subresource=exec"),
        ("delete", "persistentvolumeclaims"),
        ("*", "*"),
        ("delete", "streamjoins"),
        ("list", "nodes"),
        ("patch", "nodes"),
    ):
        assert not may(space, operator, verb, resource, *more), f"the operator may {verb} {resource}"


def test_a_password_reaches_executors_and_nobody_else(running_job: tuple[Kube, Store]) -> None:
    """A variable from a Secret opens the table; no object says what is in it, and no log."""
    space, store = running_job
    document = space.get("sj", "job")
    if "names" not in document["spec"]["inputs"]:
        pytest.skip("the cluster's pods cannot reach this machine")
    found = space.until("names are looked up", lambda: store.output("job"))
    assert found <= expected(_clean(document), names=_NAMES)
    for kind in ("sj", "configmap", "statefulset", "pods"):
        assert PASSWORD not in json.dumps(space.every(kind)), kind
    for pod in space.names("pods", "app.kubernetes.io/instance=job"):
        assert PASSWORD not in space.run("logs", pod), pod


def _clean(document: Object) -> Object:
    """As it was written."""
    return {
        **{key: document[key] for key in ("apiVersion", "kind", "spec")},
        "metadata": {"name": document["metadata"]["name"]},
    }


def test_a_stranger_cannot_scale(running_job: tuple[Kube, Store]) -> None:
    """401 without the token and with a wrong one; 200 with the job's own."""
    space, store = running_job
    assert store("python3", "-c", _ASK).strip() == "401"
    assert store("python3", "-c", _ASK, "wrong").strip() == "401"
    token = space.run("get", "secret", "job-token", "-o", "go-template={{.data.token | base64decode}}")
    assert store("python3", "-c", _ASK, token).strip() == "200"
    for text in (space.run("logs", "job-driver-0"), json.dumps(space.get("sj", "job"))):
        assert token not in text


def test_executors_follow_the_spec_while_it_runs(running_job: tuple[Kube, Store]) -> None:
    """`kubectl scale` to two and back: the driver's pod is the same all the time. The last test of the job: it is suspended."""
    space, _ = running_job
    before = space.get("pod", "job-driver-0")["metadata"]["uid"]
    for count in (2, 1):
        space.run("scale", "streamjoin", "job", f"--replicas={count}")
        running(space, "job", count)
    assert space.get("pod", "job-driver-0")["metadata"]["uid"] == before
    space.patch("sj", "job", {"spec": {"suspend": True}})
    space.until("its pods are gone", lambda: space.names("pods") == ["store"])
    assert space.get("sj", "job")["status"]["phase"] == "Suspended"
