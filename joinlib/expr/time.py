"""Builds functions of dates, timestamps and intervals.

Law: UTC, microseconds; adding months keeps the day, or takes the last day of a shorter month.
"""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.expr import Columns, Expr
from joinlib.expr import types as t
from joinlib.expr.calendar import moved
from joinlib.expr.cast import DAY, cast
from joinlib.expr.nodes import Literal, Value, call, columnar, compute
from joinlib.expr.rows import Rule, by_rows

MONTHS = pa.month_day_nano_interval()


@dataclass(frozen=True)
class Interval:
    """An INTERVAL constant: months or microseconds, never both."""

    months: int
    micros: int
    days_only: bool  # a DATE moved by it stays a DATE

    def evaluate(self, columns: Columns, rows: int) -> pa.Scalar:
        if self.months:
            raise SpecError("an interval of months cannot be used as a value; add it to a DATE or TIMESTAMP")
        return pa.scalar(self.micros, t.INTERVAL)


def interval(months: int, micros: int, days_only: bool) -> Expr:
    """Build an INTERVAL constant."""
    sql = f"INTERVAL {months} MONTHS" if months else f"INTERVAL {micros} MICROSECONDS"
    return Expr(sql, (), MONTHS if months else t.INTERVAL, Interval(months, micros, days_only))


def is_interval(value: Expr) -> bool:
    return value.type in (t.INTERVAL, MONTHS)


def shift(sign: str, left: Expr, right: Expr) -> Expr:
    """Build + and - where one side is a time or an interval.

    Raises:
        SpecError: if the types cannot be added or subtracted.
    """
    if sign == "+" and is_interval(left) and not is_interval(right):
        left, right = right, left
    sql = f"({left.sql} {sign} {right.sql})"
    step = 1 if sign == "+" else -1
    if isinstance(left.node, Interval) and isinstance(right.node, Interval):
        return _sum(left.node, right.node, step)
    if t.is_time(left.type) and isinstance(right.node, Interval):
        return _moved(left, right.node, step, sql)
    if t.is_timestamp(left.type) and right.type == t.INTERVAL:
        return call(compute, (left, right), left.type, sql, _CHECKED[sign])
    if left.type == t.DATE and right.type in (t.TINYINT, t.SMALLINT, t.INT):
        return call(add_days, (left, right), t.DATE, sql, step)
    if sign == "-" and t.is_time(left.type) and t.is_time(right.type):
        left, right = cast(left, t.TIMESTAMP), cast(right, t.TIMESTAMP)
        return call(compute, (left, right), t.INTERVAL, sql, "subtract_checked")
    if left.type == t.INTERVAL and right.type == t.INTERVAL:
        return call(compute, (left, right), t.INTERVAL, sql, _CHECKED[sign])
    raise SpecError(f"{sign} does not take {t.name(left.type)} and {t.name(right.type)}: {sql}")


_CHECKED = {"+": "add_checked", "-": "subtract_checked"}


def _sum(left: Interval, right: Interval, step: int) -> Expr:
    months, micros = left.months + step * right.months, left.micros + step * right.micros
    if months and micros:
        raise SpecError("an INTERVAL has months or days and less, not both; add them one after the other")
    return interval(months, micros, left.days_only and right.days_only)


