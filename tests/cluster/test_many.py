"""Many jobs, and large ones, on nodes that run nothing (kwok): what the operator and the scheduler have to do is real."""

import os
import time

import pytest

from tests.cluster.conftest import CHART, SYSTEM
from tests.cluster.jobs import Store, expected, job
from tests.cluster.kube import Kube, helm
from tests.cluster.test_runs import running

EXECUTOR = "app.kubernetes.io/component=executor"


def test_fifty_jobs(system: Kube, space: Kube, store: Store) -> None:
    """Their objects are there within a minute, the operator stays small. Suspended, so that no driver is started."""
    start = time.monotonic()
    space.apply(*(job(f"job-{n:02d}", suspend=True) for n in range(50)))
    space.until("all are reconciled", lambda: len(space.every("statefulset")) == 50)
    space.until("and say so", lambda: [j["status"]["phase"] for j in space.every("sj")] == ["Suspended"] * 50)
    pod = system.names("pods", "app.kubernetes.io/component=operator")[0]
    status = system.exec(pod, "sh", "-c", "cat /proc/[0-9]*/status | grep VmRSS")
    print(
        f"50 StreamJoins after {time.monotonic() - start:.0f} s, processes of the operator: {status.split()}"
    )


def test_an_upgrade_of_the_chart_restarts_nothing(system: Kube, space: Kube, store: Store) -> None:
    """A query that did not change runs on in the same pod. The operator dies while it creates the job: its successor finishes."""
    document = job("job", rows=3000, rate=40)
    space.apply(document)
    for pod in system.names("pods", "app.kubernetes.io/component=operator"):
        system.run("delete", "pod", pod, "--force", "--grace-period=0")
    running(space, "job", 1)
    before = space.get("pod", "job-driver-0")["metadata"]["uid"]
    helm(
        "upgrade",
        "streamjoin",
        str(CHART),
        "-n",
        SYSTEM,
        "--reuse-values",
        "--set",
        "podAnnotations.upgraded=yes",
        "--wait",
    )
    space.patch("sj", "job", {"spec": {"executors": {"max": 3}}})
    space.until(
        "the new operator has looked", lambda: space.condition("job", "Ready")["observedGeneration"] == 2
    )
    assert space.get("pod", "job-driver-0")["metadata"]["uid"] == before
    space.until("the output is complete", lambda: store.output("job") == expected(document))


@pytest.mark.skipif(not os.environ.get("STREAMJOIN_FAKE_NODES"), reason="kwok plays no nodes in this cluster")
def test_the_set_up_of_the_paper(space: Kube, store: Store) -> None:
    """128 executors of 1 core and 8 GB are asked for and placed on nodes that run nothing: what is real is the asking and the placing."""
    executors = {"min": 128, "max": 128, "cores": 1, "memory": "8Gi"}
    space.apply(job("paper", executors=executors, join={"units": 128}))
    space.until(
        "the driver has a node that runs it",
        lambda: space.get("pod", "paper-driver-0")["status"]["phase"] == "Running",
    )
    space.run("taint", "nodes", "-l", "type=kwok", "kwok.x-k8s.io/node-")
    start = time.monotonic()
    try:
        space.until(
            "all are placed", lambda: len(_placed(space)) >= 128
        )  # Spark replaces one that it takes for lost
        print(
            f"128 executors placed on {len(set(_placed(space)))} nodes after {time.monotonic() - start:.0f} s"
        )
        one = space.every("pods", EXECUTOR)[0]["spec"]["containers"][0]["resources"]
        assert one["limits"]["memory"] == "8Gi"
    finally:
        space.run("taint", "nodes", "-l", "type=kwok", "kwok.x-k8s.io/node=fake:NoSchedule", "--overwrite")
        space.delete("sj", "paper")
        space.until("they are gone", lambda: not space.names("pods", EXECUTOR))


def _placed(space: Kube) -> list[str]:
    return [
        pod["spec"]["nodeName"]
        for pod in space.every("pods", EXECUTOR)
        if pod["status"]["phase"] == "Running"
    ]
