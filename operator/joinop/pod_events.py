"""Explain why a pod is not created, or does not start: its own status does not say, but events do.

Quota, Pod Security and admission webhooks refuse the driver's pod, and its StatefulSet stays without one; a
Secret or volume that is missing keeps a pod's containers from being created. Only the newest event counts:
earlier problems have been solved. Pods of executors have no StatefulSet: why they are refused, the driver
reports, which creates them, from when it starts.
"""

from collections.abc import Iterable

from joinlib import deploy
from joinop import diagnosis
from joinop.degradation import Degradation
from joinop.names import Object

_KEPT_OUT = {"FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox"}
_FIXES = {
    "exceeded quota": "ask for less in spec.{section}, or have the namespace's ResourceQuota raised",
    "usage per ": "keep spec.{section} within the namespace's LimitRange, or have that changed",
    "violates PodSecurity": "use a volume that the namespace's Pod Security allows, such as a claim",
    "admission webhook": "change what the webhook refuses, or ask who runs it",
    "Multi-Attach": "use a claim that several nodes can mount (ReadWriteMany)",
}


def whose(name: str, pods: Iterable[Object]) -> tuple[str, str] | None:
    """Return kind and name of the object whose events explain why the driver does not start; None if
    nothing seems wrong.
    """
    drivers, _ = diagnosis.split(pods)
    if not drivers:
        return "StatefulSet", deploy.driver(name)
    return ("Pod", deploy.driver_pod(name)) if _waits(drivers[0]) else None


def waiting_executor(pods: Iterable[Object]) -> tuple[str, str] | None:
    """Return kind and name of an executor whose events explain why it does not start; None if all do."""
    _, executors = diagnosis.split(pods)
    waiting = sorted(pod["metadata"]["name"] for pod in executors if _waits(pod))
    return ("Pod", waiting[0]) if waiting else None


def problem(events: Iterable[Object], part: str) -> Degradation | None:
    """Return the problem that the events of one object describe, if there is one.

    `part` is the component of the job that the object belongs to.
    """
    last = max(events, key=_at, default={})
    message = " ".join((last.get("message") or "").split())
    if last.get("reason") == "FailedCreate":
        return refused(message.partition(" error: ")[2] or message, part)
    if last.get("reason") in _KEPT_OUT:
        fix = _fix(message, part) or "; create what it names"
        return Degradation(last["reason"], f"the {part}'s pod cannot start: {message}{fix}")
    return None


def refused(message: str, part: str) -> Degradation:
    """Return the problem of a pod that the API server refuses with this message."""
    said = " ".join(message.split())
    return Degradation("PodRefused", f"the {part}'s pod cannot be created: {said}{_fix(said, part)}")


def _waits(pod: Object) -> bool:
    """Has the pod a node, and no container that runs?"""
    status = pod.get("status", {})
    started = any("running" in c.get("state", {}) for c in status.get("containerStatuses", ()))
    placed = bool(pod.get("spec", {}).get("nodeName"))
    return placed and status.get("phase") == "Pending" and not started and not diagnosis.terminating(pod)


def _fix(message: str, part: str) -> str:
    section = diagnosis.section(part)
    return next((f"; {fix.format(section=section)}" for words, fix in _FIXES.items() if words in message), "")


def _at(event: Object) -> str:
    """Return the time of an event. Times of the API are text that sorts."""
    series = (event.get("series") or {}).get("lastObservedTime")
    return str(series or event.get("lastTimestamp") or event.get("eventTime") or "")
