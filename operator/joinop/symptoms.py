"""What is wrong with a job's pods? Read from their status alone; the wording does not change while the trouble lasts."""

from collections.abc import Iterable, Iterator
from typing import Any

from joinop import names
from joinop.names import Object
from joinop.problem import Problem

REFUSED = 2  # the driver's exit code for a mistake of the user's
_IMAGE = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
_SAID_MAX = 500  # characters of a container's last words
_KILLED = {137, 143}  # executors come and go
_CONTAINER = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}


def driver(pods: Iterable[Object]) -> Problem | None:
    """The trouble of the driver's pod."""
    return next((found for pod in pods for found in _of(pod, "driver", "spec.driver.memory")), None)


def executors(pods: Iterable[Object]) -> Problem | None:
    """The trouble that most executors have."""
    found = [problem for pod in pods for problem in _of(pod, "executor", "spec.executors.memory")]
    reasons = [problem.reason for problem in found]
    if not found:
        return None
    worst = max(found, key=lambda problem: reasons.count(problem.reason))
    return Problem(worst.reason, f"{reasons.count(worst.reason)} of the executors: {worst.message}")


def is_ready(pod: Object) -> bool:
    """All its containers work."""
    return not leaving(pod) and any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in pod.get("status", {}).get("conditions", ())
    )


def leaving(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def split(pods: Iterable[Object]) -> tuple[list[Object], list[Object]]:
    """The driver's pod, which has one name only, and those of executors."""
    drivers, executors = [], []
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        if labels.get(names.COMPONENT) == "executor":
            executors.append(pod)
        elif pod["metadata"]["name"] == names.pod(labels.get(names.INSTANCE, "")):
            drivers.append(pod)
    return drivers, executors


def _of(pod: Object, part: str, memory: str) -> Iterator[Problem]:
    if leaving(pod):
        return
    status = pod.get("status", {})
    yield from _scheduling(status, part)
    if status.get("phase") == "Failed" and status.get("reason"):
        yield Problem(
            status["reason"],
            f"the {part}'s pod was ended by its node: {status.get('message') or status['reason']}",
        )
    for container in status.get("containerStatuses", ()):
        yield from _waiting(container, part)
        yield from _ended(container, part, memory)


def _scheduling(status: Object, part: str) -> Iterator[Problem]:
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            yield Problem(
                "Unschedulable",
                f"no node takes the {part}'s pod: {condition.get('message', '')}; "
                f"ask for less in spec.{_section(part)}, or add nodes",
            )


def _waiting(container: Object, part: str) -> Iterator[Problem]:
    waiting = container.get("state", {}).get("waiting") or {}
    if waiting.get("reason") in _IMAGE:
        image = container.get("image", "")
        yield Problem(
            "ImagePull",
            f"the {part}'s image {image} cannot be pulled; check spec.image, or the operator's image for jobs",
        )
    if waiting.get("reason") in _CONTAINER:
        yield Problem(waiting["reason"], f"the {part}'s container cannot start: {waiting.get('message', '')}")


def _ended(container: Object, part: str, memory: str) -> Iterator[Problem]:
    """How it ended last, unless it has recovered."""
    if container.get("ready"):
        return
    ended: Any = (
        container.get("state", {}).get("terminated") or container.get("lastState", {}).get("terminated")
    ) or {}
    code, said = ended.get("exitCode", 0), " ".join((ended.get("message") or "").split())[:_SAID_MAX]
    if ended.get("reason") == "OOMKilled":
        yield Problem("OutOfMemory", f"the {part} needed more memory than it has; raise {memory}")
    elif code == REFUSED and part == "driver":
        yield Problem("DriverRefused", said or "the driver refused the spec; see its log", fatal=True)
    elif code and not (part == "executor" and code in _KILLED):
        yield Problem(
            f"{part.capitalize()}Failed", f"the {part} ended with code {code}: {said or 'see its log'}"
        )


def _section(part: str) -> str:
    return "driver" if part == "driver" else "executors"
