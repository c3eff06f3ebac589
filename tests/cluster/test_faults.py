"""Whatever is killed or deleted while a job runs: it converges, the output is right, and nothing is left over."""

from collections.abc import Callable

import pytest

from tests.cluster.jobs import Store, expected, job
from tests.cluster.kube import Kube
from tests.cluster.test_runs import running

DRIVER = "app.kubernetes.io/component=driver"
EXECUTOR = "app.kubernetes.io/component=executor"
# The process named on the command line gives way first when memory runs out, as if it had asked for too much itself.
_EAT = """
import os, glob
for status in glob.glob('/proc/[0-9]*/cmdline'):
    if b'KubernetesExecutorBackend' in open(status, 'rb').read():
        open(os.path.dirname(status) + '/oom_score_adj', 'w').write('1000')
eaten = [bytearray(64 << 20) for _ in range(64)]
"""


def _delete_executor(kube: Kube) -> None:
    kube.run("delete", "pod", kube.names("pods", EXECUTOR)[0], "--wait=false")


def _exhaust_executor(kube: Kube) -> None:
    pod = kube.names("pods", EXECUTOR)[-1]
    kube.run("exec", pod, "--", "python3", "-c", _EAT, check=False)


def _delete_driver(kube: Kube) -> None:
    kube.run("delete", "pod", "job-driver-0")


def _delete_driver_by_force(kube: Kube) -> None:
    kube.run("delete", "pod", "job-driver-0", "--force", "--grace-period=0")


def _delete_children(kube: Kube) -> None:
    for kind, name in (("service", "job-driver"), ("configmap", "job-spec"), ("rolebinding", "job-driver")):
        _delete_child(kube, kind, name)


def _delete_child(kube: Kube, kind: str, name: str) -> None:
    uid = kube.get(kind, name)["metadata"]["uid"]
    kube.delete(kind, name)
    kube.until(f"{kind} {name} comes back", lambda: kube.get(kind, name)["metadata"]["uid"] != uid, 30)


def _goes_on(kube: Kube, after: str) -> None:
    """Two executors, and batches that were not there before."""
    before = _batch(kube)
    kube.until(f"batches go on after {after}", lambda: _batch(kube) > before + 1, 180)
    running(kube, "job", 2)


def _batch(kube: Kube) -> int:
    return kube.get("sj", "job").get("status", {}).get("batch", -1)


FAULTS: list[Callable[[Kube], None]] = [
    _delete_executor,
    _delete_children,
    _delete_driver,
    _exhaust_executor,
    _delete_driver_by_force,
]


def test_one_fault_after_another(space: Kube, store: Store) -> None:
    """One job lives through all of them; its output is DuckDB's in the end."""
    document = job(
        "job", rows=12_000, rate=50, executors={"min": 2, "max": 2, "cores": 1, "memory": "1280Mi"}
    )
    space.apply(document)
    _goes_on(space, "apply")
    for fault in FAULTS:
        fault(space)
        _goes_on(space, fault.__name__)
    space.until("all rows are joined", lambda: store.output("job") == expected(document), 300)
    space.delete("sj", "job")
    space.until(
        "nothing is left",
        lambda: (
            not space.names("all,configmap,secret,lease,role,rolebinding", "app.kubernetes.io/instance=job")
        ),
        90,
    )


def test_the_operator_dies_while_it_creates(system: Kube, space: Kube, store: Store) -> None:
    """Its successor finishes."""
    document = job("job", rows=1000, rate=None)
    space.apply(document)
    for pod in system.names("pods", "app.kubernetes.io/component=operator"):
        system.run("delete", "pod", pod, "--force", "--grace-period=0")
    space.until("the output is complete", lambda: store.output("job") == expected(document), 300)


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        pytest.param({"image": "localhost/no-such-image:1"}, "image", id="image"),
        pytest.param({"driver": {"memory": "900Gi"}}, "memory", id="memory"),
        pytest.param({"sql": "SELECT o.kk AS k FROM orders o JOIN payments p ON o.k = p.k"}, "kk", id="sql"),
        pytest.param(
            {"volumes": [{"mountPath": "/data", "claim": "no-such-claim"}]}, "no-such-claim", id="claim"
        ),
    ],
)
def test_what_cannot_run_says_so_until_it_is_mended(
    space: Kube, store: Store, spec: dict[str, object], word: str
) -> None:
    """Degraded, with the field and what is wrong; mended, the job gets ready."""
    space.apply(job("job", rows=500, rate=None, **spec))
    space.until(
        "the condition names it",
        lambda: (c := space.condition("job", "Degraded"))["status"] == "True" and word in c["message"],
        60,
    )
    mended = job("job", rows=500, rate=None)
    mended["spec"]["image"] = None
    space.apply(mended)
    space.until("it is well again", lambda: space.condition("job", "Degraded")["status"] == "False", 120)


def test_a_namespace_is_deleted_while_the_operator_is_down(system: Kube, space: Kube, store: Store) -> None:
    """Nothing waits for the operator: owners are enough."""
    space.apply(job("job", rows=500))
    space.until("children are there", lambda: space.get("statefulset", "job-driver"), 60)
    system.run("scale", "deployment", "--all", "--replicas=0")
    try:
        space.run("delete", "namespace", space.namespace, "--timeout=120s", timeout=150)
    finally:
        system.run("scale", "deployment", "--all", "--replicas=1")
        system.run("rollout", "status", "deployment", "--timeout=60s")
