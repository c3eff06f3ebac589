"""How is each job, and what does its scaling do? Figures for Prometheus, made of what stands in its status.

The number of series grows with the jobs; those of a job that is gone go with it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from prometheus_client import Metric
from prometheus_client.registry import Collector

from joinlib.metric.export import Labels, families
from joinlib.metric.table import DIRECTIONS, JOB, SCALING, VERDICTS
from joinlib.scale.policy import Policy, of_spec
from joinop import remember
from joinop.judge import Accepted, document, judge
from joinop.names import Key, Object

Samples = dict[Labels, float | None]


@dataclass(eq=False)
class Scalings(Collector):
    """The statuses that were written last, and what was decided since this operator started."""

    statuses: dict[Key, Object] = field(default_factory=dict)
    policies: dict[Key, Policy] = field(default_factory=dict)
    verdicts: Counter[tuple[Key, str]] = field(default_factory=Counter)

    def known(self, key: Key, status: Object) -> None:
        """A status that stands there, whoever wrote it: an operator that has just begun has written none."""
        self.statuses[key] = status

    def told(self, key: Key, thing: Object, before: Object, after: Object) -> None:
        """A status was written."""
        self.statuses[key], verdict = after, judge(document(thing))
        if isinstance(verdict, Accepted):  # else the last one is followed
            self.policies[key] = of_spec(verdict.model.spec)
        old, new = remember.read(before), remember.read(after)
        if new.at != old.at and new.decisions:
            self.verdicts[key, new.decisions[-1].verdict] += 1

    def forget(self, key: Key) -> None:
        """The job is gone."""
        self.statuses.pop(key, None)
        self.policies.pop(key, None)
        for known in [each for each in self.verdicts if each[0] == key]:
            del self.verdicts[known]

    def collect(self) -> Iterator[Metric]:
        now = {key: status.get("phase", "Pending") for key, status in list(self.statuses.items())}
        phases = Counter(now.values())
        found: dict[str, Samples] = {
            "streamjoin_operator_streamjoins": {(phase,): phases[phase] for phase in JOB},
            "streamjoin_job_phase": {(*key, phase): phase == now[key] for key in now for phase in JOB},
        }
        for key, status in list(self.statuses.items()):
            for name, labels, value in self._figures(key, status):
                found.setdefault(f"streamjoin_scaling_{name}", {})[*key, *labels] = value
        return families(found, "operator")

    def _figures(self, key: Key, status: Object) -> Iterable[tuple[str, Labels, float | None]]:
        state, policy = remember.read(status), self.policies.get(key)
        if state.at is None or policy is None:
            return
        yield "load", (), state.load
        for name in ("high", "low", "target"):
            yield "threshold", (name,), getattr(policy, name)
        for direction in DIRECTIONS:
            yield "votes", (direction,), state.votes if state.direction == direction else 0
        yield "votes_needed", (), policy.votes
        yield "executors", (), state.wanted
        for phase in SCALING:
            yield "phase", (phase,), phase == state.phase
        yield "blind", (), state.blind
        yield "last_decision_timestamp_seconds", (), state.at
        for said in VERDICTS:  # all of them: a counter that begins at 1 has not grown, says Prometheus
            yield "verdicts_total", (said,), self.verdicts[key, said]
