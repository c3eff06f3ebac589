"""Formats figures for people."""

from datetime import UTC, datetime, timedelta

from jobs.terminal import visible
from joinlib.model.time import ALWAYS, NEVER

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BYTES = ("B", "kB", "MB", "GB", "TB")


def number(value: float) -> str:
    """Return `1,234,567`; small rates keep a decimal."""
    return f"{value:.1f}" if 0 < value < 10 and value != int(value) else f"{round(value):,}"


def counted(count: int, what: str) -> str:
    """Return `1 file skipped` or `1,234 files skipped`, where `what` is `files skipped`."""
    many, blank, rest = what.partition(" ")
    one = many.removesuffix("es" if many.endswith("ches") else "s")
    return f"{number(count)} {one if count == 1 else many}{blank}{rest}"


def rows(count: int) -> str:
    """Return `1 row` or `1,234 rows`."""
    return counted(count, "rows")


def shown(count: int, most: int) -> str:
    """Return `1,234 rows, the first 40 shown`."""
    return f"{rows(count)}, the first {most} shown" if count > most else rows(count)


def size(value: float) -> str:
    """Return `12.3 MB`, in powers of 1000."""
    at = 0
    while value >= 1000 and at < len(_BYTES) - 1:
        value, at = value / 1000, at + 1
    return f"{value:.1f} {_BYTES[at]}" if at else f"{value:.0f} B"


def seconds(value: float) -> str:
    """Return `0.84 s`, `12.3 s` or `2 min 5 s`."""
    if value < 60:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    return f"{int(value) // 60} min {int(value) % 60} s"


def moment(time_us: int | None) -> str:
    """Return an event time in UTC; a watermark may also be before or after all times: `-` or `end`."""
    if time_us is None or time_us == NEVER:
        return "-"
    if time_us == ALWAYS:
        return "end"
    try:
        return f"{_EPOCH + timedelta(microseconds=time_us):%Y-%m-%d %H:%M:%S}"
    except OverflowError:
        return f"{time_us} µs"


def value(value: object) -> str:
    """Return a value of a result row: times without a zone (the session's is UTC), floats without noise, and nothing
    that steers a terminal.
    """
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(
            " ", "minutes" if value.second == value.microsecond == 0 else "auto"
        )
    return f"{value:.6g}" if isinstance(value, float) else visible(str(value))
