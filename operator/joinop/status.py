"""How is a job? The status of a StreamJoin, from what was seen. What is not known is left out, never zero."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from joinlib.scale import Load, Observed, Policy, State, due, step
from joinlib.scale.policy import of_spec
from joinlib.spec import duration
from joinlib.spec.model import Executors
from joinop import lost, names, remember, restarts, symptoms
from joinop.classify import Pinned
from joinop.conditions import Condition, merged, truth
from joinop.judge import Accepted
from joinop.names import Object
from joinop.problem import Problem
from joinop.reading import STARTED, Reading, ratio

_MESSAGE_MAX = 500  # characters; the condition holds all of it
_EXCEEDED = "ProgressDeadlineExceeded"  # as Deployments call it
FIGURES = frozenset({"memoryLoad", "skew", "lag", "batch", "rate"})  # change all the time


@dataclass(frozen=True)
class View:
    """What a status depends on."""

    thing: Object
    runs: Accepted | None  # the document that is followed
    suspended: bool
    pods: tuple[Object, ...]
    reading: Reading | None
    refusal: Problem | None
    unheard: str = ""
    observed: Observed | None = None  # what executors hold; None: the period is not over
    now: float = 0.0  # seconds since 1970
    nodes: Mapping[str, lost.Node] = field(default_factory=dict)  # those that were asked about
    unmade: Problem | None = None  # why there is no driver's pod, or why it does not start
    image: str = ""  # of driver and executors

    @property
    def name(self) -> str:
        return str(self.thing["metadata"]["name"])

    @property
    def before(self) -> Object:
        found: Object = self.thing.get("status") or {}
        return found

    @property
    def driver(self) -> Object | None:
        """The driver's pod that is not on its way out."""
        return next((pod for pod in symptoms.split(self.pods)[0] if not symptoms.leaving(pod)), None)

    @property
    def pod_hash(self) -> str | None:
        """What the driver's pod was made from."""
        found = self.driver
        return None if found is None else (found["metadata"].get("annotations") or {}).get(names.CONFIG_HASH)

    @property
    def current(self) -> bool:
        """The driver's pod was made from the document that is followed."""
        return self.runs is not None and self.pod_hash == self.runs.config_hash

    @property
    def ready(self) -> bool:
        return self.driver is not None and not self.suspended and symptoms.is_ready(self.driver)

    @property
    def said(self) -> Reading | None:
        """What the driver says, if it could be asked."""
        return (
            self.reading
            if self.reading is not None and not self.reading.error and self.driver is not None
            else None
        )

    @property
    def policy(self) -> Policy | None:
        """How the document that is followed wants to be scaled."""
        return None if self.runs is None else of_spec(self.runs.model.spec)

    @cached_property
    def remembered(self) -> State:
        """What scaling remembers: what was written."""
        return remember.read(self.before)

    @cached_property
    def scaling(self) -> State:
        """What it is to remember."""
        if self.policy is None or self.observed is None:
            return self.remembered
        return step(self.remembered, self.policy, self.observed, self.now)

    @cached_property
    def tally(self) -> restarts.Tally:
        """How often the driver has ended by itself."""
        generation = self.thing["metadata"].get("generation", 0)
        return restarts.counted(restarts.read(self.before), self.pods, generation, self.image, self.now)

    @property
    def exhausted(self) -> bool:
        """Its budget is spent: no driver is started any more."""
        return self.runs is not None and self.tally.restarts > self.runs.model.spec.driver.restarts

    @property
    def overdue(self) -> bool:
        """The driver has not come to work in the time that it has for it."""
        if self.runs is None or self.ready or self.suspended:
            return False
        known: list[Object] = self.before.get("conditions", [])
        before: Object = next((c for c in known if c["type"] == "Progressing"), {})
        same = before.get("observedGeneration") == self.thing["metadata"].get("generation", 0)
        if before.get("reason") == _EXCEEDED:
            return bool(same)
        began = before.get("lastTransitionTime") if before.get("status") == "True" else None
        limit_s = self.runs.model.spec.driver.start_within_us / 1e6
        return began is not None and self.now - datetime.fromisoformat(began).timestamp() > limit_s

    @property
    def problem(self) -> Problem | None:
        """The one that matters most."""
        return self.refusal or next(_troubles(self), None)


