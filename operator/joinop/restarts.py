"""Count how often the driver has ended by itself in a row.

Beyond its budget the job is Failed until its spec or image changes.

The count is persisted in `status.driver`, so that a new operator continues it. Laws: only ends that were
observed count, each once; another generation or image resets the count, and so does a driver that has run
for ten minutes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from joinop import diagnosis
from joinop.names import Object

WELL_S = 600.0


@dataclass(frozen=True)
class Tally:
    """The count, and what it refers to."""

    generation: int = 0  # of the spec; 0: nothing was counted yet
    image: str = ""
    uid: str = ""  # of the pod that was observed last
    ended: int = 0  # how often that pod had ended by then
    restarts: int = 0
    words: str = ""  # diagnosis of the last end


def from_status(status: Object) -> Tally:
    """Read the tally from a status; missing parts get their defaults."""
    found = status.get("driver") or {}
    return Tally(
        generation=found.get("generation", 0),
        image=found.get("image", ""),
        uid=found.get("uid", ""),
        ended=found.get("ended", 0),
        restarts=found.get("restarts", 0),
        words=found.get("lastWords", ""),
    )


def to_status(tally: Tally) -> Object:
    """Inverse of `read`, of what belongs into `status.driver`."""
    names = {"words": "lastWords"}
    return {names.get(name, name): value for name, value in vars(tally).items() if value}


def counted(before: Tally, pods: Iterable[Object], generation: int, image: str, now: float) -> Tally:
    """Return the tally after an observation. `now`: seconds since 1970."""
    pod = next(iter(diagnosis.split(pods)[0]), None)
    ends, uid = (0, before.uid) if pod is None else (_ends(pod), pod["metadata"]["uid"])
    if (before.generation, before.image) != (generation, image):
        return Tally(generation, image, uid, ends)
    if pod is None:
        return before
    more = max(0, ends - (before.ended if uid == before.uid else 0))
    after = replace(before, uid=uid, ended=ends, restarts=before.restarts + more)
    if more and (found := diagnosis.driver([pod])) is not None:
        after = replace(after, words=found.message)
    return replace(after, restarts=0, words="") if _well(pod, now) else after


def _ends(pod: Object) -> int:
    """Count the restarts of a pod. One that its node has ended is replaced, which counts as one more."""
    status = pod.get("status", {})
    again = sum(container.get("restartCount", 0) for container in status.get("containerStatuses", ()))
    return int(again) + (status.get("phase") == "Failed")


def _well(pod: Object, now: float) -> bool:
    for container in pod.get("status", {}).get("containerStatuses", ()):
        started = (container.get("state", {}).get("running") or {}).get("startedAt")
        if started and diagnosis.is_ready(pod) and now - datetime.fromisoformat(started).timestamp() > WELL_S:
            return True
    return False
