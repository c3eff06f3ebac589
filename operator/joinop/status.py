"""Derive the status of a StreamJoin from what was observed. What is unknown is left out, never zero."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from joinlib import deploy
from joinlib.scale import ExecutorRequest, Load, Observed, Policy, State, due, step
from joinlib.scale.policy import of_spec
from joinlib.scale.request import line
from joinlib.spec import duration
from joinlib.spec.model import Executors
from joinop import diagnosis, names, node_loss, persist, pod_events, restarts
from joinop.admission import Admitted
from joinop.conditions import StatusCondition, merged, truth
from joinop.degradation import Degradation
from joinop.names import Object
from joinop.scrape import STARTED, Scrape, ratio

_MESSAGE_MAX = 500  # characters; the condition holds the whole message
_EXCEEDED = "ProgressDeadlineExceeded"  # the reason that Deployments use
_NOT_RUNNING = "NotRunning"  # the driver, so that nothing scales
FIGURES = frozenset({"memoryLoad", "skew", "lag", "batch", "rate"})  # change all the time


@dataclass(frozen=True)
class JobView:
    """What a status is derived from."""

    stream_join: Object
    runs: Admitted | None  # the document that is in effect
    suspended: bool
    pods: tuple[Object, ...]
    scrape: Scrape | None
    refusal: Degradation | None
    unacknowledged: str = ""
    scaling_input: Observed | None = None  # load of the executors; None: no scaling period has ended
    now: float = 0.0  # seconds since 1970
    # Nodes of pods that are not ready.
    nodes: Mapping[str, node_loss.NodeHealth] = field(default_factory=dict)
    pod_problem: Degradation | None = None  # why the driver's pod is not created, or does not start
    executor_problem: Degradation | None = None  # why an executor's pod does not start
    image: str = ""  # of driver and executors

    @property
    def name(self) -> str:
        return str(self.stream_join["metadata"]["name"])

    @property
    def before(self) -> Object:
        found: Object = self.stream_join.get("status") or {}
        return found

    @property
    def driver(self) -> Object | None:
        """The driver's pod, if it is not terminating."""
        return next((pod for pod in diagnosis.split(self.pods)[0] if not diagnosis.terminating(pod)), None)

    @property
    def pod_hash(self) -> str | None:
        """Hash of the config that the driver's pod was made from."""
        found = self.driver
        return None if found is None else (found["metadata"].get("annotations") or {}).get(names.CONFIG_HASH)

    @property
    def current(self) -> bool:
        """Was the driver's pod made from the document that is in effect?"""
        return self.runs is not None and self.pod_hash == self.runs.config_hash

    @property
    def ready(self) -> bool:
        """Does the driver work?"""
        return self.driver is not None and not self.suspended and diagnosis.is_ready(self.driver)

    @property
    def ready_executors(self) -> int:
        """Executors that take tasks; without a report, those whose pods are ready."""
        if self.report is not None and (count := self.report.count("executors", "ready")) is not None:
            return count
        return sum(diagnosis.is_ready(pod) for pod in diagnosis.split(self.pods)[1])

    @property
    def joins(self) -> bool:
        """Does the driver work, and at least one executor?"""
        return self.ready and self.ready_executors > 0

    @property
    def report(self) -> Scrape | None:
        """The driver's report, if it could be scraped."""
        return (
            self.scrape
            if self.scrape is not None and not self.scrape.error and self.driver is not None
            else None
        )

    @property
    def policy(self) -> Policy | None:
        """Scaling policy of the document that is in effect."""
        return None if self.runs is None else of_spec(self.runs.model.spec)

    @cached_property
    def scaling_before(self) -> State:
        """State of scaling, as the status holds it."""
        return persist.from_status(self.before)

    @cached_property
    def scaling_after(self) -> State:
        """State of scaling after its next step."""
        if self.policy is None or self.scaling_input is None:
            return self.scaling_before
        return step(self.scaling_before, self.policy, self.scaling_input, self.now)

    @cached_property
    def tally(self) -> restarts.Tally:
        """How often the driver has ended by itself."""
        generation = self.stream_join["metadata"].get("generation", 0)
        return restarts.counted(
            restarts.from_status(self.before), self.pods, generation, self.image, self.now
        )

    @property
    def exhausted(self) -> bool:
        """Is the restart budget spent? Then no driver is started any more."""
        return self.runs is not None and self.tally.restarts > self.runs.model.spec.driver.restarts

    @property
    def overdue(self) -> bool:
        """Has the driver missed its deadline to become ready?"""
        if self.runs is None or self.ready or self.suspended:
            return False
        before = self._condition("Progressing")
        same = before.get("observedGeneration") == self.stream_join["metadata"].get("generation", 0)
        # Else the driver worked, and it was executors that missed their deadline.
        if before.get("reason") == _EXCEEDED and self._condition("Scaling").get("reason") == _NOT_RUNNING:
            return bool(same)
        return self._too_long(before)

    @property
    def lacks_executors(self) -> bool:
        """Does the driver work, and fewer executors than are wanted?"""
        number = desired_executors(self, self.scaling_after)
        return self.ready and number is not None and self.ready_executors < number

    @property
    def executors_overdue(self) -> bool:
        """Have executors missed the deadline? It runs since not all have worked."""
        return self.lacks_executors and self._too_long(self._condition("Scaling"))

    def _condition(self, title: str) -> Object:
        """The last condition of this type; empty if there is none."""
        known: list[Object] = self.before.get("conditions", [])
        return next((c for c in known if c["type"] == title), {})

    def _too_long(self, condition: Object) -> bool:
        """Has the condition been true for longer than pods may take to start?"""
        if self.runs is None or condition.get("status") != "True":
            return False
        limit_s = self.runs.model.spec.driver.start_within_us / 1e6
        return self.now - datetime.fromisoformat(condition["lastTransitionTime"]).timestamp() > limit_s

    @property
    def problem(self) -> Degradation | None:
        """The most important problem, if there is one."""
        return self.refusal or next(_troubles(self), None)

    @property
    def executors_trouble(self) -> Degradation | None:
        """What keeps executors from being created or started, or ends them; None if nothing does."""
        return next(_troubles_of_executors(self), None)


