"""Reads the load of a job over time from CSV, as it can be exported from Prometheus.

seconds     when
bytes       sum(streamjoin_executor_state_bytes): state that all executors hold
arriving    sum(streamjoin_arrival_rate): rows that come per second; may be left out
waiting     sum(streamjoin_lag_rows): rows that wait at that moment; may be left out, or empty

The names in parentheses are those of the metrics, of one job.
"""

import csv
from collections.abc import Mapping
from pathlib import Path

from joinlib.errors import InputError
from joinlib.scale.simulate import Point, Trace

COLUMNS = "seconds,bytes,arriving,waiting"


def read(file: Path) -> Trace:
    """Read a trace.

    Raises:
        InputError: if the file is not a trace.
    """
    try:
        with file.open(newline="") as text:
            points = [_point(row) for row in csv.DictReader(text)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{file}: cannot be read ({error}); write CSV with the columns {COLUMNS}, of which the last two may be"
            " left out: one line for each change of the load"
        ) from error
    if not points or points != sorted(points, key=lambda p: p.seconds) or any(map(_negative, points)):
        raise InputError(f"{file}: needs at least one line, in order of seconds, and no load below 0")
    return points


def _point(row: Mapping[str, str | None]) -> Point:
    waiting = row.get("waiting") or None
    return Point(
        float(row["seconds"] or ""),
        float(row["bytes"] or ""),
        float(row.get("arriving") or 0),
        None if waiting is None else float(waiting),
    )


def _negative(point: Point) -> bool:
    return min(point.held, point.arriving, point.waiting or 0) < 0