def of(view: View, at: str) -> Object:
    """The whole status."""
    metadata = view.thing["metadata"]
    generation = metadata.get("generation", 0)
    found = {
        "observedGeneration": generation,
        "phase": _phase(view),
        "message": _message(view),
        "conditions": merged(view.before.get("conditions", ()), _conditions(view), generation, at),
        "executors": _executors(view),
        "plan": None if view.runs is None else view.runs.plan,
        "checkpoint": _checkpoint(view),
        "driver": _driver(view) or None,
        "scaling": remember.written(view.scaling) if view.scaling.at is not None else None,
        **_figures(view.said),
    }
    return _without_none(found)


def wanted(view: View, scaling: State) -> int | None:
    """Executors that should be there: as the spec says, else as scaling does, within the spec's limits."""
    if view.runs is None:
        return None
    executors = view.runs.model.spec.executors or Executors()
    return executors.instances or min(max(scaling.wanted or executors.min, executors.min), executors.max)


def is_due(view: View) -> bool:
    """Should scaling take its next step? Where there is nobody to ask, only a change that is on its way goes on."""
    if view.policy is None or view.suspended or not due(view.remembered, view.policy, view.now):
        return False
    works = view.said is not None and view.said.phase == "Running" and view.current
    return works or view.remembered.phase != "Idle"


def observed(view: View, load: Load | str) -> Observed:
    """What can be seen of the executors."""
    known, why = (None, load) if isinstance(load, str) else (load, "")
    said = view.said
    if said is None or said.phase != "Running" or not view.current:
        return Observed(why="no driver runs")
    return Observed(said.count("executors", "ready"), said.count("executors", "leaving") or 0, known, why)


def to_ask(view: View) -> int | None:
    """The number of executors to ask the driver for; None if it knows. Only what is written down is asked for."""
    if view.said is None or view.said.phase != "Running" or view.suspended or not view.current:
        return None
    asked, number = view.said.count("executors", "wanted"), wanted(view, view.remembered)
    return number if asked is not None and asked != number else None


def pinned(thing: Object) -> Pinned | None:
    """The checkpoint that a driver of this job has worked on."""
    found = (thing.get("status") or {}).get("checkpoint") or {}
    try:
        return Pinned(found["folder"], json.loads(found["fingerprint"]))
    except (KeyError, TypeError, ValueError):
        return None


def _troubles(view: View) -> Iterator[Problem]:
    drivers, executors = symptoms.split(view.pods)
    for found in (
        _exhausted(view),
        lost.problem(view.pods, view.nodes, view.now),
        symptoms.driver(drivers),
        view.unmade,
        _failed(view),
        symptoms.executors(executors),
        _overdue(view),
    ):
        if found is not None:
            yield found


def _exhausted(view: View) -> Problem | None:
    if not view.exhausted:
        return None
    tally = view.tally
    message = (
        f"the driver ended {tally.restarts} times in a row and is not started again (spec.driver.restarts); the last time: "
        f"{tally.words or 'see its log'}; change the spec or the image, and it begins anew"
    )
    return Problem("RestartsExhausted", message, fatal=True)


def _overdue(view: View) -> Problem | None:
    if not view.overdue or view.runs is None:
        return None
    limit = duration.text(view.runs.model.spec.driver.start_within_us)
    return Problem(_EXCEEDED, f"no driver works after {limit} (spec.driver.startWithin): {_starting(view)}")


def _failed(view: View) -> Problem | None:
    if view.said is None or view.said.phase != "Failed":
        return None
    return Problem(
        "DriverFailed",
        str(view.said.body.get("message") or "the query failed; see the driver's log"),
        fatal=True,
    )


def _phase(view: View) -> str:
    problem = view.problem
    if view.suspended and view.refusal is None:
        return "Suspended"
    if problem is not None:
        return "Failed" if problem.fatal else "Degraded"
    return "Running" if view.ready else "Pending"


def _message(view: View) -> str:
    if view.problem is not None:
        return view.problem.message.partition("\n")[0][:_MESSAGE_MAX]
    if view.suspended:
        return "suspended: no pods, all state is kept"
    return "the driver runs" if view.ready else _starting(view)


def _starting(view: View) -> str:
    said = str(view.said.body.get("message") or "") if view.said else ""
    return f"waiting for the driver{': ' if said else ''}{said}"


