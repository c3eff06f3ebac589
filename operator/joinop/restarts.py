"""How often has the driver ended by itself, in a row? Beyond its budget the job is Failed, and rests until it is changed.

Kept in `status.driver`, so that a new operator counts on. Laws: only ends that were seen count, each once; another generation
or image begins anew, and so does a driver that has worked for ten minutes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from joinop import symptoms
from joinop.names import Object

WELL_S = 600.0


@dataclass(frozen=True)
class Tally:
    """What is remembered."""

    generation: int = 0  # of the spec; 0: nothing was ever counted
    image: str = ""
    uid: str = ""  # of the pod that was seen last
    ended: int = 0  # how often that had ended by then
    restarts: int = 0
    words: str = ""  # what was said of the last end


def read(status: Object) -> Tally:
    """What was written; what cannot be read is forgotten."""
    found = status.get("driver") or {}
    return Tally(
        generation=found.get("generation", 0),
        image=found.get("image", ""),
        uid=found.get("uid", ""),
        ended=found.get("ended", 0),
        restarts=found.get("restarts", 0),
        words=found.get("lastWords", ""),
    )


def written(tally: Tally) -> Object:
    """Inverse of `read`, of what belongs into `status.driver`."""
    names = {"words": "lastWords"}
    return {names.get(name, name): value for name, value in vars(tally).items() if value}


def counted(before: Tally, pods: Iterable[Object], generation: int, image: str, now: float) -> Tally:
    """The tally after a look. `now`: seconds since 1970."""
    pod = next(iter(symptoms.split(pods)[0]), None)
    ends, uid = (0, before.uid) if pod is None else (_ends(pod), pod["metadata"]["uid"])
    if (before.generation, before.image) != (generation, image):
        return Tally(generation, image, uid, ends)
    if pod is None:
        return before
    more = max(0, ends - (before.ended if uid == before.uid else 0))
    after = replace(before, uid=uid, ended=ends, restarts=before.restarts + more)
    if more and (found := symptoms.driver([pod])) is not None:
        after = replace(after, words=found.message)
    return replace(after, restarts=0, words="") if _well(pod, now) else after


def _ends(pod: Object) -> int:
    """A pod that its node ended is made anew: that is one more."""
    status = pod.get("status", {})
    again = sum(container.get("restartCount", 0) for container in status.get("containerStatuses", ()))
    return int(again) + (status.get("phase") == "Failed")


def _well(pod: Object, now: float) -> bool:
    for container in pod.get("status", {}).get("containerStatuses", ()):
        started = (container.get("state", {}).get("running") or {}).get("startedAt")
        if started and symptoms.is_ready(pod) and now - datetime.fromisoformat(started).timestamp() > WELL_S:
            return True
    return False
