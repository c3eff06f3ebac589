"""What needs a real API server: children come back, deletion needs no operator, mistakes show, fifty jobs
are few.

No pod has to run for it. `tests/cluster` looks at running jobs.
"""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.kube import Kube
from tests.deploy.operator.conftest import Outside
from tests.deploy.operator.objects import SPEC, changed

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

HOST = [{"mountPath": "/data", "hostPath": "/tmp"}]
CHILDREN = {
    "configmap": ["late-spec"],
    "networkpolicy": ["late-driver", "late-executor"],
    "poddisruptionbudget": ["late-executor"],
    "role": ["late-driver"],
    "rolebinding": ["late-driver"],
    "service": ["late-driver"],
    "serviceaccount": ["late-driver"],
    "statefulset": ["late-driver"],
}
SECRETS = ("late-token", "late-rpc")
MANAGED = "app.kubernetes.io/managed-by=streamjoin-operator"


def job(name: str = "late", **places: Any) -> dict[str, Any]:
    """A job whose volume is the node's; `places` are fields of the spec with __ for dots."""
    spec = changed(SPEC, "volumes", HOST)
    for place, value in {
        "checkpoint__path": f"/data/{name}",
        "output__files__path": f"/data/out/{name}",
        **places,
    }.items():
        spec = changed(spec, place.replace("__", "."), value)
    return {
        "apiVersion": "streamjoin.dev/v1alpha1",
        "kind": "StreamJoin",
        "metadata": {"name": name},
        "spec": spec,
    }


def children(space: Kube) -> dict[str, list[str]]:
    return {kind: space.names(kind, MANAGED) for kind in CHILDREN}


def started(space: Kube, *jobs: dict[str, Any]) -> None:
    """Applies jobs and waits until all has been made."""
    space.apply(*jobs)
    names = [each["metadata"]["name"] for each in jobs]
    space.until("all are looked at", lambda: all(space.get("sj", name)["status"]["phase"] for name in names))


def message(space: Kube, name: str = "late") -> str:
    return space.condition(name, "Degraded").get("message", "")


def test_children_come_back(space: Kube, operator: Outside) -> None:
    """Each object that is deleted is made again; what the job needs is made once, and the log says nothing
    else.
    """
    started(space, job())
    space.until("all children", lambda: children(space) == CHILDREN)
    words = [space.get("secret", name)["data"]["token"] for name in SECRETS]
    assert len(set(words)) == 2
    for kind, names in CHILDREN.items():
        for name in names:
            space.delete(kind, name)
    space.until("all children again", lambda: children(space) == CHILDREN)

    assert [space.get("secret", name)["data"]["token"] for name in SECRETS] == words


def test_drift(space: Kube, operator: Outside) -> None:
    """What somebody changes by hand is put right; what others add is left alone."""
    started(space, job())
    space.until("all children", lambda: children(space) == CHILDREN)
    space.run("scale", "statefulset", "late-driver", "--replicas=3")
    space.run("annotate", "service", "late-driver", "theirs=yes")

    space.until("one driver", lambda: space.get("statefulset", "late-driver")["spec"]["replicas"] == 1)
    assert space.get("service", "late-driver")["metadata"]["annotations"]["theirs"] == "yes"


def test_nothing_is_written_without_need(space: Kube, operator: Outside) -> None:
    """A job that rests causes no writes: versions stay as they are."""
    started(space, job())
    space.until("all children", lambda: children(space) == CHILDREN)
    time.sleep(8)
    before = {
        kind: [child["metadata"]["resourceVersion"] for child in space.every(kind, MANAGED)]
        for kind in CHILDREN
    }
    generation = space.get("sj", "late")["metadata"]["resourceVersion"]
    time.sleep(12)

    after = {
        kind: [child["metadata"]["resourceVersion"] for child in space.every(kind, MANAGED)]
        for kind in CHILDREN
    }
    assert {kind for kind in CHILDREN if before[kind] != after[kind]} == set()
    assert space.get("sj", "late")["metadata"]["resourceVersion"] == generation


