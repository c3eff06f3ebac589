"""Detect lost nodes, and the pods that may be deleted without waiting for them. Pure.

Kubernetes marks the pods of a silent node for deletion, and then waits for the node forever. Until then
their names are taken, and a driver has only one name. Such a pod may be deleted

    driver      once its Lease has expired: its holder has ended itself by then
    executor    once it is terminating: it commits nothing, and its driver does without it

Where the operator may not read nodes, a pod that is terminating stands for its node: the node is lost when
the pod's grace period is long over.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from joinop import diagnosis
from joinop.degradation import Degradation
from joinop.names import Object

_MARGIN_S = 30.0  # beyond the grace period of a pod: its node may be slow, or clocks may differ
_LASTS_S = 15.0  # duration of a Lease that names none


@dataclass(frozen=True)
class NodeHealth:
    """The health of a node."""

    lost: bool | None  # None: the operator may not read nodes
    description: str = ""


@dataclass(frozen=True)
class LeaseWatch:
    """The Lease of a job as it was read last.

    Only changes count, by our own clock: other clocks may be wrong.
    """

    mark: tuple[str, str]  # holder, and the time of its renewal
    lasts_s: float
    since: float  # monotonic seconds when this mark was first read

    def lapsed(self, now: float) -> bool:
        """Is it free, or has its holder been silent for too long?"""
        return not self.mark[0] or now - self.since > self.lasts_s


def health(obj: Object | None) -> NodeHealth:
    """Return the health of a node from its object; None means that the node is gone."""
    if obj is None:
        return NodeHealth(lost=True, description="is gone")
    for condition in obj.get("status", {}).get("conditions", ()):
        if condition["type"] == "Ready" and condition["status"] != "True":
            return NodeHealth(
                lost=True,
                description=f"has been NotReady since {condition.get('lastTransitionTime', 'long ago')}",
            )
    return NodeHealth(lost=False)


def watch(before: LeaseWatch | None, lease: Object | None, now: float) -> LeaseWatch:
    """Return the watch of a Lease after reading it; None means that nobody holds it."""
    spec = (lease or {}).get("spec", {})
    mark = (str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or ""))
    lasts_s = float(spec.get("leaseDurationSeconds") or _LASTS_S)
    return LeaseWatch(mark, lasts_s, before.since if before is not None and before.mark == mark else now)


def suspects(pods: Iterable[Object]) -> set[str]:
    """Return the nodes of pods that are not ready; the other nodes work."""
    return {name for pod in pods if (name := _node_name(pod)) and not diagnosis.is_ready(pod)}


def stranded(pods: Iterable[Object], nodes: Mapping[str, NodeHealth], now: float) -> list[Object]:
    """Return the pods whose node will not terminate them. `now`: seconds since 1970."""
    return [pod for pod in pods if _stranded(pod, nodes, now)]


def removable(
    pods: Iterable[Object], nodes: Mapping[str, NodeHealth], *, lapsed: bool, now: float
) -> list[Object]:
    """Return those of them that may be deleted without waiting for the node."""
    drivers, executors = diagnosis.split(stranded(pods, nodes, now))
    return [*(drivers if lapsed else ()), *filter(diagnosis.terminating, executors)]


def problem(pods: Iterable[Object], nodes: Mapping[str, NodeHealth], now: float) -> Degradation | None:
    """Return the problem of a driver whose node is lost, if it is."""
    drivers, _ = diagnosis.split(pods)
    return next(_problems(stranded(drivers, nodes, now), nodes), None)


def _problems(drivers: list[Object], nodes: Mapping[str, NodeHealth]) -> Iterator[Degradation]:
    for pod in drivers:
        message = f"{description(pod, nodes)}; its driver is replaced when its Lease lapses"
        yield Degradation("NodeLost", message)


def description(pod: Object, nodes: Mapping[str, NodeHealth]) -> str:
    """Describe what is wrong with the node of a stranded pod."""
    name = _node_name(pod)
    return f"node {name} {nodes[name].description or 'has not ended its pod within the grace period'}"


def _stranded(pod: Object, nodes: Mapping[str, NodeHealth], now: float) -> bool:
    found = nodes.get(_node_name(pod))
    return found is not None and (_overdue(pod, now) if found.lost is None else found.lost)


def _overdue(pod: Object, now: float) -> bool:
    """Is the grace period of a terminating pod over? The deletion time of the API includes it."""
    at = pod["metadata"].get("deletionTimestamp")
    return at is not None and now - datetime.fromisoformat(at).timestamp() > _MARGIN_S


def _node_name(pod: Object) -> str:
    return str(pod.get("spec", {}).get("nodeName") or "")
