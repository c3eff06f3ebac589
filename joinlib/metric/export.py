"""Turns values into what a scraper reads.

Name, type, help and labels come from the table; callers give only values.

Laws: a name that is not in the table, or values that do not fit its labels, are rejected; a value that is
unknown (None, or not a finite number) yields no sample.
"""

import math
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import Metric as Family
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from joinlib.metric.table import BY_NAME, METRICS, Metric, Source

Labels = tuple[str, ...]
Values = Mapping[str, Mapping[Labels, float | None]]


def families(values: Values, source: Source = "driver") -> Iterator[Family]:
    """Yield every metric of a source except histograms, with its samples;
    metrics without samples are left out.

    Raises:
        KeyError: if a name is not a metric of the source, or labels do not fit.
    """
    for name in values:
        if name not in BY_NAME or BY_NAME[name].source != source:
            msg = f"{name} is not a metric of the {source}: add it to joinlib/metric/table.py"
            raise KeyError(msg)
    for metric in METRICS:
        if metric.source != source or metric.kind == "histogram":
            continue
        samples = [*_finite(metric, values.get(metric.name, {}).items())]
        if samples:
            family = _family(metric)
            for labels, value in samples:
                family.add_metric(list(labels), value)
            yield family


def _finite(metric: Metric, samples: Iterable[tuple[Labels, float | None]]) -> Iterator[tuple[Labels, float]]:
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
