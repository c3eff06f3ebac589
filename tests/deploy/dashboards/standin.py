"""What a run on this machine has not: executors, a job that it was forked from, pods and the operator's decisions. The loop is closed: 2PS decides on a made-up load,
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
from joinop.metrics import OperatorMetrics
from joinop.names import JobKey
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
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


@dataclass(eq=False)
class Cluster(Collector):
    """A job's executors, and scaling that acts on them."""

    key: JobKey
    policy: Policy
    thing: dict[str, object]  # the StreamJoin
    metrics: OperatorMetrics = field(default_factory=OperatorMetrics)
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
        before = self.status()
        arrival, able = 2600 + 2400 * math.sin(2 * math.pi * now / WAVE_S), ABLE * self.ready
        self.waiting = max(0.0, self.waiting + (arrival - able) * self.policy.period_s)
        rate = able if self.waiting else arrival
        load = Load(self.ready, sum(self.held(now)), self.ready * CAPACITY, self.waiting, rate, arrival, rate)
        self.state = step(self.state, self.policy, Observed(self.ready, 0, load), now)
        self._tell(before)
        wanted = self.state.wanted or self.ready
        self.ready = min(self.ready, wanted)
        self.coming += [now + STARTUP_S] * (wanted - self.ready - len(self.coming))

    def status(self) -> dict[str, object]:
        """As far as figures are made of it."""
        return {"phase": "Running", "scaling": persist.to_status(self.state)}

    def _tell(self, before: dict[str, object]) -> None:
        """As an operator does that has looked at the job once."""
        told = self.metrics
        with told.seconds.time():
            told.scaling.status_written(self.key, self.thing, before, self.status())
        told.reconciles.labels("done").inc()
        told.writes.labels("StatefulSet", "apply").inc()
        told.errors.labels("409").inc()
        told.missed.labels("pods").inc()
        told.leader.set(1)
        told.depth.set(1)
        told.watch_age.labels("pods").set(2)
        told.resync_age.set(3)

    def collect(self) -> Iterator[Metric]:
        held = self.held(time.time())
        each = {(str(n + 1),): value for n, value in enumerate(held)}
        limit = dict.fromkeys(each, 1.5 * GIB)
        values = {
            "executors": {
                ("ready",): self.ready,
                ("wanted",): self.state.wanted,
                ("leaving",): 0,
                ("spare",): 1,
            },
            "executor_state_bytes": each,
            "executor_state_rows": {executor: value // 58 for executor, value in each.items()},
            "executor_capacity_bytes": dict.fromkeys(each, CAPACITY),
            "executor_memory_load": {executor: value / CAPACITY for executor, value in each.items()},
            "executor_units": {
                executor: 32 // self.ready + (n < 32 % self.ready) for n, executor in enumerate(each)
            },
            "executor_working_set_bytes": {e: 0.8 * GIB + value / 8 for e, value in each.items()},
            "executor_memory_limit_bytes": limit,
            "executor_heap_bytes": {e: GIB // 16 + value / 16 for e, value in each.items()},
            "executor_heap_limit_bytes": dict.fromkeys(each, GIB / 8),
            "executor_gc_seconds_total": dict.fromkeys(each, time.time() % 1e6 / 50),
            "forked_batch": {("views",): 12},
            "memory_load": {(): sum(held) / CAPACITY / self.ready},
        }
        yield from families({f"streamjoin_{name}": samples for name, samples in values.items()})


@dataclass(eq=False)
class Kubelet(Collector):
    """What kubelet and kube-state-metrics say of a job's pods and of its claim, by the labels that they give."""

    key: JobKey

    def collect(self) -> Iterator[Metric]:
        namespace, pods = self.key.namespace, [f"{self.key.name}-driver-0", f"{self.key.name}-exec-a-exec-1"]
        for counts, name, value in (
            (True, "container_cpu_usage_seconds", time.time() % 1e6),
            (True, "container_cpu_cfs_throttled_seconds", time.time() % 1e6 / 20),
            (False, "container_memory_working_set_bytes", GIB),
            (True, "kube_pod_container_status_restarts", 1),
        ):
            kind = CounterMetricFamily if counts else GaugeMetricFamily
            family = kind(name, "As kubelet has it.", labels=["namespace", "pod", "container"])
            for pod in pods:
                family.add_metric([namespace, pod, "main"], value)
            yield family
        for name, value in (("used", 0.4 * GIB), ("capacity", GIB)):
            labels = ["namespace", "persistentvolumeclaim"]
            family = GaugeMetricFamily(
                f"kubelet_volume_stats_{name}_bytes", "As kubelet has it.", labels=labels
            )
            family.add_metric([namespace, self.key.name], value)
            yield family


@contextmanager
def serving(cluster: Cluster) -> Iterator[tuple[int, int, int]]:
    """Lets it live; the ports of its driver, of its operator and of its kubelet."""
    over = threading.Event()

    def live() -> None:
        while not over.wait(cluster.policy.period_s):
            cluster.period(time.time())

    cluster.period(time.time())
    servers = [
        _server(_holding(cluster)),
        _server(cluster.metrics.registry),
        _server(_holding(Kubelet(cluster.key))),
    ]
    threads = [threading.Thread(target=run) for run in (live, *(s.serve_forever for s in servers))]
    for thread in threads:
        thread.start()
    try:
        driver, operator, kubelet = (server.server_port for server in servers)
        yield driver, operator, kubelet
    finally:
        over.set()
        for server in servers:
            server.shutdown()
            server.server_close()
        for thread in threads:
            thread.join()


def _holding(collector: Collector) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(collector)
    return registry


def _server(registry: CollectorRegistry) -> ThreadingHTTPServer:
    return ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, registry=registry))


class _Quiet(MetricsHandler):
    def __init__(self, *arguments: object, registry: CollectorRegistry) -> None:
        self.registry = registry
        super().__init__(*arguments)
