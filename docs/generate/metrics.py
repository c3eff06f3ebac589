"""docs/reference/metrics.md: every metric that is exported, from the table in joinlib.metric."""

from collections.abc import Iterator

from docs.generate.markdown import code, page, table
from joinlib.metric.table import LABELS, METRICS, Source

_HEAD = """\
# Metrics reference

<!-- Made by docs/build from joinlib/metric/table.py; edit the table, not this page. -->

The driver of each job and the operator serve these metrics to Prometheus. Figures reach the driver with the
tasks of each batch, so a scrape costs the query nothing. A value that is not known is absent, never zero.
Counters (`_total`) start at zero with each driver. The labels `namespace` and `streamjoin` say which job a
series belongs to: the PodMonitor of a job adds them to what its driver exports; without one, add them where you
scrape."""
_PARTS: tuple[tuple[Source, str], ...] = (
    ("driver", "Of a job: its driver's `/metrics`, port `http`"),
    ("operator", "Of jobs and their scaling: the operator's `/metrics`"),
    ("process", "Of the operator itself: its `/metrics`"),
)


def made() -> str:
    """The page."""
    return page(line for part in (_HEAD, *_metrics(), *_labels()) for line in part.split("\n"))


def _metrics() -> Iterator[str]:
    for source, title in _PARTS:
        yield f"\n## {title}"
        rows = [
            (code(m.name), m.kind, m.unit, ", ".join(map(code, m.labels)), m.help)
            for m in METRICS
            if m.source == source
        ]
        yield from table(("Name", "Type", "Unit", "Labels", "Meaning"), rows)


def _labels() -> Iterator[str]:
    yield "\n## Labels"
    yield from table(("Label", "Values"), [(code(name), text) for name, text in LABELS.items()])
