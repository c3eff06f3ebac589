"""What do a job's executors hold? Samples of one scrape of its driver in, their loads out, or why they are not known. Pure.

The samples come from Prometheus or from the driver itself; they are the same figures. Those of a series that has ended, or of a
driver that was replaced, belong to an older scrape and do not count.
"""

import json
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from joinlib.metric.table import BY_NAME
from joinlib.scale import Load
from joinop.names import Key

_THERE = BY_NAME["streamjoin_executors"].name
_HELD = BY_NAME["streamjoin_executor_state_bytes"].name
_CAPACITY = BY_NAME["streamjoin_executor_capacity_bytes"].name
_LAG = BY_NAME["streamjoin_lag_rows"].name
_RATE = BY_NAME["streamjoin_input_rate"].name
_PARTITIONS = BY_NAME["streamjoin_partitions"].name
NEEDED = (_THERE, _HELD, _CAPACITY, _LAG, _RATE, _PARTITIONS)
_LABEL = {name: next(iter(BY_NAME[name].labels), None) for name in NEEDED}  # none has two


class Sample(NamedTuple):
    """One figure at one moment."""

    name: str
    label: str  # the value of its only label, if it has one
    value: float
    at: float = 0.0  # seconds since 1970
    scraped: frozenset[tuple[str, str]] = frozenset()  # labels of the target that it was scraped from


def query(job: Key, seconds: float) -> str:
    """PromQL: the raw samples of the last seconds, with the times at which they were scraped."""
    names = "|".join(NEEDED)
    chosen = f"namespace={json.dumps(job.namespace)},streamjoin={json.dumps(job.name)}"
    return f'{{__name__=~"{names}",{chosen}}}[{max(1, round(seconds * 1000))}ms]'


def of_prometheus(answer: Mapping[str, Any]) -> list[Sample]:
    """The samples of an answer to `query`. ValueError if it is none."""
    data = answer.get("data")
    if answer.get("status") != "success" or not isinstance(data, dict) or data.get("resultType") != "matrix":
        raise ValueError(str(answer.get("error") or "it is no answer to a query"))
    try:
        return [_last(series["metric"], series["values"]) for series in data["result"]]
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError("it is no matrix of samples") from error


def _last(labels: dict[str, str], values: list[tuple[float, str]]) -> Sample:
    """The newest sample of a series: they are in order of time."""
    name, (at, value) = labels.pop("__name__"), values[-1]
    own = _LABEL.get(name)
    label = labels.pop(own, "") if own else ""
    return Sample(name, label, float(value), float(at), frozenset(labels.items()))


def of_text(exposition: str) -> list[Sample]:
    """The samples of a driver's /metrics: all of now. ValueError if it cannot be read."""
    families = text_string_to_metric_families(exposition)
    return [
        Sample(s.name, next(iter(s.labels.values()), ""), s.value)
        for family in families
        for s in family.samples
        if s.name in NEEDED
    ]


def load(samples: Iterable[Sample]) -> Load | str:
    """The loads of all executors, or why they are not known."""
    newest = _newest(list(samples))
    ready = newest.get(_THERE, {}).get("ready")
    if ready is None or not isfinite(ready):
        return "the driver's figures are not there"
    if ready < 1:
        return "no executor works yet"
    held, capacity = newest.get(_HELD, {}), newest.get(_CAPACITY, {})
    known = [e for e in held if _is_number(held[e]) and _is_number(capacity.get(e)) and capacity[e] > 0]
    if len(known) != ready or len(held) != ready:
        return f"{len(known)} of {ready:.0f} executors have said what they hold"
    lag, rate, partitions = newest.get(_LAG, {}), newest.get(_RATE, {}), newest.get(_PARTITIONS, {}).get("")
    return Load(
        held=tuple(held[e] for e in known),
        capacity=tuple(capacity[e] for e in known),
        lag=_sum(lag) if rate.keys() <= lag.keys() else None,
        rate=_sum(rate),
        partitions=int(partitions) if _is_number(partitions) and partitions else None,
    )


def scraped_at(samples: Iterable[Sample]) -> float | None:
    """When the newest of them were scraped."""
    return max((s.at for s in samples), default=None)


def _newest(samples: list[Sample]) -> dict[str, dict[str, float]]:
    """Figures of the newest scrape: name -> label -> value."""
    there = [sample for sample in samples if sample.name == _THERE]
    if not there:
        return {}
    last = max(there, key=lambda sample: (sample.at, sorted(sample.scraped)))
    found: dict[str, dict[str, float]] = {}
    for sample in samples:
        if sample.at == last.at and sample.scraped == last.scraped:
            found.setdefault(sample.name, {})[sample.label] = sample.value
    return found


def _is_number(value: float | None) -> bool:
    return value is not None and isfinite(value) and value >= 0


def _sum(figures: Mapping[str, float]) -> float | None:
    values = figures.values()
    return sum(values) if figures and all(map(_is_number, values)) else None
