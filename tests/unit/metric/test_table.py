"""The table of figures: one name for one thing, said in Prometheus' manner."""

import re
from typing import get_args

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import Collector

from joinlib.metric.export import families
from joinlib.metric.table import BY_NAME, JOB, LABELS, METRICS, SERIES, Metric
from joinlib.spec.status import Phase


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
def test_names_follow_the_rules_of_prometheus(metric: Metric) -> None:
    """Counters end in _total and only they; units are the last word of a name; every label is explained."""
    assert re.fullmatch(r"streamjoin_[a-z_]+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    if metric.unit in ("bytes", "seconds", "rows"):
        assert metric.unit in metric.name.split("_"), "the unit is in the name"
    assert set(metric.labels) <= LABELS.keys()
    assert metric.help.endswith(".")
    of_jobs = metric.source == "operator" and not metric.name.startswith("streamjoin_operator_")
    assert ("namespace" in metric.labels) == of_jobs
    assert get_args(Phase) == JOB


def test_names_are_unique_and_labels_used() -> None:
    """Also with the suffixes of histograms."""
    assert len(BY_NAME) == len(METRICS)
    assert len(SERIES) == sum(len(m.series) for m in METRICS)
    assert set(LABELS) == {label for m in METRICS for label in m.labels}


def exposed(values: dict[str, dict[tuple[str, ...], float | None]]) -> list[str]:
    """The samples as a scraper reads them."""

    class Now(Collector):
        def collect(self):
            return families(values)

    registry = CollectorRegistry()
    registry.register(Now())
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_what_is_not_known_is_absent() -> None:
    """None and NaN leave no sample; zero is a value."""
    found = exposed(
        {
            "streamjoin_lag_rows": {("a",): None, ("b",): float("nan"), ("c",): 0},
            "streamjoin_batches_total": {(): 3},
        }
    )
    assert found == ["streamjoin_batches_total 3.0", 'streamjoin_lag_rows{input="c"} 0.0']


def test_what_the_table_does_not_know_is_refused() -> None:
    """A name, a label too many, and what another program exports."""
    for values in (
        {"streamjoin_cache_hits_total": {(): 1.0}},
        {"streamjoin_batches_total": {("orders",): 1.0}},
        {"streamjoin_scaling_load": {("ns", "job"): 1.0}},
    ):
        with pytest.raises(KeyError):
            list(families(values))
