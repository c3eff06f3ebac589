"""The driver's own requests to the API server: its Lease, and the deletion of executors of earlier runs.

It uses the official client, with the pod's service account. Of that client only the dynamic part is loaded:
the generated classes of the core API would take another second of CPU and 20 MB.
"""

from collections.abc import Callable
from typing import Any

from kubernetes.client import ApiClient, Configuration
from kubernetes.config import load_incluster_config
from kubernetes.dynamic import DynamicClient, Resource

from joinlib.deploy import DRIVER, EXECUTOR, LEASE, POD, driver, match, selector
from joinlib.lease import TIMEOUT_S, ClusterLease, refusal
from joinlib.spec.model import StreamJoin

_GRACE_S = 120.0  # an executor's grace period, with a margin
_AGAIN_S = 1.0  # pause between two checks whether they are gone


def connect() -> DynamicClient:
    """Return a client with the pod's service account.

    It reads the token again every minute: the kubelet replaces it within the hour. A request is sent once,
    and directly: retries would outlast a Lease, and the environment's proxy is not meant for the cluster.
    """
    configuration = Configuration(retries=False)
    configuration.proxy = None
    load_incluster_config(client_configuration=configuration)
    return DynamicClient(ApiClient(configuration), discoverer=_nothing)


def _nothing(_client: DynamicClient, _cache: str | None) -> None:
    """Replace discovery: the kinds are known, and listing them all takes requests."""


def clear_executors(
    document: StreamJoin,
    namespace: str,
    stopping: Callable[[float], bool],
    client: DynamicClient | None = None,
) -> bool:
    """Delete the executors of earlier runs, and wait until they are gone.

    A pod that stays could still write what an earlier driver has requested. An executor has a grace period;
    if it still exists after that, its node is lost, and it is deleted without waiting for the node: whatever
    it still does belongs to a driver that can no longer commit.

    Args:
        document: The job.
        namespace: The namespace of the driver's pod.
        stopping: Waits for the given seconds; returns True as soon as the driver should stop.
        client: The client of the API server; None means that of the pod's cluster.

    Returns:
        False if the driver should stop before they were gone.

    Raises:
        Unreachable: The API server refused, or did not answer.
    """
    pods = Resource(**POD.known, client=client or connect())
    chosen = {
        "namespace": namespace,
        "label_selector": selector(match(document.metadata.name, EXECUTOR)),
        "_request_timeout": TIMEOUT_S,
    }
    _ask(pods.delete, **chosen)
    for _ in range(round(_GRACE_S / _AGAIN_S)):
        if not _ask(pods.get, limit=1, **chosen)["items"]:
            return True
        if stopping(_AGAIN_S):
            return False
    _ask(pods.delete, grace_period_seconds=0, **chosen)
    return True


def lease_of(
    document: StreamJoin, namespace: str, owner: str | None, client: DynamicClient | None = None
) -> ClusterLease:
    """Return the Lease of a job's driver.

    `owner` is the uid of the StreamJoin; the Lease is deleted with it.
    """
    name = document.metadata.name
    kind = {"apiVersion": document.api_version, "kind": document.kind}
    owners = [{**kind, "name": name, "uid": owner}] if owner else []
    leases = Resource(**LEASE.known, client=client or connect())
    return ClusterLease(
        leases, namespace, driver(name), {"labels": match(name, DRIVER), "ownerReferences": owners}
    )


def _ask(verb: Callable[..., Any], **what: Any) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = verb(**what).to_dict()
    except Exception as error:
        raise refusal(error) from error
    return answer
