"""`helm install`, `kubectl apply`, and results appear."""

import time

from tests.cluster.jobs import Store, expected, job
from tests.cluster.kube import Kube


def running(kube: Kube, name: str, executors: int) -> None:
    """Waits until the job runs on so many executors."""
    kube.until(
        f"{name} runs on {executors} executors",
        lambda: (
            (status := kube.get("sj", name)["status"])["phase"] == "Running"
            and status["executors"]["ready"] == executors
        ),
    )


def test_results_appear(space: Kube, store: Store) -> None:
    """Driver and two executors as pods; the output is that of DuckDB over the same rows, and stays it after a suspension."""
    document = job(
        "first", rows=2000, rate=None, executors={"min": 2, "max": 2, "cores": 1, "memory": "1280Mi"}
    )
    start = time.monotonic()
    space.apply(document)
    space.until("there are results", lambda: store.output("first"))
    print(f"first result {time.monotonic() - start:.0f} s after apply")
    running(space, "first", 2)
    pods = space.names("pods", "app.kubernetes.io/instance=first,app.kubernetes.io/component=executor")
    assert len(pods) == 2
    assert "KubernetesClientTimeoutException" not in space.run("logs", "first-driver-0")
    for log in (space.run("logs", pod) for pod in pods):  # they took tasks when they were warm
        assert "Initialized executor component for plugin dev.streamjoin.WarmExecutor" in log
        assert "not warm" not in log
    space.until("the output is complete", lambda: store.output("first") == expected(document))
