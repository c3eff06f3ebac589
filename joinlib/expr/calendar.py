"""Dates as numbers of days since 1970, of any year. Law: the common (Gregorian) calendar, also before it was made."""

from datetime import date, timedelta

DAY_US = 86_400_000_000
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
CYCLE = 146_097  # 400 years have the same number of days, always
_EPOCH, _START = date(1970, 1, 1), date(2000, 1, 1)


def days_of(year: int, month: int, day: int) -> int | None:
    """Return the days since 1970; None for a date that is none."""
    try:  # Python's dates cover 1 to 9999, so the year is moved by cycles of 400
        return (date(2000 + year % 400, month, day) - _EPOCH).days + (year // 400 - 5) * CYCLE
    except ValueError:
        return None


def civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day."""
    cycles, rest = divmod(days + (_EPOCH - _START).days, CYCLE)
    found = _START + timedelta(rest)
    return found.year + cycles * 400, found.month, found.day


def month_length(year: int, month: int) -> int:
    if month == 2:
        return 28 + (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
    return 30 if month in (4, 6, 9, 11) else 31


def moved(days: int, months: int) -> int:
    """Add months to a date; a shorter month's last day is kept."""
    year, month, day = civil(days)
    total = year * 12 + month - 1 + months
    year, month = total // 12, total % 12 + 1
    found = days_of(year, month, min(day, month_length(year, month)))
    assert found is not None
    return found
