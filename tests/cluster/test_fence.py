"""Two drivers never write at once."""

import copy
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from tests.cluster.jobs import Store, expected, job
from tests.cluster.kube import Kube
from tests.cluster.test_runs import running


def test_the_second_job_on_a_checkpoint_is_refused(space: Kube, store: Store) -> None:
    """It names the first, and runs nothing."""
    space.apply(job("first", rows=500))
    space.until("the first has a driver", lambda: space.get("statefulset", "first-driver"))
    time.sleep(1.1)  # creation times have seconds
    second = job("second", rows=500)
    second["spec"]["checkpoint"]["path"] = "/data/checkpoints/first"
    space.apply(second)
    refused = space.until(
        "it is refused", lambda: (c := space.condition("second", "Degraded"))["status"] == "True" and c
    )
    assert "first" in refused["message"]
    assert not space.get("statefulset", "second-driver")


def test_a_frozen_driver_dies_before_it_writes(space: Kube, store: Store) -> None:
    """A second driver, started by hand, waits; the holder frozen, it takes over; the holder thawed is dead at once. Output exact."""
    document = job("job", rows=5000, rate=60)
    space.apply(document)
    running(space, "job", 1)
    space.apply(_by_hand(space))
    space.until("the second waits", lambda: "ait" in space.run("logs", "second", check=False))
    frozen = _processes(space.get("pod", "job-driver-0")["metadata"]["uid"])
    assert frozen, "the driver's processes are not on this machine"
    _signal(frozen, signal.SIGSTOP)
    try:
        space.until(
            "the lease moves", lambda: _holder(space) == space.get("pod", "second")["metadata"]["uid"]
        )
    finally:
        _signal(frozen, signal.SIGCONT)
    restarts = space.get("pod", "job-driver-0")["status"]["containerStatuses"][0]["restartCount"]
    space.until(
        "the holder is dead",
        lambda: space.get("pod", "job-driver-0")["status"]["containerStatuses"][0]["restartCount"] > restarts,
    )
    space.until("the output is complete", lambda: store.output("job") == expected(document))


def _by_hand(space: Kube) -> dict[str, object]:
    """The driver's pod once more, under another name."""
    pod = copy.deepcopy(space.get("statefulset", "job-driver")["spec"]["template"])
    pod["metadata"] = {"name": "second", "labels": pod["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", **pod}


def _holder(space: Kube) -> str:
    return space.get("lease", "job-driver")["spec"]["holderIdentity"]


def _processes(uid: str) -> list[int]:
    """Processes of a pod, as its node sees them (here: this machine)."""
    name = uid.replace("-", "_")
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                groups = (entry / "cgroup").read_text()
            except OSError:
                continue
            if uid in groups or name in groups:
                found.append(int(entry.name))
    return found


def _signal(processes: list[int], number: int) -> None:
    for pid in processes:
        with suppress(ProcessLookupError):  # some work for a moment only
            os.kill(pid, number)
