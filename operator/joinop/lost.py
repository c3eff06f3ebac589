"""Is a node lost, and with it pods of a job? Pure: what nodes, pods and the Lease say goes in.

Kubernetes marks the pods of a node that says nothing for deletion, and then waits for the node's word, for ever. Until
then their names are taken, and a driver has only one. When may a pod go without the node's word?

    driver      once nobody has renewed its Lease for as long as it lasts: whoever held it has ended itself by then
    executor    once it is to go: it commits nothing, and its driver does without it

Where nobody may ask for nodes, a pod that is to go speaks for its node: it is overdue long after its grace.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from joinop import symptoms
from joinop.names import Object
from joinop.problem import Problem

_MARGIN_S = 30.0  # beyond the grace of a pod: its node is slow, or clocks differ
_LASTS_S = 15.0  # of a Lease that does not say it


@dataclass(frozen=True)
class Node:
    """What is known of a node."""

    lost: bool | None  # None: nobody may ask
    words: str = ""


@dataclass(frozen=True)
class Watched:
    """The Lease of a job as seen last. Only that it changes counts, by our own clock: other clocks may be wrong."""

    mark: tuple[str, str]  # holder, and when it renewed
    lasts_s: float
    since: float  # monotonic seconds: when this mark was seen first

    def lapsed(self, now: float) -> bool:
        """Nobody holds it, or whoever did has been silent for too long."""
        return not self.mark[0] or now - self.since > self.lasts_s


def node(thing: Object | None) -> Node:
    """As its object says; without one it is gone."""
    if thing is None:
        return Node(lost=True, words="is gone")
    for condition in thing.get("status", {}).get("conditions", ()):
        if condition["type"] == "Ready" and condition["status"] != "True":
            return Node(
                lost=True, words=f"is NotReady since {condition.get('lastTransitionTime', 'long ago')}"
            )
    return Node(lost=False)


def watched(before: Watched | None, lease: Object | None, now: float) -> Watched:
    """The Lease as it is now; absent, nobody holds it."""
    spec = (lease or {}).get("spec", {})
    mark = (str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or ""))
    lasts_s = float(spec.get("leaseDurationSeconds") or _LASTS_S)
    return Watched(mark, lasts_s, before.since if before is not None and before.mark == mark else now)


def suspects(pods: Iterable[Object]) -> set[str]:
    """Nodes worth asking about: a pod that works has one that does."""
    return {name for pod in pods if (name := _node(pod)) and not symptoms.is_ready(pod)}


def stranded(pods: Iterable[Object], nodes: Mapping[str, Node], now: float) -> list[Object]:
    """Pods whose node will not end them. `now`: seconds since 1970."""
    return [pod for pod in pods if _stranded(pod, nodes, now)]


def removable(pods: Iterable[Object], nodes: Mapping[str, Node], *, lapsed: bool, now: float) -> list[Object]:
    """Those of them that may go without the node's word."""
    drivers, executors = symptoms.split(stranded(pods, nodes, now))
    return [*(drivers if lapsed else ()), *filter(symptoms.leaving, executors)]


def problem(pods: Iterable[Object], nodes: Mapping[str, Node], now: float) -> Problem | None:
    """What a driver waits for whose node is lost."""
    drivers, _ = symptoms.split(pods)
    return next(_problems(stranded(drivers, nodes, now), nodes), None)


def _problems(drivers: list[Object], nodes: Mapping[str, Node]) -> Iterator[Problem]:
    for pod in drivers:
        message = f"{words(pod, nodes)}; its driver is replaced when its Lease lapses"
        yield Problem("NodeLost", message)


def words(pod: Object, nodes: Mapping[str, Node]) -> str:
    """What is wrong with the node of a stranded pod."""
    name = _node(pod)
    return f"node {name} {nodes[name].words or 'does not end its pod, whose time is over'}"


def _stranded(pod: Object, nodes: Mapping[str, Node], now: float) -> bool:
    found = nodes.get(_node(pod))
    return found is not None and (_overdue(pod, now) if found.lost is None else found.lost)


def _overdue(pod: Object, now: float) -> bool:
    """The time of deletion that the API shows has the grace in it."""
    at = pod["metadata"].get("deletionTimestamp")
    return at is not None and now - datetime.fromisoformat(at).timestamp() > _MARGIN_S


def _node(pod: Object) -> str:
    return str(pod.get("spec", {}).get("nodeName") or "")
