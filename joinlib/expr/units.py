"""Times that are units apart: timestampdiff(MINUTE, a, b), timestampadd(DAY, 1, x), EXTRACT(DOW FROM x).

Law: Spark's; whole units, towards zero; months as the calendar has them.
"""

from collections.abc import Callable

import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.expr import Expr, dates
from joinlib.expr import signatures as s
from joinlib.expr import types as t
from joinlib.expr.calendar import DAY_US, civil, days_of, moved
from joinlib.expr.cast import cast
from joinlib.expr.signatures import row_call
from joinlib.expr.time import part, seconds

SIZES = {
    "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000,
    "DAY": DAY_US, "WEEK": 7 * DAY_US,
}  # fmt: skip
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
UNITS = (*SIZES, "DAYOFYEAR", *_MONTHS)


def units_between(start: int, end: int, size: int) -> int:
    found = abs(end - start) // size
    return found if end >= start else -found


def months_between(start: int, end: int, size: int) -> int:
    """Count whole months between two moments, as java.time.Period does; then groups of them."""
    (year1, month1, day1), (year2, month2, day2) = civil(start // DAY_US), civil(end // DAY_US)
    months = (year2 - year1) * 12 + month2 - month1
    left = (day2, end % DAY_US) < (day1, start % DAY_US)
    over = (day2, end % DAY_US) > (day1, start % DAY_US)
    months += -1 if months > 0 and left else 1 if months < 0 and over else 0
    return months // size if months >= 0 else -(-months // size)


def difference(unit: str, start: Expr, end: Expr) -> Expr:
    """Build timestampdiff(unit, start, end)."""
    name = "timestampdiff"
    values = [s.TIMESTAMP(name, start), s.TIMESTAMP(name, end)]
    unit = "DAY" if unit == "DAYOFYEAR" else unit
    of: Callable[..., int] = months_between if unit in _MONTHS else units_between
    size = _MONTHS.get(unit) or SIZES[unit]
    made = row_call(name, of, t.BIGINT, values, more=(size,))
    sql = f"{name}({unit}, {values[0].sql}, {values[1].sql})"
    return Expr(sql, made.columns, made.type, made.node)


def moved_by(count: int, micros: int, months: int, size: int) -> int:
    if months:
        return moved(micros // DAY_US, count * months) * DAY_US + micros % DAY_US
    return micros + count * size


def addition(unit: str, count: Expr, value: Expr) -> Expr:
    """Build timestampadd(unit, count, value)."""
    name = "timestampadd"
    unit = "DAY" if unit == "DAYOFYEAR" else unit
    values = [s.BIGINT(name, count), s.moment(name, value)]
    more = (_MONTHS.get(unit, 0), SIZES.get(unit, 0))
    made = row_call(name, moved_by, values[1].type, values, more=more)
    sql = f"{name}({unit}, {values[0].sql}, {values[1].sql})"
    return Expr(sql, made.columns, made.type, made.node)


def year_of_week(days: int) -> int:
    """Return the year that the week belongs to: that of its Thursday."""
    return civil(days - (days + 3) % 7 + 3)[0]


def iso_weekday(days: int) -> int:
    return (days + 3) % 7 + 1


def day_of_year(days: int) -> int:
    first = days_of(civil(days)[0], 1, 1)
    assert first is not None
    return days - first + 1


_SHORT = {
    "y": "year", "years": "year", "yr": "year", "yrs": "year", "mon": "month", "mons": "month", "months": "month",
    "d": "day", "days": "day", "h": "hour", "hours": "hour", "hr": "hour", "hrs": "hour", "m": "minute", "min": "minute",
    "mins": "minute", "minutes": "minute", "s": "second", "sec": "second", "secs": "second", "seconds": "second",
    "qtr": "quarter", "w": "week", "weeks": "week", "dow": "dayofweek", "dow_iso": "dayofweek_iso",
    "yearofweek": "yearofweek", "doy": "doy",
}  # fmt: skip
_PARTS: dict[str, Callable[[int], int]] = {
    "dayofweek": dates.day_of_week, "dayofweek_iso": iso_weekday, "yearofweek": year_of_week, "doy": day_of_year,
}  # fmt: skip
PARTS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", *_PARTS)


def extract(name: str, value: Expr) -> Expr:
    """Build EXTRACT(part FROM value).

    Raises:
        SpecError: if there is no such part.
    """
    key = _SHORT.get(name.lower(), name.lower())
    if key == "second":
        return seconds(value)
    if key in _PARTS:
        return row_call(key, _PARTS[key], t.INT, [s.DATE(key, value)])
    if key not in PARTS:
        raise SpecError(f"EXTRACT({name} ...) is not supported; use one of {', '.join(PARTS)}")
    return part("weekofyear" if key == "week" else key, value)


def interval_of(count: Expr, unit: str) -> Expr:
    """Build INTERVAL count unit, where the count is computed."""
    key = unit.upper().removesuffix("S")
    if key not in SIZES:
        raise SpecError(f"INTERVAL: months are counted by add_months(date, n), not by {unit} of a column")
    whole = s.BIGINT("INTERVAL", count) if key != "SECOND" else s.to(pa.decimal128(18, 6))("INTERVAL", count)
    return row_call(f"INTERVAL {key}", times, t.INTERVAL, [whole], more=(SIZES[key],))


def times(count: int, size: int) -> int:
    return int(count * size)


def scaled(value: Expr, by: Expr) -> Expr:
    """Build INTERVAL * number."""
    return row_call(
        "*", product, t.INTERVAL, [value, cast(by, t.DOUBLE) if not t.is_integer(by.type) else by]
    )


def product(micros: int, by: float) -> int:
    found = micros * by
    return found if isinstance(found, int) else int(found + (0.5 if found >= 0 else -0.5))
