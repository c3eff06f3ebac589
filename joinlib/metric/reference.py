"""The reference of all figures, made of the table. `python -m joinlib.metric.reference` prints it."""

from collections.abc import Iterator

from joinlib.metric.table import LABELS, METRICS, Source

_HEAD = """\
# Figures for Prometheus

Made by `manifests/build` of `joinlib/metric/table.py`.

Figures reach the driver with the tasks of each batch; a scrape looks at what is there and touches no query. What is not known
is absent, never zero. Sums (`_total`) begin anew with each driver. The labels `namespace` and `streamjoin` say which job a
series belongs to: the PodMonitor of a job adds them to what its driver says; without one, add them where you scrape."""
_PARTS: tuple[tuple[Source, str], ...] = (
    ("driver", "Of each job: port `http` of its driver, `/metrics`"),
    ("operator", "Of scaling: the operator's `/metrics`"),
)


def reference() -> str:
    """Markdown."""
    return "\n".join([_HEAD, *_tables(), *_labels()]) + "\n"


def _tables() -> Iterator[str]:
    for source, title in _PARTS:
        yield f"\n## {title}\n"
        yield "| Name | Type | Unit | Labels | What |"
        yield "|---|---|---|---|---|"
        for metric in METRICS:
            if metric.source == source:
                labels = ", ".join(f"`{label}`" for label in metric.labels)
                yield f"| `{metric.name}` | {metric.kind} | {metric.unit} | {labels} | {metric.help} |"


def _labels() -> Iterator[str]:
    yield "\n## Labels\n"
    yield "| Label | Values |"
    yield "|---|---|"
    for name, text in LABELS.items():
        yield f"| `{name}` | {text} |"


if __name__ == "__main__":
    print(reference(), end="")
