"""What a run on this machine has not: executors and the operator's decisions. The loop is closed: 2PS decides on a made-up load,
executors come a little later, and the operator's own exporter tells of it.
"""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import ThreadingHTTPServer

from joinop import persist
from joinop.names import JobKey
from joinop.scaling_metrics import ScalingMetrics
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import MetricsHandler
from prometheus_client.registry import Collector

from joinlib.metric.export import families
from joinlib.scale import Observed, State, step
from joinlib.scale.load import Load
from joinlib.scale.policy import Policy

GIB = 2**30
CAPACITY = GIB // 2
STARTUP_S = 4
WAVE_S = 30  # from little to much, and back
ABLE = 800  # rows that an executor reads in a second
SERIES = (  # of a driver on a cluster
    "streamjoin_executors",
    "streamjoin_executor_state_bytes",
    "streamjoin_executor_state_rows",
    "streamjoin_executor_capacity_bytes",
    "streamjoin_executor_memory_load",
    "streamjoin_executor_units",
    "streamjoin_executor_working_set_bytes",
    "streamjoin_executor_memory_limit_bytes",
    "streamjoin_memory_load",
)


@dataclass(eq=False)
class Cluster(Collector):
    """A job's executors, and scaling that acts on them."""

    key: JobKey
    policy: Policy
    thing: dict[str, object]  # the StreamJoin
    scalings: ScalingMetrics = field(default_factory=ScalingMetrics)
    state: State = field(default_factory=lambda: State(wanted=2))
    ready: int = 2
    coming: list[float] = field(default_factory=list)
    waiting: float = 0.0  # rows

    def held(self, now: float) -> tuple[float, ...]:
        """Bytes of state of each executor."""
        total = GIB * (0.85 - 0.6 * math.cos(2 * math.pi * now / WAVE_S))
        parts = [1 + 0.08 * math.sin(3 * n) for n in range(self.ready)]
        return tuple(min(total * part / sum(parts), CAPACITY) for part in parts)

    def period(self, now: float) -> None:
        """Executors come and go, then 2PS looks at them."""
        self.ready += sum(at <= now for at in self.coming)
        self.coming = [at for at in self.coming if at > now]
        before = {"scaling": persist.to_status(self.state)}
        arrival, able = 2600 + 2400 * math.sin(2 * math.pi * now / WAVE_S), ABLE * self.ready
        self.waiting = max(0.0, self.waiting + (arrival - able) * self.policy.period_s)
        rate = able if self.waiting else arrival
        load = Load(self.ready, sum(self.held(now)), self.ready * CAPACITY, self.waiting, rate, arrival, rate)
        self.state = step(self.state, self.policy, Observed(self.ready, 0, load), now)
        self.scalings.status_written(self.key, self.thing, before, {"scaling": persist.to_status(self.state)})
        wanted = self.state.wanted or self.ready
        self.ready = min(self.ready, wanted)
        self.coming += [now + STARTUP_S] * (wanted - self.ready - len(self.coming))

    def collect(self) -> Iterator[Metric]:
        held = self.held(time.time())
        each = {(str(n + 1),): value for n, value in enumerate(held)}
        limit = dict.fromkeys(each, 1.5 * GIB)
        values = {
            "executors": {("ready",): self.ready, ("wanted",): self.state.wanted, ("leaving",): 0},
            "executor_state_bytes": each,
            "executor_state_rows": {executor: value // 58 for executor, value in each.items()},
            "executor_capacity_bytes": dict.fromkeys(each, CAPACITY),
            "executor_memory_load": {executor: value / CAPACITY for executor, value in each.items()},
            "executor_units": {
                executor: 32 // self.ready + (n < 32 % self.ready) for n, executor in enumerate(each)
            },
            "executor_working_set_bytes": {e: 0.8 * GIB + value / 8 for e, value in each.items()},
            "executor_memory_limit_bytes": limit,
            "memory_load": {(): sum(held) / CAPACITY / self.ready},
        }
        yield from families({f"streamjoin_{name}": samples for name, samples in values.items()})


@contextmanager
def serving(cluster: Cluster) -> Iterator[tuple[int, int]]:
    """Lets it live; the ports of its driver and of its operator."""
    over = threading.Event()

    def live() -> None:
        while not over.wait(cluster.policy.period_s):
            cluster.period(time.time())

    cluster.period(time.time())
    servers = [_server(cluster), _server(cluster.scalings)]
    threads = [threading.Thread(target=run) for run in (live, *(s.serve_forever for s in servers))]
    for thread in threads:
        thread.start()
    try:
        yield servers[0].server_port, servers[1].server_port
    finally:
        over.set()
        for server in servers:
            server.shutdown()
            server.server_close()
        for thread in threads:
            thread.join()


def _server(collector: Collector) -> ThreadingHTTPServer:
    registry = CollectorRegistry()
    registry.register(collector)
    return ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, registry=registry))


class _Quiet(MetricsHandler):
    def __init__(self, *arguments: object, registry: CollectorRegistry) -> None:
        self.registry = registry
        super().__init__(*arguments)
