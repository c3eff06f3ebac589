"""Whatever is killed or deleted while a job runs: it converges, the output is right, and nothing is left over."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb

from tests.cluster.jobs import CLAIM, SQL, Store, job
from tests.cluster.kube import Kube
from tests.cluster.test_runs import running
from tests.spark.trial import Rows, rows_of

EXECUTOR = "app.kubernetes.io/component=executor"
# Many small processes fill the container's memory: the largest, and marked as the first to go, is the executor's JVM.
_EAT = """
import contextlib, os, pathlib, time
for process in pathlib.Path('/proc').glob('[0-9]*'):
    with contextlib.suppress(OSError):
        if b'Executor' + b'Backend' in (process / 'cmdline').read_bytes():  # not in our own
            (process / 'oom_score_adj').write_text('1000')
for _ in range(24):
    if not os.fork():
        eaten = bytearray(64 << 20)
        time.sleep(20)
        os._exit(0)
time.sleep(20)
"""


def _delete_executor(kube: Kube) -> None:
    kube.run("delete", "pod", kube.names("pods", EXECUTOR)[0], "--wait=false")


def _exhaust_executor(kube: Kube) -> None:
    pod = kube.names("pods", EXECUTOR)[-1]
    kube.run("exec", pod, "--", "python3", "-c", _EAT, check=False)
    kube.until("the executor is dead", lambda: pod not in kube.names("pods", EXECUTOR))


def _delete_driver(kube: Kube) -> None:
    kube.run("delete", "pod", "job-driver-0")


def _delete_driver_by_force(kube: Kube) -> None:
    kube.run("delete", "pod", "job-driver-0", "--force", "--grace-period=0")


def _drain(kube: Kube) -> None:
    """There is no other node to go to: they wait until the node takes pods again."""
    node = kube.get("pod", "job-driver-0")["spec"]["nodeName"]
    try:
        options = (
            "--pod-selector=app.kubernetes.io/instance=job",
            "--delete-emptydir-data",
            "--force",
            "--timeout=90s",
        )
        kube.run("drain", node, *options)
    finally:
        kube.run("uncordon", node)


def _delete_children(kube: Kube) -> None:
    for kind, name in (("service", "job-driver"), ("configmap", "job-spec"), ("rolebinding", "job-driver")):
        _delete_child(kube, kind, name)


def _delete_child(kube: Kube, kind: str, name: str) -> None:
    uid = kube.get(kind, name)["metadata"]["uid"]
    kube.delete(kind, name)
    kube.until(f"{kind} {name} comes back", lambda: kube.get(kind, name)["metadata"]["uid"] != uid)


FAULTS: list[Callable[[Kube], None]] = [
    _exhaust_executor,
    _delete_executor,
    _delete_children,
    _delete_driver,
    _delete_driver_by_force,
    _drain,
]


def test_one_fault_after_another(space: Kube, store: Store, tmp_path: Path) -> None:
    """Rows come, and something dies; after each time the output is DuckDB's over all rows so far."""
    schema = "k BIGINT, v BIGINT"
    inputs = {
        n: {"schema": schema, "files": {"path": f"/data/in/{n}", "format": "csv"}}
        for n in ("orders", "payments")
    }
    for name in inputs:
        store("mkdir", "-p", f"/data/in/{name}")
    space.apply(job("job", inputs=inputs, executors={"min": 2, "max": 2, "cores": 1, "memory": "1280Mi"}))
    for number, fault in enumerate((lambda _: None, *FAULTS)):
        for at, name in enumerate(inputs):
            rows = "".join(f"{(row * (at + 2)) % 997},{number * 1500 + row}\n" for row in range(1500))
            store.put(f"/data/in/{name}/{number}.csv", f"k,v\n{rows}")
            (tmp_path / f"{name}-{number}.csv").write_text(f"k,v\n{rows}")
        fault(space)
        _right(space, store, _joined(tmp_path), f"{number + 1} files are joined, after {fault}")
        running(space, "job", 2)
    space.delete("sj", "job")
    kinds = "all,configmap,secret,lease,role,rolebinding,networkpolicy,poddisruptionbudget,serviceaccount"
    space.until("nothing is left", lambda: not space.names(kinds, "app.kubernetes.io/instance=job"))


def _right(space: Kube, store: Store, wanted: Rows, what: str) -> None:
    space.until(what, lambda: store.output("job") == wanted)


def _joined(folder: Path) -> Rows:
    database = duckdb.connect()
    for name in ("orders", "payments"):
        database.execute(f"CREATE VIEW {name} AS SELECT * FROM read_csv('{folder}/{name}-*.csv')")
    return rows_of(database.sql(SQL).to_arrow_table())


WRONG: dict[str, tuple[dict[str, object], str]] = {
    "image": ({"image": "localhost/no-such-image:1"}, "image"),
    "memory": ({"driver": {"memory": "900Gi"}}, "memory"),
    "sql": ({"sql": "SELECT o.kk AS k FROM orders o JOIN payments p ON o.k = p.k"}, "kk"),
    "claim": ({"volumes": [{"mountPath": "/data", "claim": "no-such-claim"}]}, "no-such-claim"),
}