def of(view: JobView, at: str) -> Object:
    """The whole status."""
    metadata = view.stream_join["metadata"]
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
        "scaling": persist.to_status(view.scaling_after) if view.scaling_after.at is not None else None,
        **_figures(view.report),
    }
    return _without_none(found)


def desired_executors(view: JobView, scaling: State) -> int | None:
    """Return the number of executors that the spec sets, or else scaling, within the limits of the spec."""
    if view.runs is None:
        return None
    executors = view.runs.model.spec.executors or Executors()
    return executors.instances or min(max(scaling.wanted or executors.min, executors.min), executors.max)


def is_due(view: JobView) -> bool:
    """Should scaling take its next step? Without a driver, only a change that has begun continues."""
    if view.policy is None or view.suspended or not due(view.scaling_before, view.policy, view.now):
        return False
    works = view.report is not None and view.report.phase == "Running" and view.current
    return works or view.scaling_before.phase != "Idle"


def scaling_input(view: JobView, load: Load | str) -> Observed:
    """Return what scaling decides by."""
    known, why = (None, load) if isinstance(load, str) else (load, "")
    report = view.report
    if report is None or report.phase != "Running" or not view.current:
        return Observed(why="no driver runs")
    return Observed(report.count("executors", "ready"), report.count("executors", "leaving") or 0, known, why)


def executors_to_request(view: JobView) -> ExecutorRequest | None:
    """Return the executors to request from the driver, and why; None if it has them.

    Only what the status holds is requested.
    """
    if view.report is None or view.report.phase != "Running" or view.suspended or not view.current:
        return None
    asked, number = view.report.count("executors", "wanted"), desired_executors(view, view.scaling_before)
    if number is None or asked is None or asked == number:
        return None
    return ExecutorRequest(number, line(_reason(view, number)))


def _reason(view: JobView, number: int) -> str:
    """Return why so many executors are wanted: by hand, by the limits, or by which decision of scaling."""
    policy, decided = view.policy, view.scaling_before.decided
    if policy is not None and policy.pinned is not None:
        return "by hand: spec.executors.instances, as kubectl scale sets it"
    if policy is not None and number != view.scaling_before.wanted:
        return f"by spec.executors: min is {policy.min}, max {policy.max}"
    if decided is None:
        return "as many as were wanted before; the decision is no longer remembered"
    return f"{decided.reason} ({decided.verdict} at {datetime.fromtimestamp(decided.at, UTC):%Y-%m-%dT%H:%M:%SZ})"


