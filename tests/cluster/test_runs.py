"""`helm install`, `kubectl apply`, and results appear."""

import time

from typer.testing import CliRunner

from jobs.kubectl.commands import app
from tests.cluster.jobs import SQL, Store, expected, job
from tests.cluster.kube import Kube, Object


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
    """Driver and two executors as pods; the output is that of DuckDB over the same rows, of which the plugin can tell."""
    document = job(
        "first",
        rows=2000,
        rate=None,
        sql=f"{SQL} WHERE o.v > 9",
        executors={"min": 2, "max": 2, "cores": 1, "memory": "1280Mi"},
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
    _asked_why(space, document)


def _asked_why(space: Kube, document: Object) -> None:
    """The plugin says what a row of the result was made of, and why another is not there; the driver runs on all the time."""
    driver = space.get("pod", "first-driver-0")

    def said(question: str, condition: str, code: int = 0) -> str:
        found = CliRunner().invoke(app, [question, "first", condition, "-n", space.namespace])
        assert found.exit_code == code, (found.output, found.exception)
        return found.stdout if code == 0 else found.stderr

    key, order, payment = min(expected(document))
    made = said("why", f"k = {key} AND ov = {order} AND pv = {payment}")
    assert f"k = {key}, ov = {order}, pv = {payment}\n  from orders o: row " in made
    assert "\n  from payments p: row " in made

    assert "1 of 2,000 rows meets the condition\n  row 6, batch " in (missing := said("whynot", "o.v = 5"))
    assert "left out by `o.v > 9`" in missing
    assert said("whynot", "colour = 'red'", code=2).startswith("CONDITION: no input has its columns (colour)")

    after = space.get("pod", "first-driver-0")
    assert after["metadata"]["uid"] == driver["metadata"]["uid"]
    assert [c["restartCount"] for c in after["status"]["containerStatuses"]] == [
        c["restartCount"] for c in driver["status"]["containerStatuses"]
    ]