def test_deleted_without_operator(space: Kube, tmp_path: Path) -> None:
    """No finalizer: a StreamJoin and all that is its own go while no operator runs."""
    outside = Outside(space.namespace, tmp_path / "operator.log")
    with outside.running():
        started(space, job())
        space.until("all children", lambda: children(space) == CHILDREN)
    metadata = space.get("sj", "late")["metadata"]

    assert "finalizers" not in metadata
    assert not any("kopf" in name for name in metadata.get("annotations", {}))
    space.delete("sj", "late")
    space.until(
        "nothing is left",
        lambda: not any(children(space).values()) and not any(space.get("secret", name) for name in SECRETS),
    )


def test_one_spec_stops_no_other(space: Kube, operator: Outside) -> None:
    """Neither one that is nested deeper than programs read, nor one whose constant takes for ever to compute."""
    levels = 2_000
    affinity = '{"a":' * levels + "{}" + "}" * levels
    text = json.dumps(job("deep", checkpoint__path="/data/deep", pods={"affinity": "HERE"}))
    space.run("create", "-f", "-", stdin=text.replace('"HERE"', affinity))
    endless = f"SELECT o.id FROM orders o JOIN shipments s ON o.id = s.id WHERE regexp_like('{'a' * 40}!', '^(a+)+$')"
    space.apply(job("endless", checkpoint__path="/data/endless", sql=endless))
    started(space, job())
    space.until("all children", lambda: children(space) == CHILDREN)

    space.until("a verdict on its time", lambda: "takes more than" in message(space, "endless"))
    said = 'jsonpath={.status.conditions[?(@.type=="Degraded")].message}'
    told = space.until("a verdict on its depth", lambda: space.run("get", "sj", "deep", "-o", said))
    assert "nested too deeply" in told or "cannot be checked" in told


def test_mistakes_show_within_seconds(space: Kube, operator: Outside) -> None:
    """A wrong column is on the StreamJoin with its place and the nearest name; mended, it is forgotten."""
    sql = "SELECT o.idd FROM orders o JOIN shipments s ON o.id = s.id"
    start = time.monotonic()
    space.apply(job(sql=sql))
    space.until(
        "the condition",
        lambda: "line 1, column 8: o has no column idd; did you mean 'id'?" in message(space),
    )
    print(f"shown after {time.monotonic() - start:.1f} s")
    assert children(space)["statefulset"] == []
    assert [e["reason"] for e in space.every("events") if e["involvedObject"]["kind"] == "StreamJoin"] == [
        "SpecRefused"
    ]

    space.apply(job())
    space.until("all children", lambda: children(space) == CHILDREN)
    assert "line 1" not in message(space)


def test_missing_claim(space: Kube, operator: Outside) -> None:
    """A claim that is not there is named; when it comes, the job starts."""
    space.apply(job(volumes=[{"mountPath": "/data", "claim": "later"}]))
    space.until("the claim is named", lambda: "later is not in this namespace" in message(space))
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    space.apply(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "later"}, "spec": claim}
    )

    space.until("all children", lambda: children(space) == CHILDREN)


def test_one_checkpoint_two_jobs(space: Kube, operator: Outside) -> None:
    """The later one waits, says for whom, and goes on when the first is gone."""
    started(space, job("first"))
    time.sleep(1.1)  # creation times are whole seconds
    space.apply(job("second", checkpoint__path="/data/first"))
    space.until("it is refused", lambda: "belongs to StreamJoin first" in message(space, "second"))
    assert children(space)["statefulset"] == ["first-driver"]

    space.delete("sj", "first")
    space.until("it goes on", lambda: children(space)["statefulset"] == ["second-driver"])


