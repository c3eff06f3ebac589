"""An executor in reserve: it is there and warm, gets units when one more is wanted or one is lost, and another one comes."""

import re

from tests.cluster.jobs import Store, expected, job
from tests.cluster.kube import Kube, Object
from tests.cluster.test_runs import running

NAME = "reserve"
EXECUTORS = f"app.kubernetes.io/instance={NAME},app.kubernetes.io/component=executor"


def _executors(space: Kube) -> Object:
    found: Object = space.get("sj", NAME)["status"]["executors"]
    return found


def _at_work(space: Kube) -> set[str]:
    """The pods of the executors that have units, as the driver's log says."""
    said = re.findall(r"from the next batch on: \d+ partitions, (.*)", space.run("logs", f"{NAME}-driver-0"))[
        -1
    ]
    numbers = set(re.findall(r"executor (\d+)", said))
    pods = space.every("pods", EXECUTORS)
    return {p["metadata"]["name"] for p in pods if p["metadata"]["labels"]["spark-exec-id"] in numbers}


def test_one_in_reserve(space: Kube, store: Store) -> None:
    """No pod is waited for when a second one is wanted; the one that works is lost, and the other goes on."""
    document = job(
        NAME,
        rows=6000,
        rate=60,
        executors={"min": 1, "max": 2, "spare": 1, "cores": 1, "memory": "1280Mi"},
    )
    space.apply(document)
    running(space, NAME, 1)
    space.until("one is spare", lambda: _executors(space).get("spare") == 1)
    there = set(space.names("pods", EXECUTORS))
    assert len(there) == 2
    assert len(_at_work(space)) == 1

    space.run("scale", "sj", NAME, "--replicas=2")
    running(space, NAME, 2)
    space.until("both have units", lambda: _at_work(space) == there)
    assert "spare" not in _executors(space)
    assert set(space.names("pods", EXECUTORS)) == there

    space.run("scale", "sj", NAME, "--replicas=1")
    space.until("one is spare again", lambda: _executors(space).get("spare") == 1)
    space.until("one has all units", lambda: len(_at_work(space)) == 1)
    (lost,) = _at_work(space)
    space.run("delete", "pod", lost, "--grace-period=0", "--force")
    space.until("the other has all units", lambda: _at_work(space) == there - {lost})
    space.until("another one is spare", lambda: _executors(space).get("spare") == 1)
    space.until("the output is complete", lambda: store.output(NAME) == expected(document))
