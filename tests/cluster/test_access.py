"""Who may do what: the operator and the drivers just what they need, a stranger nothing."""

import json

from tests.cluster.jobs import Store, job
from tests.cluster.kube import Kube
from tests.cluster.test_runs import running

_ASK = """
import json, sys, urllib.request, urllib.error
request = urllib.request.Request('http://job-driver:8080/v1/executors', method='POST', data=b'{"total": 1}')
if len(sys.argv) > 1: request.add_header('Authorization', 'Bearer ' + sys.argv[1])
try: print(urllib.request.urlopen(request, timeout=10).status)
except urllib.error.HTTPError as e: print(e.code)
"""


def may(kube: Kube, account: str, verb: str, resource: str, *more: str) -> bool:
    """Whether a service account may do it in the namespace."""
    who = f"--as=system:serviceaccount:{account}"
    return kube.run("auth", "can-i", verb, resource, who, *more, check=False).strip().startswith("yes")


def test_rights_are_exact(system: Kube, space: Kube, store: Store) -> None:
    """A table of what each may do and, more important, may not."""
    space.apply(job("job", rows=200))
    space.until("it has its account", lambda: space.get("rolebinding", "job-driver"), 60)
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
    for verb, resource, *more in (
        ("list", "secrets"),
        ("delete", "namespaces"),
        ("create", "clusterroles"),
        ("create", "pods", "--subresource=exec"),
        ("delete", "persistentvolumeclaims"),
        ("*", "*"),
        ("delete", "streamjoins"),
        ("get", "nodes"),
    ):
        assert not may(space, operator, verb, resource, *more), f"the operator may {verb} {resource}"


def test_a_stranger_cannot_scale(space: Kube, store: Store) -> None:
    """401 without the token and with a wrong one; 200 with the job's own."""
    space.apply(job("job", rows=3000, rate=20))
    running(space, "job", 1)
    assert store("python3", "-c", _ASK).strip() == "401"
    assert store("python3", "-c", _ASK, "wrong").strip() == "401"
    token = space.run("get", "secret", "job-token", "-o", "go-template={{.data.token | base64decode}}")
    assert store("python3", "-c", _ASK, token).strip() == "200"
    for text in (space.run("logs", "job-driver-0"), json.dumps(space.get("sj", "job"))):
        assert token not in text


def test_executors_follow_the_spec_while_it_runs(space: Kube, store: Store) -> None:
    """`kubectl scale` to two and back: the driver's pod is the same all the time."""
    space.apply(job("job", rows=8000, rate=30))
    running(space, "job", 1)
    before = space.get("pod", "job-driver-0")["metadata"]["uid"]
    for count in (2, 1):
        space.run("scale", "streamjoin", "job", f"--replicas={count}")
        running(space, "job", count)
    assert space.get("pod", "job-driver-0")["metadata"]["uid"] == before
    space.patch("sj", "job", {"spec": {"suspend": True}})
    space.until("its pods are gone", lambda: space.names("pods") == ["store"], 120)
    assert space.get("sj", "job")["status"]["phase"] == "Suspended"
