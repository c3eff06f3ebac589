"""Why does a driver's pod not come, or not start? Its own status does not say: the events of who tries to make it do.

Quota, Pod Security and admission refuse the pod, and its StatefulSet has none; a Secret or volume that is not there keeps
its containers from being made. Only what was told last counts: what came to pass later has mended what was before.
"""

from collections.abc import Iterable

from joinop import names, symptoms
from joinop.names import Object
from joinop.problem import Problem

_KEPT_OUT = {"FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox"}
_FIXES = {
    "exceeded quota": "ask for less in spec.driver, or have the namespace's ResourceQuota raised",
    "violates PodSecurity": "use a volume that the namespace's Pod Security allows, such as a claim",
    "admission webhook": "change what the webhook refuses, or ask who runs it",
}


def whose(name: str, pods: Iterable[Object]) -> tuple[str, str] | None:
    """Kind and name of the object whose events say what is wrong with the driver of this job; None if nothing seems to be."""
    drivers, _ = symptoms.split(pods)
    if not drivers:
        return "StatefulSet", names.driver(name)
    status = drivers[0].get("status", {})
    started = any("running" in c.get("state", {}) for c in status.get("containerStatuses", ()))
    placed = drivers[0].get("spec", {}).get("nodeName")
    waits = placed and status.get("phase") == "Pending" and not started and not symptoms.leaving(drivers[0])
    return ("Pod", names.pod(name)) if waits else None


def problem(events: Iterable[Object]) -> Problem | None:
    """Of the events of one object."""
    last = max(events, key=_at, default={})
    message = " ".join((last.get("message") or "").split())
    if last.get("reason") == "FailedCreate":
        said = message.partition(" error: ")[2] or message
        return Problem("PodRefused", f"the driver's pod cannot be made: {said}{_fix(said)}")
    if last.get("reason") in _KEPT_OUT:
        return Problem(last["reason"], f"the driver's pod cannot start: {message}; make what it names")
    return None


def _fix(message: str) -> str:
    return next((f"; {fix}" for words, fix in _FIXES.items() if words in message), "")


def _at(event: Object) -> str:
    """Times of the API are text that sorts."""
    series = (event.get("series") or {}).get("lastObservedTime")
    return str(series or event.get("lastTimestamp") or event.get("eventTime") or "")