def _troubles(view: JobView) -> Iterator[Degradation]:
    drivers, _ = diagnosis.split(view.pods)
    for found in (
        _exhausted(view),
        node_loss.problem(view.pods, view.nodes, view.now),
        diagnosis.driver(drivers),
        view.pod_problem,
        _failed(view),
        view.executors_trouble,
        _overdue(view),
    ):
        if found is not None:
            yield found


def _troubles_of_executors(view: JobView) -> Iterator[Degradation]:
    """The wording does not depend on how many executors there are: each further one would be news."""
    _, executors = diagnosis.split(view.pods)
    refusal = "" if view.report is None else view.report.text("executors", "refused")
    for found in (
        diagnosis.executors(executors),
        pod_events.refused(refusal, deploy.EXECUTOR) if refusal else None,
        view.executor_problem,
        _executors_overdue(view),
    ):
        if found is not None:
            yield found


def _exhausted(view: JobView) -> Degradation | None:
    if not view.exhausted:
        return None
    tally = view.tally
    message = (
        f"the driver ended {tally.restarts} times in a row and is not started again (spec.driver.restarts);"
        f" the last time: {tally.words or 'see its log'}; change the spec or the image to start it again"
    )
    return Degradation("RestartsExhausted", message, fatal=True)


def _overdue(view: JobView) -> Degradation | None:
    if not view.overdue or view.runs is None:
        return None
    limit = duration.text(view.runs.model.spec.driver.start_within_us)
    return Degradation(
        _EXCEEDED, f"no driver works after {limit} (spec.driver.startWithin): {_starting(view)}"
    )


def _executors_overdue(view: JobView) -> Degradation | None:
    if not view.executors_overdue or view.runs is None:
        return None
    limit = duration.text(view.runs.model.spec.driver.start_within_us)
    message = (
        f"executors are missing after {limit} (spec.driver.startWithin); see their pods' events and logs"
    )
    return Degradation(_EXCEEDED, message)


def _failed(view: JobView) -> Degradation | None:
    if view.report is None or view.report.phase != "Failed":
        return None
    return Degradation(
        "DriverFailed",
        str(view.report.body.get("message") or "the query failed; see the driver's log"),
        fatal=True,
    )


def _phase(view: JobView) -> str:
    problem = view.problem
    if view.suspended and view.refusal is None:
        return "Suspended"
    if problem is not None:
        return "Failed" if problem.fatal else "Degraded"
    return "Running" if view.ready else "Pending"


def _message(view: JobView) -> str:
    if (problem := view.problem) is not None:
        counted = view.lacks_executors and problem == view.executors_trouble
        said = f"{_counted(view)}: {problem.message}" if counted else problem.message
        return said.partition("\n")[0][:_MESSAGE_MAX]
    if view.suspended:
        return "suspended: no pods, all state is kept"
    return _works(view) if view.ready else _starting(view)


def _counted(view: JobView) -> str:
    return f"{view.ready_executors} of {desired_executors(view, view.scaling_after)} executors"


def _works(view: JobView) -> str:
    return "the driver runs" if view.joins else "the driver runs, and waits for executors"


def _starting(view: JobView) -> str:
    report = str(view.report.body.get("message") or "") if view.report else ""
    return f"waiting for the driver{': ' if report else ''}{report}"


def _conditions(view: JobView) -> list[StatusCondition]:
    problem = view.problem
    return [
        StatusCondition("Ready", truth(view.joins), *_readiness(view)),
        _progress(view),
        StatusCondition(
            "Degraded",
            truth(problem is not None),
            problem.reason if problem else "Fine",
            problem.message if problem else "",
        ),
        _metrics(view),
        _scaling(view),
    ]


def _readiness(view: JobView) -> tuple[str, str]:
    if view.ready:
        return "Running" if view.joins else "NoExecutors", _works(view)
    if view.suspended:
        return (
            (view.refusal.reason, view.refusal.message)
            if view.refusal
            else ("Suspended", "spec.suspend is true")
        )
    return ("Starting", _starting(view)) if view.runs is not None else ("Refused", _message(view))