def test_somebody_elses_object(space: Kube, operator: Outside, tmp_path: Path) -> None:
    """An object of the same name that is not ours is never taken over; the job says which."""
    space.run("create", "configmap", "late-spec", "--from-literal=precious=yes")
    space.apply(job())
    space.until(
        "it is named",
        lambda: "ConfigMap late-spec exists and does not belong to this StreamJoin" in message(space),
    )
    assert space.get("configmap", "late-spec")["data"] == {"precious": "yes"}

    space.delete("configmap", "late-spec")
    space.apply(job(batch={"maxRows": 7}))
    space.until("all children", lambda: children(space) == CHILDREN)
    operator.log.write_text("")  # it has warned, as it should


def test_suspend_and_live_changes(space: Kube, operator: Outside) -> None:
    """Executors change without another pod template; suspended, there is no driver."""
    started(space, job())
    space.until("all children", lambda: children(space) == CHILDREN)
    template = space.get("statefulset", "late-driver")["spec"]["template"]
    space.run("scale", "streamjoin", "late", "--replicas=3")
    space.until("three are wanted", lambda: space.get("sj", "late")["status"]["executors"]["wanted"] == 3)
    assert space.get("statefulset", "late-driver")["spec"]["template"] == template

    space.patch("sj", "late", {"spec": {"suspend": True}})
    space.until("it rests", lambda: space.get("sj", "late")["status"]["phase"] == "Suspended")
    assert space.get("statefulset", "late-driver")["spec"]["replicas"] == 0


def test_an_operator_killed_while_executors_come(space: Kube, tmp_path: Path) -> None:
    """Its successor finds in the status what was begun, and goes on: three are wanted, and time stands
    still without a driver.
    """
    outside = Outside(space.namespace, tmp_path / "operator.log")
    with outside.running():
        started(space, job())
        space.until("all children", lambda: children(space) == CHILDREN)
    begun = {
        "scaling": {
            "wanted": 3,
            "phase": "Growing",
            "before": 2,
            "deadline": "2026-01-01T00:05:00.000000Z",
            "votes": 0,
            "at": "2026-01-01T00:00:00.000000Z",
            "decisions": [{"at": "2026-01-01T00:00:00.000000Z", "verdict": "ScaleOut", "wanted": 3}],
        }
    }
    space.run(
        "patch", "sj", "late", "--subresource=status", "--type=merge", "-p", json.dumps({"status": begun})
    )
    with outside.running():
        space.until(
            "it goes on",
            lambda: (
                [d["verdict"] for d in space.get("sj", "late")["status"]["scaling"]["decisions"]][-1]
                == "Waiting"
            ),
        )
        status = space.get("sj", "late")["status"]

    assert (status["scaling"]["phase"], status["scaling"]["wanted"], status["executors"]["wanted"]) == (
        "Growing",
        3,
        3,
    )
    assert datetime.fromisoformat(status["scaling"]["deadline"]) > datetime.now(UTC), "the clock was stopped"
    assert not outside.unexpected()


def test_fifty_jobs(space: Kube, operator: Outside) -> None:
    """Fifty at once: nothing fails. Time and memory are printed; they depend on the machine."""
    start = time.monotonic()
    space.apply(*(job(f"job-{number:02d}", suspend=True) for number in range(50)))
    space.until("all rest", lambda: [j["status"]["phase"] for j in space.every("sj")] == ["Suspended"] * 50)
    seconds = time.monotonic() - start
    figures = dict(line.rsplit(" ", 1) for line in operator.ask("/metrics").splitlines() if line[0] != "#")

    print(
        f"50 jobs after {seconds:.0f} s, operator {float(figures['process_resident_memory_bytes']) / 1e6:.0f} MB"
    )
    assert len(children(space)["statefulset"]) == 50
    assert figures['streamjoin_operator_reconciles_total{result="done"}'] != "0.0"
    assert 'streamjoin_operator_reconciles_total{result="failed"}' not in figures
