"""Prometheus metrics of the operator itself; of single jobs only what scaling does."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from joinop.scaling_metrics import ScalingMetrics

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class OperatorMetrics:
    """All metrics."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.reconciles = self._counter("reconciles", "Reconciliations, by result.", "result")
        self.seconds = Histogram(
            "streamjoin_operator_reconcile_seconds",
            "Duration of a reconciliation.",
            buckets=SECONDS,
            registry=self.registry,
        )
        self.writes = self._counter("writes", "Objects written, by kind and verb.", "kind", "verb")
        self.errors = self._counter("api_errors", "Requests that the API server refused, by code.", "code")
        self.missed = self._counter(
            "missed_events", "Changes that a list showed and no watch had delivered.", "kind"
        )
        self.leader = self._gauge("leader", "1 for the operator that leads, 0 for one that waits.")
        self.depth = self._gauge("queue_depth", "StreamJoins that wait to be reconciled.")
        self.watch_age = self._gauge("watch_age_seconds", "Time since the last event, by kind.", "kind")
        self.resync_age = self._gauge("resync_age_seconds", "Time since everything was listed.")
        self.scaling = ScalingMetrics()
        self.registry.register(self.scaling)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"streamjoin_operator_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"streamjoin_operator_{name}", text, labels, registry=self.registry)