def _progress(view: JobView) -> StatusCondition:
    if view.suspended:
        stopping = bool(view.pods)
        return StatusCondition("Progressing", truth(stopping), "Stopping" if stopping else "Suspended")
    if view.runs is None:
        return StatusCondition("Progressing", "False", "Refused")
    if view.exhausted:
        return StatusCondition("Progressing", "False", "RestartsExhausted")
    if view.overdue:
        return StatusCondition("Progressing", "False", _EXCEEDED, _message(view))
    if view.driver is not None and not view.current:
        return StatusCondition("Progressing", "True", "RollingOut", "the driver is replaced")
    if view.executors_overdue:
        return StatusCondition("Progressing", "False", _EXCEEDED, _message(view))
    return StatusCondition("Progressing", truth(not view.ready), "Settled" if view.ready else "Starting")


def _metrics(view: JobView) -> StatusCondition:
    if view.report is not None and view.scaling_after.blind:
        why = next((d.reason for d in reversed(view.scaling_after.decisions) if d.verdict == "Blind"), "")
        return StatusCondition("MetricsAvailable", "False", "Incomplete", why)
    if view.report is not None:
        return StatusCondition("MetricsAvailable", "True", "Fresh")
    if view.driver is None or not view.driver["status"].get("podIP"):
        return StatusCondition("MetricsAvailable", "False", "NoDriver", "there is no driver to ask")
    return StatusCondition(
        "MetricsAvailable", "False", "Unreachable", "the driver does not answer at /v1/status"
    )


def _scaling(view: JobView) -> StatusCondition:
    number, ready = desired_executors(view, view.scaling_after), view.ready_executors
    if number is None or view.suspended or not view.ready:
        return StatusCondition("Scaling", "False", _NOT_RUNNING)
    if view.unacknowledged:
        return StatusCondition("Scaling", "True", "NotTaken", view.unacknowledged)
    if (advised := view.scaling_after.advised) is not None and ready == number:
        return StatusCondition("Scaling", "False", "Advised", _advice(view.scaling_after, advised))
    if ready == number:
        return StatusCondition("Scaling", "False", "Settled")
    return StatusCondition("Scaling", "True", "Scaling", f"{_counted(view)} work")


def _advice(state: State, advised: int) -> str:
    why = f": {state.wants.why}" if state.wants is not None else ""
    return f"{advised} executors are advised (spec.scaling.mode){why}"


def _executors(view: JobView) -> Object:
    selector = deploy.selector(deploy.match(view.name, deploy.EXECUTOR))
    return _without_none(
        {
            "ready": view.ready_executors,
            "wanted": desired_executors(view, view.scaling_after),
            "spare": None if view.report is None else view.report.count("executors", "spare") or None,
            "partitions": None if view.report is None else view.report.count("partitions"),
            "selector": selector,
        }
    )


def _checkpoint(view: JobView) -> Object | None:
    """Return the checkpoint, which is fixed once a driver has started on it.

    Columns of a registry are those that the driver tells. Only with them can the document be planned, so then the
    fingerprint follows. Its keys are not sorted: the order of columns counts.
    """
    known: Object | None = view.before.get("checkpoint")
    runs, report = view.runs, view.report
    working = report is not None and report.phase in STARTED
    if runs is None or not (view.ready or working) or not view.current:
        return known
    same = known if known is not None and known.get("folder") == runs.folder else {}
    columns = {**same.get("columns", {}), **(report.columns if report is not None and working else {})}
    fingerprint = same.get("fingerprint")
    if fingerprint is None and runs.fingerprint is not None:
        fingerprint = json.dumps(runs.fingerprint)
    return _without_none(
        {**same, "folder": runs.folder, "fingerprint": fingerprint, "columns": columns or None}
    )


def _driver(view: JobView) -> Object:
    pod = None if view.driver is None else str(view.driver["metadata"]["name"])
    return _without_none({"pod": pod, "configHash": view.pod_hash}) | restarts.to_status(view.tally)


def _figures(report: Scrape | None) -> Object:
    if report is None:
        return {}
    rate = report.number("rate")
    return {
        "memoryLoad": ratio(report.number("memoryLoad")),
        "skew": ratio(report.number("skew")),
        "lag": report.lag,
        "batch": report.count("batch"),
        "rate": None if rate is None or not 0 <= rate < float("inf") else round(float(rate), 1),
    }


def _without_none(found: Object) -> Object:
    return {name: value for name, value in found.items() if value is not None}
