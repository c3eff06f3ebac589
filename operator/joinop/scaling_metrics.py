"""Prometheus metrics of each job's phase and scaling, derived from its status.

The number of series grows with the jobs; the series of a deleted job are dropped.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from prometheus_client import Metric
from prometheus_client.registry import Collector

from joinlib.metric.export import Labels, families
from joinlib.metric.table import DIRECTIONS, JOB, SCALING, VERDICTS
from joinlib.scale.policy import Policy, of_spec
from joinop import persist
from joinop.admission import Admitted, verdict_of
from joinop.names import JobKey, Object
from joinop.restarts import from_status as restarts_of

Samples = dict[Labels, float | None]


@dataclass(eq=False)
class ScalingMetrics(Collector):
    """The latest statuses, and the scaling decisions since this operator started."""

    statuses: dict[JobKey, Object] = field(default_factory=dict)
    policies: dict[JobKey, Policy] = field(default_factory=dict)
    verdicts: Counter[tuple[JobKey, str]] = field(default_factory=Counter)

    def set_status(self, key: JobKey, status: Object) -> None:
        """Take in an existing status: an operator that has just started has written none itself."""
        self.statuses[key] = status

    def status_written(self, key: JobKey, obj: Object, before: Object, after: Object) -> None:
        """Take in a status that this operator has written."""
        self.statuses[key], verdict = after, verdict_of(obj)
        if isinstance(verdict, Admitted):  # else the policy of the last accepted document stays
            self.policies[key] = of_spec(verdict.model.spec)
        old, new = persist.from_status(before), persist.from_status(after)
        if new.at != old.at and new.decisions:
            self.verdicts[key, new.decisions[-1].verdict] += 1

    def forget(self, key: JobKey) -> None:
        """Drop the series of a deleted job."""
        self.statuses.pop(key, None)
        self.policies.pop(key, None)
        for set_status in [each for each in self.verdicts if each[0] == key]:
            del self.verdicts[set_status]

    def collect(self) -> Iterator[Metric]:
        statuses = dict(self.statuses)
        now = {key: status.get("phase", "Pending") for key, status in statuses.items()}
        restarts = {tuple(key): restarts_of(status).restarts for key, status in statuses.items()}
        phases = Counter(now.values())
        found: dict[str, Samples] = {
            "streamjoin_operator_streamjoins": {(phase,): phases[phase] for phase in JOB},
            "streamjoin_job_phase": {(*key, phase): phase == now[key] for key in now for phase in JOB},
            "streamjoin_job_restarts": dict(restarts),
        }
        for key, status in statuses.items():
            for name, labels, value in self._figures(key, status):
                found.setdefault(f"streamjoin_scaling_{name}", {})[*key, *labels] = value
        return families(found, "operator")

    def _figures(self, key: JobKey, status: Object) -> Iterable[tuple[str, Labels, float | None]]:
        state, policy = persist.from_status(status), self.policies.get(key)
        if state.at is None or policy is None:
            return
        yield "load", (), state.load
        for name in ("high", "low", "target"):
            yield "threshold", (name,), getattr(policy, name)
        for direction in DIRECTIONS:
            yield "votes", (direction,), state.votes if state.direction == direction else 0
        yield "votes_needed", (), policy.votes
        yield "executors", (), state.wanted
        if state.wants is not None:
            yield "wants", ("state",), state.wants.state
            yield "wants", ("lag",), state.wants.lag
        yield "catch_up_seconds", (), None if state.backlog is None else state.backlog.seconds
        yield "executor_rate", (), None if state.learnt is None else state.learnt.able
        yield "advised_executors", (), state.advised
        for phase in SCALING:
            yield "phase", (phase,), phase == state.phase
        yield "blind", (), state.blind
        yield "last_decision_timestamp_seconds", (), state.at
        for said in VERDICTS:  # all of them: to Prometheus, a counter that starts at 1 has not grown
            yield "verdicts_total", (said,), self.verdicts[key, said]