def _moved(value: Expr, by: Interval, step: int, sql: str) -> Expr:
    if by.months:
        return call(add_months, (value,), value.type, sql, step * by.months)
    if value.type == t.DATE and by.days_only:
        days = step * (by.micros // DAY)
        return call(add_days, (value,), t.DATE, sql, pa.scalar(days, t.INT), 1)
    moment = cast(value, t.TIMESTAMP) if value.type == t.DATE else value
    return call(add_micros, (moment,), moment.type, sql, step * by.micros)


def add_micros(value: Value, micros: int) -> Value:
    return pc.add_checked(value, pa.scalar(micros, t.INTERVAL))


def add_days(value: Value, days: Value, step: int) -> Value:
    moved = pc.add_checked(value.cast(t.INT), pc.multiply_checked(days.cast(t.INT), pa.scalar(step, t.INT)))
    return moved.cast(t.DATE)


@columnar
def add_months(value: pa.Array, months: int) -> pa.Array:
    nulls = np.asarray(value.is_null())
    unit = "D" if value.type == t.DATE else "us"
    plain = value.cast(t.INT if unit == "D" else pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    moments = plain.astype(np.int64).astype(f"M8[{unit}]")
    month = moments.astype("M8[M]")
    day = moments.astype("M8[D]") - month.astype("M8[D]")
    rest = moments - moments.astype("M8[D]").astype(moments.dtype)
    target = month + np.timedelta64(months, "M")
    last = (target + np.timedelta64(1, "M")).astype("M8[D]") - target.astype("M8[D]") - np.timedelta64(1, "D")
    moved = (target.astype("M8[D]") + np.minimum(day, last)).astype(moments.dtype) + rest
    number = moved.astype(np.int64)
    ints = pa.array(number, pa.int64(), mask=nulls)
    return ints.cast(t.INT).cast(t.DATE) if unit == "D" else ints.cast(value.type)


def shift_days(sign: str, value: Expr, days: Expr) -> Expr:
    """Build date_add (sign +) or date_sub (sign -)."""
    return shift(sign, cast(value, t.DATE), cast(days, t.INT))


def shift_months(value: Expr, months: Expr) -> Expr:
    """Build add_months."""
    value, months = cast(value, t.DATE), cast(months, t.INT)
    count = months.node.value.as_py() if isinstance(months.node, Literal) else None
    if count is None:
        sql = f"add_months({value.sql}, {months.sql})"
        return call(by_rows, (value, months), t.DATE, sql, Rule(moved, t.DATE))
    return call(add_months, (value,), t.DATE, f"add_months({value.sql}, {months.sql})", count)


def part(name: str, value: Expr) -> Expr:
    """Build year(x), month(x), ... as INT."""
    value = _moment(name, value)
    if name in ("hour", "minute", "second"):
        value = cast(value, t.TIMESTAMP_NTZ)
    return call(extract, (value,), t.INT, f"{name}({value.sql})", PARTS[name])


def seconds(value: Expr) -> Expr:
    """Build EXTRACT(SECOND FROM x) as DECIMAL(8,6), with its fraction."""
    value = cast(_moment("EXTRACT", value), t.TIMESTAMP_NTZ)
    return call(seconds_of, (value,), _SECONDS, f"EXTRACT(SECOND FROM {value.sql})")


_SECONDS = pa.decimal128(8, 6)


@columnar
def seconds_of(value: pa.Array) -> pa.Array:
    minutes = pc.floor_temporal(value, unit="minute")
    micros = pc.subtract(value, minutes).cast(pa.int64()).cast(pa.decimal128(19, 0))
    return pc.multiply(micros, pa.scalar(Decimal("0.000001"), pa.decimal128(7, 6))).cast(_SECONDS)


def _moment(name: str, value: Expr) -> Expr:
    if t.is_string(value.type) or value.type == t.NULL:
        value = cast(value, t.TIMESTAMP)
    if not t.is_time(value.type):
        raise SpecError(f"{name} takes a DATE or TIMESTAMP, {value.sql} is {t.name(value.type)}")
    return value


PARTS = {
    "year": "year", "month": "month", "day": "day", "dayofmonth": "day", "hour": "hour", "minute": "minute",
    "second": "second", "quarter": "quarter", "dayofyear": "day_of_year", "weekofyear": "iso_week",
}  # fmt: skip


def extract(value: Value, unit: str) -> Value:
    return pc.call_function(unit, [value]).cast(t.INT)


def truncate(unit: str, value: Expr) -> Expr:
    """Build date_trunc(unit, x) as TIMESTAMP; weeks begin on Monday."""
    if unit.lower() not in UNITS:
        raise SpecError(f"date_trunc takes {', '.join(UNITS)}, not {unit!r}")
    if not (t.is_time(value.type) or t.is_string(value.type)):
        raise SpecError(f"date_trunc takes a TIMESTAMP, {value.sql} is {t.name(value.type)}")
    value = cast(value, t.TIMESTAMP)
    return call(floor_time, (value,), value.type, f"date_trunc('{unit.lower()}', {value.sql})", unit.lower())


UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")


def floor_time(value: Value, unit: str) -> Value:
    return pc.floor_temporal(value, unit=unit)


def days_between(end: Expr, start: Expr) -> Expr:
    """Build datediff(end, start): whole days, as INT."""
    end, start = cast(end, t.DATE), cast(start, t.DATE)
    return call(subtract_days, (end, start), t.INT, f"datediff({end.sql}, {start.sql})")


def subtract_days(end: Value, start: Value) -> Value:
    return pc.subtract(end.cast(t.INT), start.cast(t.INT))
