"""What /v1/page says: the plan, the status, figures by input and by unit; of the spec only its plan.

Rows are in it only where the spec has `page.rows`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jobs.exported import values
from jobs.page.notes import NotedEvent
from jobs.view import Moment, status
from joinlib.metric.export import Labels
from joinlib.model.stage import Pipeline
from joinlib.plan.explain.drawing import drawing
from joinlib.plan.explain.words import spoken

_INPUT = {  # what the page calls a figure of an input
    "rate": "input_rate",
    "rows": "rows_in_total",
    "lag": "lag_rows",
    "late": "late_rows_total",
    "bad": "bad_messages_total",
    "newest": "event_time_seconds",
    "ahead": "watermark_delay_seconds",
    "skew": "input_skew",
}
_UNIT = {
    "stateRows": "unit_state_rows",
    "stateBytes": "unit_state_bytes",
    "rowsIn": "unit_rows_in_total",
    "rowsOut": "unit_rows_out_total",
    "seconds": "unit_seconds_total",
}


@dataclass(frozen=True)
class Subject:
    """What a page is about, and does not change while it runs."""

    job: str
    plan: str
    units: int


def subject(job: str, pipeline: Pipeline) -> Subject:
    """Return what the page of a job is about."""
    return Subject(job, drawing(spoken(pipeline)), pipeline.units)


def answer(about: Subject, moment: Moment, notes: Sequence[NotedEvent], now: float) -> dict[str, Any]:
    """Return the page's figures. `now` is in seconds of the figures' clock."""
    figures = values(moment, about.units, now)
    names = dict.fromkeys(moment.sources)
    units = sorted(int(unit) for (unit,) in figures.get("streamjoin_unit_state_rows", {}))
    return {
        "job": about.job,
        "plan": about.plan,
        "status": status(moment, about.units, now),
        "inputs": {name: _of(figures, _INPUT, name) for name in names},
        "units": [{"unit": unit, **_of(figures, _UNIT, str(unit))} for unit in units],
        "last": [{"output": name, **asdict(rows)} for name, rows in moment.last.items()],
        "notes": [asdict(note) for note in notes],
    }


def _of(
    figures: Mapping[str, Mapping[Labels, float | None]], names: Mapping[str, str], label: str
) -> dict[str, float | None]:
    return {short: figures.get(f"streamjoin_{name}", {}).get((label,)) for short, name in names.items()}
