"""What does the operator need, of a core, to decide for 1 000 jobs how many executors each should have?

PYTHONPATH=.:operator python bench/decide.py [--jobs 1000] [--executors 4] [--rounds 5]

One period of each job, as the operator takes it once the figures have come: figures' text, the load, what state and
lag want, the vote, the status; and the look after it, which acts on what the status holds. Each job has the vote
before behind it, so all change the number of their executors: half of them for their state and half for their lag.
Prometheus adds up: its answer is as long for one executor as for a thousand. Without one the driver's own
/metrics are read. The last line is a part of the decision: the pure function that computes wants and votes.
"""

import argparse
import dataclasses
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

import orjson
from joinop import load_metrics, memoize
from joinop.config import Config
from joinop.decide import ObservedState, decide, view_of
from joinop.names import Object
from joinop.status import is_due, scaling_input

from joinlib.scale import Load
from tests.deploy.operator.objects import driver_pod, executor_pod, running, settle, stream_join

BEGAN, PERIOD_S, CONFIG = 1_760_000_000.0, 60.0, Config(image="streamjoin:1")
BEGAN_AT = datetime.fromtimestamp(BEGAN, UTC).isoformat()
CAPACITY, ABLE = 2e9, 250.0  # of an executor: bytes, and rows per second
PARTS = (
    "Prometheus' answer",
    "or: the driver's answer",
    "decision and status",
    "the look after it",
    "wants and vote alone",
)
EACH = (
    "state_bytes",
    "capacity_bytes",
    "state_rows",
    "units",
    "memory_load",
    "working_set_bytes",
    "memory_limit_bytes",
)


@dataclass(frozen=True)
class Figures:
    """Figures of one job, as they are read."""

    executors: int
    held: float  # bytes, of each executor
    lag: int
    arrival: float

    @property
    def true_rate(self) -> float:
        return self.executors * ABLE

    def answered(self) -> bytes:
        """As Prometheus says it."""
        k = self.executors
        sums = {"at": BEGAN, "ready": k, "reported": k, "known": k}
        sums |= {"held": k * self.held, "capacity": k * CAPACITY}
        sums |= {"lag": self.lag, "rate": self.true_rate, "arrival": self.arrival, "true": self.true_rate}
        target = {
            "instance": "10.0.0.1:8080",
            "job": "drivers",
            "namespace": "shop",
            "streamjoin": "orders",
        }
        found = [
            {"metric": {**target, "figure": name}, "value": [BEGAN, str(value)]}
            for name, value in sums.items()
        ]
        return orjson.dumps({"status": "success", "data": {"resultType": "vector", "result": found}})

    def exposed(self) -> bytes:
        """As the driver says it, with all that it says of executors."""
        each = dict.fromkeys(EACH, self.held) | {"capacity_bytes": CAPACITY}
        lines = [
            f'streamjoin_executor_{name}{{executor="{executor}"}} {value}'
            for name, value in each.items()
            for executor in range(self.executors)
        ]
        lines += [f'streamjoin_executors{{state="ready"}} {self.executors}', "streamjoin_partitions 1024"]
        lines += [
            f'streamjoin_{name}{{input="orders"}} {value}'
            for name, value in (
                ("lag_rows", self.lag),
                ("input_rate", self.true_rate),
                ("arrival_rate", self.arrival),
            )
        ]
        return "\n".join([*lines, f"streamjoin_true_rate {self.true_rate}", ""]).encode()


@dataclass(frozen=True)
class Job:
    """A job before the period in which its executors change."""

    observed: ObservedState
    answer: bytes  # of Prometheus
    text: bytes  # of the driver


