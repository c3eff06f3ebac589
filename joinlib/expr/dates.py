"""Functions of dates, timestamps and time zones, one row at a time.

Law: Spark's, in UTC; a DATE is a number of days, a TIMESTAMP one of microseconds, since 1970.
"""

from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from math import isfinite
from zoneinfo import ZoneInfoNotFoundError

import pyarrow as pa

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr import signatures as s
from joinlib.expr import types as t
from joinlib.expr.calendar import DAY_US, MONTHS, WEEKDAYS, civil, days_of, month_length, moved
from joinlib.expr.cast import cast
from joinlib.expr.formats import read, template, written
from joinlib.expr.rows import NoValueError
from joinlib.expr.signatures import Signature, row, row_call
from joinlib.expr.text_values import shift
from joinlib.expr.time import Interval
from joinlib.expr.zones import near, zone_of

_SECOND, _LIMIT = 1_000_000, 2**63
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def last_day(days: int) -> int:
    year, month, day = civil(days)
    return days + month_length(year, month) - day


def next_day(days: int, name: str) -> int:
    wanted = name.strip().upper()
    short = [w.upper() for w in WEEKDAYS]
    number = next((i for i, w in enumerate(short) if wanted in (w, w[:3], w[:2])), None)
    if number is None:
        raise NoValueError("next_day takes the English name of a day")
    return days + 1 + (number - (days + 1 + 3)) % 7


def day_of_week(days: int) -> int:
    return (days + 4) % 7 + 1


def weekday(days: int) -> int:
    return (days + 3) % 7


def day_name(days: int) -> str:
    return WEEKDAYS[(days + 3) % 7][:3]


def month_name(days: int) -> str:
    return MONTHS[civil(days)[1] - 1][:3]


def make_date(year: int, month: int, day: int) -> int:
    found = days_of(year, month, day)
    if found is None:
        raise NoValueError("there is no such date")
    return found


def make_timestamp(
    year: int, month: int, day: int, hour: int, minute: int, second: Decimal, zone: str | None = None
) -> int:
    micros = int(second * _SECOND)
    full = micros == 60 * _SECOND  # Spark takes 60 seconds for a minute
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= micros < 60 * _SECOND + full):
        raise NoValueError("there is no such time of a day")
    local = make_date(year, month, day) * DAY_US + (hour * 60 + minute) * 60 * _SECOND + micros
    return local if zone is None else to_utc(local, zone)


def make_interval(days: int = 0, hours: int = 0, minutes: int = 0, seconds: Decimal = Decimal(0)) -> int:
    return ((days * 24 + hours) * 60 + minutes) * 60 * _SECOND + int(seconds * _SECOND)


def truncated(days: int, unit: str) -> int | None:
    year, month, _ = civil(days)
    unit = unit.upper()
    if unit == "WEEK":
        return days - (days + 3) % 7
    first = {"QUARTER": (month - 1) // 3 * 3 + 1, **dict.fromkeys(("MONTH", "MM", "MON"), month)}
    first |= dict.fromkeys(("YEAR", "YYYY", "YY"), 1)
    return days_of(year, first[unit], 1) if unit in first else None


_DAYS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"), **dict.fromkeys(("MONTH", "MM", "MON"), "MONTH"),
    "QUARTER": "QUARTER", "WEEK": "WEEK",
}  # fmt: skip
_MICROS = {
    "DAY": DAY_US, "DD": DAY_US, "HOUR": 3600 * _SECOND, "MINUTE": 60 * _SECOND, "SECOND": _SECOND, "MILLISECOND": 1000,
    "MICROSECOND": 1,
}  # fmt: skip