def test_what_cannot_run_says_so_until_it_is_mended(space: Kube, store: Store) -> None:
    """Degraded, with the field and what is wrong; mended, the job gets ready."""
    space.apply(*(job(name, rows=500, rate=None, **spec) for name, (spec, _) in WRONG.items()))
    for name, (_, word) in WRONG.items():
        space.until(f"the condition of {name} names it", partial(_degraded, space, name, word))
    for name in WRONG:  # one after the other: four drivers that start at once take four times as long
        mended = job(name, rows=500, rate=None)
        mended["spec"]["image"] = None
        space.apply(mended)
        space.until(
            f"{name} is well again",
            partial(_well, space, name),
        )
        space.delete("sj", name)


def _well(space: Kube, name: str) -> bool:
    return bool(space.condition(name, "Degraded")["status"] == "False")


def _degraded(space: Kube, name: str, word: str) -> bool:
    condition = space.condition(name, "Degraded")
    return condition["status"] == "True" and word in condition["message"]


def test_a_pod_that_cannot_be_made_says_why(space: Kube, store: Store) -> None:
    """A quota, and then a Secret that is not there: nothing of the pod's own tells of either. Mended, it comes by itself."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}}
    space.apply({**quota, "spec": {"hard": {"pods": "1"}}})  # which is the store's
    volumes = [{"mountPath": "/data", "claim": CLAIM}, {"mountPath": "/secrets/login", "secret": "login"}]
    space.apply(job("job", rows=500, rate=None, volumes=volumes))
    space.until("the quota is named", partial(_degraded, space, "job", "exceeded quota: small"))
    assert space.condition("job", "Degraded")["reason"] == "PodRefused"
    space.delete("resourcequota", "small")
    space.until("the Secret is named", partial(_degraded, space, "job", '"login" not found'))
    assert space.condition("job", "Degraded")["reason"] == "FailedMount"
    space.run("create", "secret", "generic", "login", "--from-literal=password=x")
    space.until("it is well again", partial(_well, space, "job"))


def test_executors_that_cannot_be_made_say_why(space: Kube, store: Store) -> None:
    """A quota that admits the driver alone: it waits for them and does not end. Mended, they come by themselves."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}}
    space.apply({**quota, "spec": {"hard": {"pods": "2"}}})  # which are the store's and the driver's
    space.apply(job("job", rows=500, rate=None))
    space.until("the quota is named", partial(_degraded, space, "job", "exceeded quota: small"))
    assert (
        space.condition("job", "Degraded")["reason"] == "PodRefused"
    )  # while Spark still waits for them, too
    space.until("it has started", lambda: space.condition("job", "Ready")["reason"] == "NoExecutors")
    assert space.condition("job", "Degraded")["reason"] == "PodRefused"
    assert space.get("sj", "job")["status"]["message"].startswith(
        "0 of 1 executors: the executor's pod cannot be created"
    )
    told = [e for e in space.every("events") if e["involvedObject"]["kind"] == "StreamJoin"]
    assert "PodRefused" in [event["reason"] for event in told]
    assert space.run("logs", "job-driver-0").count("Failed to create executor pod") == 1
    assert space.get("pod", "job-driver-0")["status"]["containerStatuses"][0]["restartCount"] == 0
    space.delete("resourcequota", "small")
    running(space, "job", 1)
    assert _well(space, "job")


def test_a_driver_that_ends_again_and_again_is_given_up(space: Kube, store: Store) -> None:
    """Failed with its last words, and no pod; a change of the spec begins anew."""
    store("ln", "-s", "/data/nowhere", "/data/absent")  # a folder that is not there at all is waited for
    broken = job("job", rows=500, rate=None, driver={"memory": "1200Mi", "restarts": 1})
    broken["spec"]["inputs"]["orders"] = {
        "schema": "k BIGINT, v BIGINT",
        "files": {"path": "/data/absent", "format": "csv"},
    }
    space.apply(broken)
    space.until("it is given up", lambda: space.condition("job", "Degraded")["reason"] == "RestartsExhausted")
    status = space.get("sj", "job")["status"]
    assert (status["phase"], "/data/absent" in status["message"]) == ("Failed", True)
    space.until("no driver is left", lambda: space.names("pods") == ["store"])
    store("mkdir", "-p", "/data/nowhere")
    space.patch("sj", "job", {"spec": {"driver": {"restarts": 2}}})
    space.until("it is well again", partial(_well, space, "job"))


def test_a_namespace_is_deleted_while_the_operator_is_down(system: Kube, space: Kube, store: Store) -> None:
    """Nothing waits for the operator: owners are enough."""
    space.apply(job("job", rows=500))
    space.until("children are there", lambda: space.get("statefulset", "job-driver"))
    system.run("scale", "deployment", "--all", "--replicas=0")
    try:
        space.run("delete", "namespace", space.namespace, "--timeout=120s", timeout=150)
    finally:
        system.run("scale", "deployment", "--all", "--replicas=1")
        system.run("rollout", "status", "deployment", "--timeout=60s")
