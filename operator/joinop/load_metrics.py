"""The load of a job's executors, from the metrics of one scrape of its driver. Pure.

    driver's /metrics ─► Prometheus adds up ─┐
                    └──► added up here ──────┴► a few sums and counts ─► load

Prometheus adds up only what was scraped together with the newest number of executors: series that have
ended, and those of a replaced driver, belong to an older scrape. The counts show whether the sums are
complete. An input that has fallen silent has no figures of a lag, or never had some: only an input that is read
must have them.
"""

import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

from joinlib.metric.table import BY_NAME
from joinlib.scale import Load
from joinop.names import JobKey

_THERE = BY_NAME["streamjoin_executors"].name
_HELD = BY_NAME["streamjoin_executor_state_bytes"].name
_CAPACITY = BY_NAME["streamjoin_executor_capacity_bytes"].name
_LAG = BY_NAME["streamjoin_lag_rows"].name
_RATE = BY_NAME["streamjoin_input_rate"].name
_ARRIVAL = BY_NAME["streamjoin_arrival_rate"].name
_TRUE = BY_NAME["streamjoin_true_rate"].name
NEEDED = (_THERE, _HELD, _CAPACITY, _LAG, _RATE, _ARRIVAL, _TRUE)

# DriverClient write no label twice and nothing that must be escaped; a general parser takes 20 times as long.
_PREFIX = "streamjoin_"
_LINE = re.compile(
    rf'\n({_PREFIX}(?:{"|".join(n.removeprefix(_PREFIX) for n in NEEDED)}))(?:{{\w+="([^"\\]*)"}})? (\S+)'
)

Figures = Mapping[str, float]  # of one driver, by the names in `query`


def query(job: JobKey) -> str:
    """Return an instant query: one sample for each figure and each target, of the target's newest scrape."""
    chosen = f"namespace={json.dumps(job.namespace)},streamjoin={json.dumps(job.name)}"
    existing = f'{_THERE}{{{chosen},state="ready"}}'

    def scraped(name: str) -> str:
        """The figures of the scrape that counted the executors last."""
        figure, own = f"{name}{{{chosen}}}", ",".join((*BY_NAME[name].labels, "state"))
        return f"({figure} and timestamp({figure}) == ignoring({own}) group_left timestamp({existing}))"

    held, capacity = scraped(_HELD), scraped(_CAPACITY)
    lag, rate, true = scraped(_LAG), scraped(_RATE), scraped(_TRUE)
    known = f"({held} >= 0 < Inf and {capacity} > 0 < Inf)"  # NaN is neither
    parts = {
        "at": f"sum without(state) (timestamp({existing}))",
        "ready": f"sum without(state) ({existing})",
        "reported": f"count without(executor) ({held})",
        "known": f"count without(executor) {known}",
        "held": f"sum without(executor) {known}",
        "capacity": f"sum without(executor) ({capacity} and {known})",
        "lag": f"sum without(input) ({lag})",
        "rate": f"sum without(input) ({rate})",
        "arrival": f"sum without(input) ({scraped(_ARRIVAL)})",
        "true": f"sum without(input) ({true})",
        "unknown": f"count without(input) (({rate} > 0) unless {lag} >= 0)",
    }
    return " or ".join(f'label_replace({part}, "figure", "{name}", "", "")' for name, part in parts.items())


def from_prometheus(answer: Mapping[str, Any]) -> Figures:
    """Return the figures of the target that was scraped last.

    Args:
        answer: of Prometheus to `query`.

    Raises:
        ValueError: it is not an answer to a query.
    """
    data = answer.get("data")
    if answer.get("status") != "success" or not isinstance(data, dict) or data.get("resultType") != "vector":
        raise ValueError(str(answer.get("error") or "it is not an answer to a query"))
    targets: dict[frozenset[tuple[str, str]], dict[str, float]] = {}
    try:
        for series in data["result"]:
            labels = {k: v for k, v in series["metric"].items() if k != "__name__"}
            name = labels.pop("figure")
            targets.setdefault(frozenset(labels.items()), {})[name] = float(series["value"][1])
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError("it is not a vector of samples") from error
    order = sorted(targets.items(), key=lambda target: (target[1].get("at", 0.0), sorted(target[0])))
    return order[-1][1] if order else {}


def from_text(exposition: str) -> Figures:
    """Return the same figures from the text of a driver's /metrics. Takes 2 µs for each executor.

    Raises:
        ValueError: it cannot be read.
    """
    by_name: dict[str, dict[str, float]] = {name: {} for name in NEEDED}
    for name, label, value in _LINE.findall("\n" + exposition):
        by_name[name][label] = float(value)
    held, capacity, lag, rate = (by_name[name] for name in (_HELD, _CAPACITY, _LAG, _RATE))
    known = [e for e in held if _is_number(held[e]) and _is_number(capacity.get(e)) and capacity[e] > 0]
    found = {
        "ready": by_name[_THERE].get("ready"),
        "reported": len(held),
        "known": len(known),
        "held": sum(held[e] for e in known),
        "capacity": sum(capacity[e] for e in known),
        "lag": sum(lag.values()) if lag else None,
        "rate": sum(rate.values()) if rate else None,
        "arrival": sum(by_name[_ARRIVAL].values()) if by_name[_ARRIVAL] else None,
        "true": by_name[_TRUE].get(""),
        "unknown": sum(value > 0 and not _is_number(lag.get(name)) for name, value in rate.items()),
    }
    return {name: value for name, value in found.items() if value is not None}


def load(figures: Figures) -> Load | str:
    """Return the load of all executors, or why it is unknown."""
    ready, known, reported = (figures.get(name) for name in ("ready", "known", "reported"))
    if ready is None or not isfinite(ready):
        return "the driver's metrics are missing"
    if ready < 1:
        return "no executor works yet"
    if known != ready or reported != ready:
        return f"{known or 0:.0f} of {ready:.0f} executors have reported their state"
    rate = _number(figures.get("rate"))
    return Load(
        executors=int(ready),
        held=figures["held"],
        capacity=figures["capacity"],
        lag=None if figures.get("unknown") or rate is None else _number(figures.get("lag", 0.0)),
        rate=rate,
        arrival=_number(figures.get("arrival")),
        true_rate=_number(figures.get("true")),
    )


def _number(value: float | None) -> float | None:
    return value if _is_number(value) else None


def _is_number(value: float | None) -> bool:
    return value is not None and isfinite(value) and value >= 0