def job(number: int, executors: int) -> Job:
    """A job that runs and has voted once: for its lag if its number is odd, else for its state."""
    given = stream_join(
        f"job-{number}",
        checkpoint__path=f"/data/checkpoints/{number}",
        join__units=1 << (4 * executors - 1).bit_length(),
        executors__max=4 * executors,
        executors__min=executors,
        scaling__period=f"{PERIOD_S:.0f}s",
        scaling__votes=2,
    )
    name, able = given["metadata"]["name"], executors * ABLE
    pods = (driver_pod(given), *(executor_pod(n, name=name) for n in range(executors)))
    report = running(
        executors={"ready": executors, "wanted": executors, "leaving": 0, "spare": 0, "partitions": 1024}
    )
    observed = ObservedState(given, {}, pods, {"shared": True}, scrape=report, now=BEGAN, at=BEGAN_AT)
    observed, _ = settle(observed, CONFIG)  # its objects are written
    if number % 2:
        figures = Figures(executors, 0.5 * CAPACITY, lag=int(720 * able), arrival=3 * able)
    else:
        figures = Figures(executors, 0.95 * CAPACITY, lag=int(70 * able), arrival=0.5 * able)
    made = Job(observed, figures.answered(), figures.exposed())
    voted, _ = settle(decided_on(made, load_metrics.from_text(made.text.decode())), CONFIG)
    return dataclasses.replace(made, observed=dataclasses.replace(voted, now=BEGAN + PERIOD_S))


def decided_on(given: Job, figures: load_metrics.Figures) -> ObservedState:
    """What the operator decides on, at the end of a period."""
    view = view_of(given.observed, CONFIG)
    assert is_due(view)
    return dataclasses.replace(given.observed, scaling_input=scaling_input(view, load_metrics.load(figures)))


def period(given: Job) -> tuple[list[float], str]:
    """Take one period of a job: return seconds of each part, and which want won."""
    times = [time.thread_time()]
    summed = load_metrics.from_prometheus(orjson.loads(given.answer))
    times.append(time.thread_time())
    own = load_metrics.from_text(given.text.decode())
    times.append(time.thread_time())
    observed = decided_on(given, summed)
    decided = decide(observed, CONFIG)
    times.append(time.thread_time())
    published = {**observed.stream_join, "status": decided.status}
    acted = decide(
        dataclasses.replace(observed, stream_join=published, scaling_input=None, now=observed.now + 1), CONFIG
    )
    times.append(time.thread_time())
    view = view_of(observed, CONFIG)
    began = time.thread_time()
    assert view.scaling_after.wants is not None
    alone = time.thread_time() - began
    check(load_metrics.load(own), load_metrics.load(summed), decided.status["scaling"])
    assert acted.executors is not None
    assert acted.executors.total == decided.status["scaling"]["wanted"]
    return [*(b - a for a, b in pairwise(times)), alone], decided.status["scaling"]["wants"]["by"]


def check(own: Load | str, summed: Load | str, scaling: Object) -> None:
    """Both texts say the same, and both wants were computed."""
    assert own == summed, (own, summed)
    assert {"state", "lag"} <= scaling["wants"].keys(), scaling
    assert scaling["decisions"][-1]["verdict"] == "ScaleOut", scaling["decisions"]


def measured(jobs: Sequence[Job], rounds: int) -> tuple[list[float], Counter[str]]:
    """Return the median of rounds: seconds of each part for all jobs; and by which want they were decided."""
    found, by = [], Counter[str]()
    for _ in range(rounds):
        took, by = [0.0] * len(PARTS), Counter()
        for given in jobs:
            parts, won = period(given)
            took = [a + b for a, b in zip(took, parts, strict=True)]
            by[won] += 1
        found.append(took)
    return [statistics.median(column) for column in zip(*found, strict=True)], by


def main() -> None:
    parser = argparse.ArgumentParser(description="What do decisions of scaling cost the operator?")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--executors", type=int, default=4, help="of each job")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    memoize.resize(given.jobs)
    jobs = [job(number, given.executors) for number in range(given.jobs)]
    seconds, by = measured(jobs, given.rounds)
    print(
        f"{given.jobs} job{'s'[: given.jobs != 1]} of {given.executors} executors: {by['state']} by state, {by['lag']} by lag"
    )
    for name, took in zip(PARTS, seconds, strict=True):
        print(f"{name:24} {1000 * took:8.1f} ms of CPU, {1000 * took / given.jobs:7.3f} a job")
    print(
        f"{len(jobs[0].answer) / 1e3:.1f} kB from Prometheus, {len(jobs[0].text) / 1e3:.1f} kB from the driver"
    )


if __name__ == "__main__":
    main()
