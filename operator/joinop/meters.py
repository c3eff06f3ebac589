"""How is the operator itself? Its figures for Prometheus; of single jobs only what scaling does."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from joinop.scalings import Scalings

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Meters:
    """All figures."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.reconciles = self._counter("reconciles", "Looks at a StreamJoin, by how they ended.", "result")
        self.seconds = Histogram(
            "streamjoin_operator_reconcile_seconds",
            "Time of a look at a StreamJoin.",
            buckets=SECONDS,
            registry=self.registry,
        )
        self.writes = self._counter("writes", "Objects written, by kind and verb.", "kind", "verb")
        self.errors = self._counter("api_errors", "Requests that the API server refused, by code.", "code")
        self.missed = self._counter(
            "missed_events", "Changes that a listing found and no watch had told.", "kind"
        )
        self.leader = self._gauge("leader", "1 of the operator that acts, 0 of one that waits.")
        self.depth = self._gauge("queue_depth", "StreamJoins that wait for a look.")
        self.watch_age = self._gauge("watch_age_seconds", "Time since the last event, by kind.", "kind")
        self.resync_age = self._gauge("resync_age_seconds", "Time since everything was listed.")
        self.scaling = Scalings()
        self.registry.register(self.scaling)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"streamjoin_operator_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"streamjoin_operator_{name}", text, labels, registry=self.registry)