def truncated_moment(unit: str, micros: int) -> int | None:
    unit = unit.upper()
    if unit in _MICROS:
        return micros - micros % _MICROS[unit]
    days = truncated(micros // DAY_US, unit)
    return None if days is None else days * DAY_US


def months_between(later: int, earlier: int, rounded: bool = True) -> float:
    """Count months, and the rest in parts of 31 days; two last days of months are whole months apart."""
    (days1, rest1), (days2, rest2) = divmod(later, DAY_US), divmod(earlier, DAY_US)
    (year1, month1, day1), (year2, month2, day2) = civil(days1), civil(days2)
    months = (year1 - year2) * 12 + month1 - month2
    last = day1 == month_length(year1, month1) and day2 == month_length(year2, month2)
    if day1 == day2 or last:
        return float(months)
    seconds = (day1 - day2) * 86_400 + rest1 // _SECOND - rest2 // _SECOND
    found = months + seconds / (31 * 86_400)
    return float(Decimal(found).quantize(Decimal("1e-8"), ROUND_HALF_UP)) if rounded else found


def to_local(micros: int, zone: str) -> int:
    """Return what the clocks of a zone show (from_utc_timestamp)."""
    return micros + _ahead(micros, zone) * _SECOND


def _ahead(micros: int, zone: str) -> int:
    """Return how many seconds a zone is ahead of UTC at a moment."""
    name = _named(zone)
    if (found := shift(name, 0, 0)) is not None and not _is_region(name):
        return found
    try:
        days, rest = divmod(micros, DAY_US)
        moment = (_EPOCH + timedelta(near(days), microseconds=rest)).astimezone(zone_of(name))
    except (OverflowError, ValueError, OSError, ZoneInfoNotFoundError) as error:
        raise NoValueError(
            "there is no such time zone, or the time is outside the years 1 to 9999"
        ) from error
    ahead = moment.utcoffset()
    assert ahead is not None
    return round(ahead.total_seconds())


def to_utc(micros: int, zone: str) -> int:
    """Return when the clocks of a zone show this (to_utc_timestamp)."""
    found = shift(_named(zone), micros // DAY_US, micros % DAY_US // _SECOND)
    if found is None:
        raise NoValueError("there is no such time zone")
    return micros - found * _SECOND


def _named(zone: str) -> str:
    return {"EST": "-05:00", "MST": "-07:00", "HST": "-10:00"}.get(zone, zone)


def _is_region(name: str) -> bool:
    return name[:1].isalpha() and not name.startswith(("UTC", "GMT", "UT")) and name != "Z"


def converted(target: str, micros: int) -> int:
    return to_local(micros, target)


def converted_from(source: str, target: str, micros: int) -> int:
    return to_local(to_utc(micros, source), target)


def date_format(micros: int, pattern: str) -> str:
    return written(micros, pattern)


def from_unixtime(seconds: int, pattern: str = "yyyy-MM-dd HH:mm:ss") -> str:
    if not -_LIMIT <= seconds * _SECOND < _LIMIT:
        raise NoValueError("overflow: a TIMESTAMP holds 290000 years")
    return written(seconds * _SECOND, pattern)


def read_moment(text: str, pattern: str) -> int:
    found = tried_moment(text, pattern)
    if found is None:
        raise NoValueError("malformed text; use try_to_timestamp")
    return found


def tried_moment(text: str, pattern: str) -> int | None:
    found = read(text, pattern)
    micros = None if found is None else found[0] * DAY_US + found[1]
    return micros if micros is not None and -_LIMIT <= micros < _LIMIT else None


def read_date(text: str, pattern: str) -> int:
    return read_moment(text, pattern) // DAY_US


def tried_date(text: str, pattern: str) -> int | None:
    found = tried_moment(text, pattern)
    return None if found is None else found // DAY_US


def read_seconds(text: str, pattern: str = "yyyy-MM-dd HH:mm:ss") -> int:
    return read_moment(text, pattern) // _SECOND


def seconds_of(micros: int) -> int:
    return micros // _SECOND


def cut_seconds(micros: int) -> int:
    """Return whole seconds, towards zero (unix_timestamp)."""
    return micros // _SECOND if micros >= 0 else -(-micros // _SECOND)


def millis_of(micros: int) -> int:
    return micros // 1000


def same(number: int) -> int:
    return number


def from_seconds(number: Decimal | float) -> int | None:
    if isinstance(number, float):
        if not isfinite(number):
            return None
        return min(max(int(number * _SECOND), -_LIMIT), _LIMIT - 1)
    micros = int(number * _SECOND)
    if not -_LIMIT <= micros < _LIMIT:
        raise NoValueError("overflow: a TIMESTAMP holds 290000 years")
    if number * _SECOND != micros:
        raise NoValueError("a TIMESTAMP has microseconds, not less")
    return micros


def from_millis(number: int) -> int:
    if not -_LIMIT <= number * 1000 < _LIMIT:
        raise NoValueError("overflow: a TIMESTAMP holds 290000 years")
    return number * 1000


def time_bucket(size: Expr, value: Expr, origin: Expr | None = None) -> Expr:
    """Build the beginning of the bucket that a time is in; buckets have one size, from an origin on."""
    if size.type != t.INTERVAL:
        raise SpecError(f"time_bucket takes an INTERVAL of days or less, not {size.excerpt}")
    given = [value] if origin is None else [value, origin]
    takes = (
        s.anything,
        *(s.to(t.TIMESTAMP_NTZ if value.type == t.TIMESTAMP_NTZ else t.TIMESTAMP) for _ in given),
    )
    kind = t.TIMESTAMP_NTZ if value.type == t.TIMESTAMP_NTZ else t.TIMESTAMP
    return row(bucket, kind, *takes).build("time_bucket", size, *given)


def bucket(size: int, micros: int, origin: int = 0) -> int:
    if size <= 0:
        raise NoValueError("time_bucket takes a size above 0")
    return micros - (micros - origin) % size


def _seconds(name: str, value: Expr) -> Expr:
    return s.number(name, value)


def _decimal(name: str, value: Expr) -> Expr:
    return s.to(pa.decimal128(16, 6))(name, value)


def _first(kind: pa.DataType, *_: pa.DataType) -> pa.DataType:
    return kind


_NTZ = s.to(t.TIMESTAMP_NTZ)
_PARTS = (s.INT, s.INT, s.INT, s.INT, s.INT, _decimal)
FUNCTIONS: dict[str, Signature] = {
    "last_day": row(last_day, t.DATE, s.DATE),
    "next_day": row(next_day, t.DATE, s.DATE, s.STRING),
    "dayofweek": row(day_of_week, t.INT, s.DATE),
    "weekday": row(weekday, t.INT, s.DATE),
    "dayname": row(day_name, t.STRING, s.DATE),
    "monthname": row(month_name, t.STRING, s.DATE),
    "make_date": row(make_date, t.DATE, s.INT, s.INT, s.INT),
    "make_timestamp": row(make_timestamp, t.TIMESTAMP, *_PARTS, s.STRING, least=6),
    "make_timestamp_ltz": row(make_timestamp, t.TIMESTAMP, *_PARTS, s.STRING, least=6),
    "make_timestamp_ntz": row(make_timestamp, t.TIMESTAMP_NTZ, *_PARTS),
    "make_dt_interval": row(make_interval, t.INTERVAL, s.INT, s.INT, s.INT, _decimal, least=0),
    "trunc": row(truncated, t.DATE, s.DATE, s.STRING),
    "months_between": row(months_between, t.DOUBLE, s.TIMESTAMP, s.TIMESTAMP, s.BOOLEAN, least=2),
    "from_utc_timestamp": row(to_local, t.TIMESTAMP, s.TIMESTAMP, s.STRING),
    "to_utc_timestamp": row(to_utc, t.TIMESTAMP, s.TIMESTAMP, s.STRING),
    "date_format": row(date_format, t.STRING, s.moment, template),
    "from_unixtime": row(from_unixtime, t.STRING, s.BIGINT, template, least=1),
    "unix_seconds": row(seconds_of, t.BIGINT, s.TIMESTAMP),
    "unix_millis": row(millis_of, t.BIGINT, s.TIMESTAMP),
    "unix_micros": row(same, t.BIGINT, s.TIMESTAMP),
    "unix_date": row(same, t.INT, s.DATE),
    "date_from_unix_date": row(same, t.DATE, s.INT),
    "timestamp_seconds": row(from_seconds, t.TIMESTAMP, _seconds),
    "timestamp_millis": row(from_millis, t.TIMESTAMP, s.BIGINT),
    "timestamp_micros": row(same, t.TIMESTAMP, s.BIGINT),
}
_READERS: dict[str, Signature] = {
    "to_timestamp": row(read_moment, t.TIMESTAMP, s.STRING, template),
    "to_timestamp_ltz": row(read_moment, t.TIMESTAMP, s.STRING, template),
    "to_timestamp_ntz": row(read_moment, t.TIMESTAMP_NTZ, s.STRING, template),
    "try_to_timestamp": row(tried_moment, t.TIMESTAMP, s.STRING, template),
    "to_date": row(read_date, t.DATE, s.STRING, template),
    "try_to_date": row(tried_date, t.DATE, s.STRING, template),
}  # with a pattern
_KINDS = {"to_timestamp_ntz": t.TIMESTAMP_NTZ, "to_date": t.DATE, "try_to_date": t.DATE}


def read_by(name: str, value: Expr, pattern: Expr | None = None) -> Expr:
    """Build to_timestamp, to_date and the like; only text is read by a pattern."""
    kind = _KINDS.get(name, t.TIMESTAMP)
    if pattern is None or not (t.is_string(value.type) or value.type == t.NULL):
        return cast(value, kind, safe=name.startswith("try_"))
    return _READERS[name].build(name, value, pattern)


def unix_timestamp(name: str, value: Expr, pattern: Expr | None = None) -> Expr:
    """Build the whole seconds since 1970 of a time, or of text by a pattern."""
    if t.is_time(value.type):
        return row(cut_seconds, t.BIGINT, s.TIMESTAMP).build(name, value)
    takes = (s.STRING,) if pattern is None else (s.STRING, template)
    return row(read_seconds, t.BIGINT, *takes).build(name, value, *([] if pattern is None else [pattern]))


def convert_timezone(name: str, *given: Expr) -> Expr:
    """Build what clocks elsewhere show: [from,] to, time; from is UTC."""
    of, texts = (converted_from, 2) if len(given) == 3 else (converted, 1)
    return row(of, t.TIMESTAMP_NTZ, *[s.STRING] * texts, _NTZ).build(name, *given)


def steps(start: int, stop: int, months: int, size: int, a_day: int) -> list[int]:
    """Count from one time to another, in months or by a size; `a_day` is 1 for dates."""
    forward = months > 0 or size > 0
    if (stop - start) * (1 if forward else -1) < 0:
        raise NoValueError("sequence: the step leads away from the end")
    found, at = list[int](), start
    while (at <= stop) if forward else (at >= stop):
        found.append(at)
        day, rest = divmod(start, a_day)
        at = moved(day, months * len(found)) * a_day + rest if months else at + size
    return found


def sequence(start: Expr, stop: Expr, step: Expr | None) -> Expr:
    """Build the dates or timestamps from start to stop; the step is a constant INTERVAL, or a day."""
    node = Interval(0, DAY_US, True) if step is None else step.node
    if not isinstance(node, Interval) or not (node.months or node.micros):
        raise SpecError("sequence of times takes a constant INTERVAL as its step")
    dated = start.type == t.DATE
    if dated and node.micros % DAY_US:
        raise SpecError("sequence of dates takes a step of whole days; CAST the dates AS TIMESTAMP")
    size, a_day = (node.micros // DAY_US, 1) if dated else (node.micros, DAY_US)
    more = (node.months, size, a_day)
    made = row_call("sequence", steps, pa.list_(start.type), [start, stop], more=more)
    sql = f"sequence({start.sql}, {stop.sql}, {step.sql if step else 'INTERVAL 1 DAY'})"
    return Expr(sql, made.columns, made.type, made.node)
