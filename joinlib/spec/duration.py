"""Reads and writes durations such as "2h30m", in microseconds, as Spark counts its timestamps.

    parse("500ms") == 500_000        parse("2h30m") == 9_000_000_000        text(9_000_000_000) == "2h30m"

Law: parse(text(us)) == us for every duration. Months and years have no fixed length and are not supported.
"""

import re

UNITS_US = {
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
LIMIT_US = 36_500 * UNITS_US["d"]  # a century: event time plus or minus it stays within 64 bits
PATTERN = r"^(\d+(d|h|ms|m|us|s))+$"
_PART = re.compile(r"(\d+)(ms|us|[dhms])")


def parse(value: str) -> int:
    """Return the microseconds of a duration such as "10s".

    Raises:
        ValueError: with a text that says how to write one.
    """
    if not re.fullmatch(PATTERN.strip("^$"), value, re.ASCII):
        msg = (
            f"{value!r} is not a duration; write numbers with units {', '.join(UNITS_US)}, such as 10s,"
            " 500ms or 2h30m"
        )
        raise ValueError(msg)
    parts = [(int(number), unit) for number, unit in _PART.findall(value)]
    units = [unit for _, unit in parts]
    if units != [unit for unit in UNITS_US if unit in units]:
        msg = f"{value!r} is not a duration; write each unit once and the largest first, such as 2h30m"
        raise ValueError(msg)
    total = sum(number * UNITS_US[unit] for number, unit in parts)
    if total > LIMIT_US:
        msg = f"{value!r} is too long; a duration is at most {text(LIMIT_US)}"
        raise ValueError(msg)
    return total


def text(duration_us: int) -> str:
    """Return the shortest form that `parse` reads as the same number of microseconds."""
    parts = []
    rest = duration_us
    for unit, unit_us in UNITS_US.items():
        number, rest = divmod(rest, unit_us)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0s"
