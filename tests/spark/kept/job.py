"""A job that keeps a bit of everything: two stages, an outer join with marks, sorted runs in the midst of merges, groups, logs of files.

Its rows come in files that are numbered from `first` on; event time goes on where it was, and no row is late.
"""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from joinlib.model.tuning import Tuning
from tests.spark.faults.scenario import SEALING, TUNING
from tests.spark.trial import Trial

SCHEMA = "k BIGINT, v BIGINT, s STRING, at TIMESTAMP"
STREAMS = ("orders", "payments", "refunds")
SQL = """SELECT date_trunc('minute', o.at) AS minute, o.s AS s, count(*) AS n, count(p.v) AS paid, sum(p.v) AS v, min(p.s) AS first
    FROM orders o LEFT JOIN payments p ON o.k = p.k AND p.at BETWEEN o.at - INTERVAL 4 MINUTES AND o.at + INTERVAL 6 MINUTES
    JOIN refunds r ON r.v = o.v AND r.at BETWEEN o.at - INTERVAL 3 MINUTES AND o.at + INTERVAL 3 MINUTES
    GROUP BY date_trunc('minute', o.at), o.s"""
TUNED = Tuning(**{**TUNING, **SEALING})  # type: ignore[arg-type]  # small heads, small pieces: much happens in few batches
FILES, ROWS = 8, 40
_START = datetime(2026, 1, 1, tzinfo=UTC)


def declare(trial: Trial) -> None:
    """The inputs, a file of each a batch."""
    for name in STREAMS:
        event_time = {"column": "at", "delay": "2m"}
        trial.input(name, SCHEMA, orderBy="name", maxFilesPerBatch=1, eventTime=event_time)


def feed(trial: Trial, first: int, files: int) -> None:
    """Files `first` to `first + files` of each input."""
    for name in STREAMS:
        for file in range(first, first + files):
            trial.write(name, f"{file:03d}", _rows(random.Random(f"{name} {file}"), file * ROWS))


def _rows(draw: random.Random, first: int) -> list[tuple[Any, ...]]:
    """Few keys, NULL among them; a row every five seconds, give or take half a minute."""
    return [
        (
            draw.choice([None, *range(11)]),
            at,
            draw.choice(["ape", "bee", None]),
            _START + timedelta(seconds=5 * at + draw.randrange(-30, 30)),
        )
        for at in range(first, first + ROWS)
    ]


def archives() -> list[Path]:
    """What earlier versions have kept, one file for each."""
    return sorted(Path(__file__).parent.glob("*.tar.xz"))


def archive(name: str) -> Path:
    """The one of this name."""
    return Path(__file__).parent / f"{name}.tar.xz"
