"""Kubernetes events: derived from one status to the next, and none repeated within half an hour."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from joinlib import deploy
from joinop.classify import Change, Cost
from joinop.names import Object

QUIET_S = 1800.0
_MESSAGE_MAX = 1_000  # characters; the API takes 1024
_TITLES = {Cost.LIVE: "Changed", Cost.RESTART: "Restarting", Cost.CHECKPOINT: "NewCheckpoint"}
_SCALED: dict[str, Literal["Normal", "Warning"]] = {
    "ScaleOut": "Normal",
    "ScaleIn": "Normal",
    "Limits": "Normal",
    "RolledBack": "Warning",
    "Ineffective": "Warning",
    "Advised": "Normal",
}
_COSTS = {
    Cost.LIVE: "the running driver takes it over",
    Cost.RESTART: "the driver restarts, its state is kept",
    Cost.CHECKPOINT: "the driver restarts without state",
}


@dataclass(frozen=True)
class Event:
    """An event of a job."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def between(before: Object, after: Object, change: Change) -> Iterator[Event]:
    """Yield the events between two statuses."""
    if change.cost in _TITLES and not change.refused and not _suspends(change):
        yield Event("Normal", _TITLES[change.cost], f"{'; '.join(change.reasons)}: {_COSTS[change.cost]}")
    old, new = _conditions(before), _conditions(after)
    if (degraded := new["Degraded"])["status"] == "True":
        if _essence(degraded) != _essence(old.get("Degraded")):
            yield Event("Warning", degraded["reason"], degraded["message"])
    elif old.get("Degraded", {}).get("status") == "True":
        yield Event("Normal", "Recovered", f"no longer: {old['Degraded'].get('message', '')}")
    yield from _scaled(before, after)
    yield from _repartitioned(before, after)
    for title, reason, message in (
        ("Ready", "Running", "the driver runs"),
        ("Scaling", "Scaling", new["Scaling"]["message"]),
    ):
        if new[title]["status"] == "True" and old.get(title, {}).get("status") != "True":
            yield Event("Normal", reason, message)
    if after["phase"] == "Suspended" != before.get("phase"):
        yield Event("Normal", "Suspended", after["message"])


def _scaled(before: Object, after: Object) -> Iterator[Event]:
    """Yield the decision of scaling, if there is a new one."""
    old, new = (((status.get("scaling") or {}).get("decisions") or [{}])[-1] for status in (before, after))
    if new.get("at") == old.get("at") or new.get("verdict") not in _SCALED or new.get("times", 1) > 1:
        return
    kind, verdict, reason = _SCALED[new["verdict"]], str(new["verdict"]), str(new.get("reason", ""))
    changes = verdict not in ("Ineffective", "Advised")
    yield Event(kind, verdict, f"{new.get('wanted')} executors are wanted: {reason}" if changes else reason)


def _repartitioned(before: Object, after: Object) -> Iterator[Event]:
    """Yield an event when the number of partitions has changed."""
    old, new = ((status.get("executors") or {}).get("partitions") for status in (before, after))
    if old and new and old != new:
        yield Event("Normal", "Repartitioned", f"{old} -> {new} partitions, tasks that join at once")


def _suspends(change: Change) -> bool:
    """Does the change concern only `suspend`, which has an event of its own?"""
    return all(reason.startswith("spec.suspend:") for reason in change.reasons)


def _conditions(status: Object) -> dict[str, Object]:
    return {condition["type"]: condition for condition in status.get("conditions", ())}


def _essence(condition: Object | None) -> tuple[object, ...]:
    return tuple((condition or {}).get(part) for part in ("status", "reason", "message"))


@dataclass
class Recorder:
    """Suppresses repeated events. Memory: one entry for each event of the quiet time."""

    # When it was recorded, oldest first.
    recorded: dict[tuple[str, Event], float] = field(default_factory=dict)

    def is_new(self, uid: str, event: Event, now: float) -> bool:
        """Is the event new? If so, it is recorded."""
        while self.recorded and now - next(iter(self.recorded.values())) >= QUIET_S:
            del self.recorded[next(iter(self.recorded))]
        if (uid, event) in self.recorded:
            return False
        self.recorded[uid, event] = now
        return True


def body(obj: Object, event: Event, at: str) -> Object:
    """Return the event as an API object.

    Its name depends on its text: a repeated event is the same object.
    """
    metadata = obj["metadata"]
    mark = hashlib.sha256(f"{metadata['uid']} {event}".encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name']}.{mark}", "namespace": metadata["namespace"]},
        "involvedObject": {
            "apiVersion": deploy.API_VERSION,
            "kind": deploy.KIND,
            **{part: metadata[part] for part in ("name", "namespace", "uid")},
        },
        "type": event.type,
        "reason": event.reason,
        "message": event.message[:_MESSAGE_MAX],
        "source": {"component": deploy.MANAGER},
        "reportingComponent": deploy.MANAGER,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
