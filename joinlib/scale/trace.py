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
_NEEDED = ("seconds", "bytes")


def read(file: Path) -> Trace:
    """Read a trace.

    Raises:
        InputError: if the file is not a trace.
    """
    try:
        with file.open(newline="", encoding="utf-8") as text:
            reader = csv.DictReader(text)
            if missing := [name for name in _NEEDED if name not in (reader.fieldnames or ())]:
                raise _mistake(f"{file}:1", f"has no column {missing[0]}")
            points = [_point(row, f"{file}:{reader.line_num}") for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _mistake(str(file), f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not points or points != sorted(points, key=lambda p: p.seconds) or any(map(_negative, points)):
        raise InputError(f"{file}: needs at least one line, in order of seconds, and no load below 0")
    return points


def _point(row: Mapping[str, str | None], place: str) -> Point:
    seconds, held, arriving, waiting = (_number(row, name, place) for name in COLUMNS.split(","))
    return Point(seconds or 0, held or 0, arriving or 0, waiting)


def _number(row: Mapping[str, str | None], name: str, place: str) -> float | None:
    """Return the number in a column; None if it is left out."""
    text = row.get(name) or ""
    if not text and name not in _NEEDED:
        return None
    try:
        return float(text)
    except ValueError:
        said = f"{name} is {text!r}, no number" if text else f"{name} is empty"
        raise _mistake(place, said) from None


def _mistake(place: str, said: str) -> InputError:
    fix = f"write CSV with the columns {COLUMNS}, of which the last two may be left out: one line for each change"
    return InputError(f"{place}: {said}; {fix} of the load")


def _negative(point: Point) -> bool:
    return min(point.held, point.arriving, point.waiting or 0) < 0
