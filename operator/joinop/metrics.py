"""Prometheus metrics of the operator itself, by the names of joinlib.metric's table; of single jobs only what scaling does."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from joinlib.metric.table import BY_NAME
from joinop.scaling_metrics import ScalingMetrics

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class OperatorMetrics:
    """All metrics."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        seconds = BY_NAME["streamjoin_operator_reconcile_seconds"]
        self.seconds = Histogram(seconds.name, seconds.help, buckets=SECONDS, registry=self.registry)
        self.reconciles = self._counter("reconciles_total")
        self.writes = self._counter("writes_total")
        self.errors = self._counter("api_errors_total")
        self.missed = self._counter("missed_events_total")
        self.leader = self._gauge("leader")
        self.depth = self._gauge("queue_depth")
        self.watch_age = self._gauge("watch_age_seconds")
        self.resync_age = self._gauge("resync_age_seconds")
        self.scaling = ScalingMetrics()
        self.registry.register(self.scaling)

    def _counter(self, name: str) -> Counter:
        metric = BY_NAME[f"streamjoin_operator_{name}"]
        return Counter(metric.name, metric.help, metric.labels, registry=self.registry)

    def _gauge(self, name: str) -> Gauge:
        metric = BY_NAME[f"streamjoin_operator_{name}"]
        return Gauge(metric.name, metric.help, metric.labels, registry=self.registry)