def _conditions(view: View) -> list[Condition]:
    problem = view.problem
    return [
        Condition("Ready", truth(view.ready), *_readiness(view)),
        _progress(view),
        Condition(
            "Degraded",
            truth(problem is not None),
            problem.reason if problem else "Fine",
            problem.message if problem else "",
        ),
        _metrics(view),
        _scaling(view),
    ]


def _readiness(view: View) -> tuple[str, str]:
    if view.ready:
        return "Running", "the driver runs"
    if view.suspended:
        return (
            (view.refusal.reason, view.refusal.message)
            if view.refusal
            else ("Suspended", "spec.suspend is true")
        )
    return ("Starting", _starting(view)) if view.runs is not None else ("Refused", _message(view))


def _progress(view: View) -> Condition:
    if view.suspended:
        stopping = bool(view.pods)
        return Condition("Progressing", truth(stopping), "Stopping" if stopping else "Suspended")
    if view.runs is None:
        return Condition("Progressing", "False", "Refused")
    if view.exhausted:
        return Condition("Progressing", "False", "RestartsExhausted")
    if view.overdue:
        return Condition("Progressing", "False", _EXCEEDED, _message(view))
    if view.driver is not None and not view.current:
        return Condition("Progressing", "True", "RollingOut", "the driver is replaced")
    return Condition("Progressing", truth(not view.ready), "Settled" if view.ready else "Starting")


def _metrics(view: View) -> Condition:
    if view.said is not None and view.scaling.blind:
        why = next((d.reason for d in reversed(view.scaling.decisions) if d.verdict == "Blind"), "")
        return Condition("MetricsAvailable", "False", "Incomplete", why)
    if view.said is not None:
        return Condition("MetricsAvailable", "True", "Fresh")
    if view.driver is None or not view.driver["status"].get("podIP"):
        return Condition("MetricsAvailable", "False", "NoDriver", "there is no driver to ask")
    return Condition("MetricsAvailable", "False", "Unreachable", "the driver does not answer at /v1/status")


def _scaling(view: View) -> Condition:
    number, there = wanted(view, view.scaling), _ready_executors(view)
    if number is None or view.suspended or not view.ready:
        return Condition("Scaling", "False", "NotRunning")
    if view.unheard:
        return Condition("Scaling", "True", "NotTaken", view.unheard)
    if there == number:
        return Condition("Scaling", "False", "Settled")
    return Condition("Scaling", "True", "Scaling", f"{there} of {number} executors work")


def _ready_executors(view: View) -> int:
    if view.said is not None and (count := view.said.count("executors", "ready")) is not None:
        return count
    return sum(symptoms.is_ready(pod) for pod in symptoms.split(view.pods)[1])


def _executors(view: View) -> Object:
    selector = names.text(names.match(view.name, "executor"))
    return _without_none(
        {
            "ready": _ready_executors(view),
            "wanted": wanted(view, view.scaling),
            "partitions": None if view.said is None else view.said.count("partitions"),
            "selector": selector,
        }
    )


def _checkpoint(view: View) -> Object | None:
    """Fixed once a driver has started on it. Keys are not sorted: the order of columns counts."""
    known: Object | None = view.before.get("checkpoint")
    started = view.ready or (view.said is not None and view.said.phase in STARTED)
    if (
        view.runs is None
        or not started
        or not view.current
        or (known or {}).get("folder") == view.runs.folder
    ):
        return known
    return {"folder": view.runs.folder, "fingerprint": json.dumps(view.runs.fingerprint)}


def _driver(view: View) -> Object:
    pod = None if view.driver is None else str(view.driver["metadata"]["name"])
    return _without_none({"pod": pod, "configHash": view.pod_hash}) | restarts.written(view.tally)


def _figures(said: Reading | None) -> Object:
    if said is None:
        return {}
    rate = said.number("rate")
    return {
        "memoryLoad": ratio(said.number("memoryLoad")),
        "skew": ratio(said.number("skew")),
        "lag": said.lag,
        "batch": said.count("batch"),
        "rate": None if rate is None or not 0 <= rate < float("inf") else round(float(rate), 1),
    }


def _without_none(found: Object) -> Object:
    return {name: value for name, value in found.items() if value is not None}
