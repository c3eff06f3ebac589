"""The state is divided among more units by a new driver; then an executor comes, and batches get a partition for its core,
while driver, query and output go on.
"""

from tests.cluster.jobs import STREAMS, Store, expected, job
from tests.cluster.kube import Kube
from tests.cluster.test_runs import running

NAME = "grown"
SQL = (
    "SELECT o.k AS k, o.v AS ov, p.v AS pv, s.v AS sv FROM orders o JOIN payments p ON o.k = p.k"
    " JOIN shipments s ON o.k + 0 = s.k"  # a key of its own, so a stage of its own
)


def _driver(space: Kube) -> tuple[str, int]:
    pod = space.get("pod", f"{NAME}-driver-0")
    return pod["metadata"]["uid"], sum(c["restartCount"] for c in pod["status"]["containerStatuses"])


def test_there_is_a_partition_for_each_executor(space: Kube, store: Store) -> None:
    """Eight units become sixteen; a third executor comes, two partitions become four, in both stages; the answer is DuckDB's."""
    document = job(
        NAME,
        rows=8000,
        rate=100,
        streams=(*STREAMS, "shipments"),
        sql=SQL,
        join={"units": 8},
        executors={"min": 1, "max": 3, "cores": 1, "memory": "1280Mi", "instances": 2},
    )
    space.apply(document)
    running(space, NAME, 2)
    space.until("two partitions", lambda: space.get("sj", NAME)["status"]["executors"]["partitions"] == 2)
    space.until("there are results", lambda: store.output(NAME))
    space.patch("sj", NAME, {"spec": {"join": {"units": 16}}})
    identity = f"/data/checkpoints/{NAME}/streamjoin.json"
    space.until("the state is divided", lambda: '"units": 16' in store("cat", identity))
    running(space, NAME, 2)
    driver = _driver(space)
    space.run("scale", "sj", NAME, "--replicas=3")
    space.until("four", lambda: space.get("sj", NAME)["status"]["executors"]["partitions"] == 4)
    assert _driver(space) == driver, "the driver goes on"
    told = [e["message"] for e in space.every("events") if e["reason"] == "Repartitioned"]
    assert told == ["2 -> 4 partitions, tasks that join at once"]
    running(space, NAME, 3)
    space.until("the output is complete", lambda: store.output(NAME) == expected(document))
    assert _driver(space) == driver
