"""How do values become what a scraper reads? Name, type, help and labels are the table's; only values are given.

Laws: a name that is not in the table, or values that do not fit its labels, are refused; a value that is not known (None, or
no finite number) leaves no sample.
"""

import math
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import Metric as Family
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from joinlib.metric.table import BY_NAME, METRICS, Metric, Source

Labels = tuple[str, ...]
Values = Mapping[str, Mapping[Labels, float | None]]


def families(values: Values, source: Source = "driver") -> Iterator[Family]:
    """Every figure of a source but histograms, with its samples; those without any are left out."""
    for name in values:
        if name not in BY_NAME or BY_NAME[name].source != source:
            msg = f"{name} is no figure of the {source}: add it to joinlib/metric/table.py"
            raise KeyError(msg)
    for metric in METRICS:
        if metric.source != source or metric.kind == "histogram":
            continue
        samples = [*_known(metric, values.get(metric.name, {}).items())]
        if samples:
            family = _family(metric)
            for labels, value in samples:
                family.add_metric(list(labels), value)
            yield family


def _known(metric: Metric, samples: Iterable[tuple[Labels, float | None]]) -> Iterator[tuple[Labels, float]]:
    for labels, value in samples:
        if len(labels) != len(metric.labels):
            msg = f"{metric.name}{labels}: its labels are {metric.labels}"
            raise KeyError(msg)
        if value is not None and math.isfinite(value):
            yield labels, value


def _family(metric: Metric) -> CounterMetricFamily | GaugeMetricFamily:
    if metric.kind == "counter":
        return CounterMetricFamily(metric.name.removesuffix("_total"), metric.help, labels=metric.labels)
    return GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
