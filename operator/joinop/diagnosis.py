"""Diagnose the pods of a job from their status alone. The wording stays the same while a problem lasts."""

from collections.abc import Iterable, Iterator
from typing import Any

from joinlib import deploy
from joinop.degradation import Degradation
from joinop.names import Object

REFUSED = 2  # exit code of a driver for a mistake in the spec or its inputs
_IMAGE = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
_MESSAGE_MAX = 500  # characters of a container's termination message
_KILLED = {137, 143}  # by signals: executors come and go
_CONTAINER = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}


def driver(pods: Iterable[Object]) -> Degradation | None:
    """Return the problem of the driver's pod, if there is one."""
    return next((found for pod in pods for found in _of(pod, "driver", "spec.driver.memory")), None)


def executors(pods: Iterable[Object]) -> Degradation | None:
    """Return the problem that most executors have, if there is one.

    It does not say how many have it, which `status.executors` does: each further one would be news.
    """
    found = [problem for pod in pods for problem in _of(pod, "executor", "spec.executors.memory")]
    reasons = [problem.reason for problem in found]
    if not found:
        return None
    return max(found, key=lambda problem: reasons.count(problem.reason))


def is_ready(pod: Object) -> bool:
    """Is the pod ready, and not terminating?"""
    return not terminating(pod) and any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in pod.get("status", {}).get("conditions", ())
    )


def terminating(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def split(pods: Iterable[Object]) -> tuple[list[Object], list[Object]]:
    """Split pods into the driver's, which is known by its name, and the executors'."""
    drivers, executors = [], []
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        if labels.get(deploy.COMPONENT) == deploy.EXECUTOR:
            executors.append(pod)
        elif pod["metadata"]["name"] == deploy.driver_pod(labels.get(deploy.INSTANCE, "")):
            drivers.append(pod)
    return drivers, executors


def _of(pod: Object, part: str, memory: str) -> Iterator[Degradation]:
    if terminating(pod):
        return
    status = pod.get("status", {})
    yield from _scheduling(status, part)
    if status.get("phase") == "Failed" and status.get("reason"):
        yield Degradation(
            status["reason"],
            f"the {part}'s pod was ended by its node: {status.get('message') or status['reason']}",
        )
    for container in status.get("containerStatuses", ()):
        yield from _waiting(container, part)
        yield from _ended(container, part, memory)


def _scheduling(status: Object, part: str) -> Iterator[Degradation]:
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            yield Degradation(
                "Unschedulable",
                f"no node takes the {part}'s pod: {condition.get('message', '')}; "
                f"ask for less (cpuRequest and memory in spec.{section(part)}, or jobs.cpuRequest of the"
                " operator's chart), or add nodes",
            )


def _waiting(container: Object, part: str) -> Iterator[Degradation]:
    waiting = container.get("state", {}).get("waiting") or {}
    if waiting.get("reason") in _IMAGE:
        image = container.get("image", "")
        yield Degradation(
            "ImagePull",
            f"the {part}'s image {image} cannot be pulled; check spec.image, or the operator's image for"
            " jobs",
        )
    if waiting.get("reason") in _CONTAINER:
        yield Degradation(
            waiting["reason"], f"the {part}'s container cannot start: {waiting.get('message', '')}"
        )


def _ended(container: Object, part: str, memory: str) -> Iterator[Degradation]:
    """Diagnose how a container ended last, unless it has recovered."""
    if container.get("ready"):
        return
    ended: Any = (
        container.get("state", {}).get("terminated") or container.get("lastState", {}).get("terminated")
    ) or {}
    code, said = ended.get("exitCode", 0), " ".join((ended.get("message") or "").split())[:_MESSAGE_MAX]
    if ended.get("reason") == "OOMKilled":
        yield Degradation("OutOfMemory", f"the {part} needed more memory than it has; raise {memory}")
    elif code == REFUSED and part == "driver":
        yield Degradation("DriverRefused", said or "the driver refused the spec; see its log", fatal=True)
    elif code and not (part == "executor" and code in _KILLED):
        yield Degradation(
            f"{part.capitalize()}Failed", f"the {part} ended with code {code}: {said or 'see its log'}"
        )


def section(part: str) -> str:
    """Return the section of a spec that describes this part of the job."""
    return "driver" if part == "driver" else "executors"
