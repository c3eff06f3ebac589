"""Explain why a driver's pod is not created, or does not start: its own status does not say, but events do.

Quota, Pod Security and admission webhooks refuse the pod, and its StatefulSet stays without one; a Secret
or volume that is missing keeps its containers from being created. Only the newest event counts: earlier
problems have been solved.
"""

from collections.abc import Iterable

from joinlib import deploy
from joinop import diagnosis
from joinop.degradation import Degradation
from joinop.names import Object

_KEPT_OUT = {"FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox"}
_FIXES = {
    "exceeded quota": "ask for less in spec.driver, or have the namespace's ResourceQuota raised",
    "violates PodSecurity": "use a volume that the namespace's Pod Security allows, such as a claim",
    "admission webhook": "change what the webhook refuses, or ask who runs it",
}


def whose(name: str, pods: Iterable[Object]) -> tuple[str, str] | None:
    """Return kind and name of the object whose events explain why the driver does not start; None if
    nothing seems wrong.
    """
    drivers, _ = diagnosis.split(pods)
    if not drivers:
        return "StatefulSet", deploy.driver(name)
    status = drivers[0].get("status", {})
    started = any("running" in c.get("state", {}) for c in status.get("containerStatuses", ()))
    placed = drivers[0].get("spec", {}).get("nodeName")
    waits = (
        placed and status.get("phase") == "Pending" and not started and not diagnosis.terminating(drivers[0])
    )
    return ("Pod", deploy.driver_pod(name)) if waits else None


def problem(events: Iterable[Object]) -> Degradation | None:
    """Return the problem that the events of one object describe, if there is one."""
    last = max(events, key=_at, default={})
    message = " ".join((last.get("message") or "").split())
    if last.get("reason") == "FailedCreate":
        said = message.partition(" error: ")[2] or message
        return Degradation("PodRefused", f"the driver's pod cannot be created: {said}{_fix(said)}")
    if last.get("reason") in _KEPT_OUT:
        return Degradation(last["reason"], f"the driver's pod cannot start: {message}; create what it names")
    return None


def _fix(message: str) -> str:
    return next((f"; {fix}" for words, fix in _FIXES.items() if words in message), "")


def _at(event: Object) -> str:
    """Return the time of an event. Times of the API are text that sorts."""
    series = (event.get("series") or {}).get("lastObservedTime")
    return str(series or event.get("lastTimestamp") or event.get("eventTime") or "")
