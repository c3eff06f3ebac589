"""A node falls silent with a driver on it: another driver goes on elsewhere, without a human, once the Lease has lapsed.

kwok plays the nodes that are lost, and this test the driver there: it renews the Lease. Without kwok nobody speaks for them and
nobody ends their pods: that is what a lost node is like to the API server. The driver that follows is real.
"""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cluster.jobs import Store, expected, job
from tests.cluster.kube import Kube, Object
from tests.cluster.test_runs import running

FAKE_NODES = Path(__file__).parents[2] / "tools" / "cluster" / "fake-nodes"
POD, LEASE = "job-driver-0", "job-driver"
PIDS = (
    Path("/run/streamjoin-cluster/kwok.pid"),
    Path.home() / ".cache/streamjoin/cluster/kind/kwok.pid",
)
# On a fake node as long as there is one that works, else on the real one.
PLACING = {
    "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
    "affinity": {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "preference": {
                        "matchExpressions": [{"key": "type", "operator": "In", "values": ["kwok"]}]
                    },
                }
            ]
        }
    },
}


@pytest.mark.skipif(not os.environ.get("STREAMJOIN_FAKE_NODES"), reason="there are no fake nodes to lose")
def test_two_lost_nodes(space: Kube, store: Store) -> None:
    """Twice; in the end all rows are there, each once."""
    document = job("job", rows=2000, rate=50, pods=PLACING, executors={"memory": "1280Mi"})
    space.apply(document)
    _lose(space)
    running(space, "job", 1)
    space.until("rows are joined", lambda: store.output("job"))
    space.run("delete", "pod", POD)
    _lose(space)
    running(space, "job", 1)
    wanted = expected(document)
    space.until("all rows are joined, each once", lambda: store.output("job") == wanted)


def _lose(space: Kube) -> None:
    """The node that the driver is on; returns when there is another driver, on another node."""
    before = space.until("the driver is on a fake node", lambda: _ready(space, fake=True))
    with _silence():
        with _renewing(space, before["metadata"]["uid"]):
            space.until("what is awaited is said", lambda: _waits(space, before))
            assert space.get("pod", POD)["metadata"]["uid"] == before["metadata"]["uid"]
        space.until("the driver is on the real node", lambda: _ready(space, fake=False))
        reasons = {event["reason"] for event in space.every("events")}
        assert {"NodeLost", "Replaced"} <= reasons


def _ready(space: Kube, *, fake: bool) -> Object | None:
    pod = space.get("pod", POD)
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"]["conditions"])
    return pod if ready and pod["spec"]["nodeName"].startswith("fake-") == fake else None


def _waits(space: Kube, pod: Object) -> bool:
    condition = space.condition("job", "Degraded")
    return (
        condition["reason"] == "NodeLost"
        and f"node {pod['spec']['nodeName']} has been NotReady" in condition["message"]
    )


@contextmanager
def _silence() -> Iterator[None]:
    """Nothing is heard of fake nodes meanwhile. kwok is begun anew: it would delete the next pod of a name for the last one."""
    file = next(file for file in PIDS if file.exists())
    os.kill(int(file.read_text()), signal.SIGKILL)
    file.unlink()
    try:
        yield
    finally:
        subprocess.run([FAKE_NODES, "0"], check=True, timeout=120)


@contextmanager
def _renewing(space: Kube, holder: str) -> Iterator[None]:
    """The driver there lives: nobody hears its node, but the API server hears the driver."""
    over = threading.Event()
    _renew(space, holder)

    def renew() -> None:
        while not over.wait(3):
            _renew(space, holder)

    keeper = threading.Thread(target=renew)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join()


def _renew(space: Kube, holder: str) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": LEASE},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": now},
    }
    options = ("--server-side", "--force-conflicts", "-f", "-")
    space.run("apply", *options, stdin=json.dumps(lease))
