"""The days that a query of TPC-DS asks about: whole weeks, so that weeks can be compared; and what date_dim says of a day."""

import datetime as dt
from random import Random
from typing import Any

from tests.queries.hints import Value

PAST = dt.date(1900, 1, 1)  # a Monday
NAMES = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def day(date: dt.date) -> dict[str, Any]:
    """The columns of date_dim that queries read."""
    quarter = (date.month + 2) // 3
    months = (date.year - 1900) * 12 + date.month - 1
    return {
        "d_date": date, "d_month_seq": months, "d_week_seq": (date - PAST).days // 7 + 1,
        "d_quarter_seq": months // 3 + 1, "d_year": date.year, "d_dow": (date.weekday() + 1) % 7, "d_moy": date.month,
        "d_dom": date.day, "d_qoy": quarter, "d_fy_year": date.year, "d_day_name": NAMES[date.weekday()],
        "d_quarter_name": f"{date.year}Q{quarter}", "d_weekend": "Y" if date.weekday() > 4 else "N",
    }  # fmt: skip


def days(hints: dict[str, list[Value]], random: Random) -> list[dt.date]:
    """Those of some weeks around all dates, months and years of the query, and of the same weeks a year later."""
    starts = {_monday(d) for d in _asked(hints, random)}
    return sorted(start + dt.timedelta(days=n) for start in starts for n in range(7))


def _monday(date: dt.date) -> dt.date:
    return date - dt.timedelta(days=date.weekday())


def _asked(hints: dict[str, list[Value]], random: Random) -> list[dt.date]:
    dates = [d for d in hints.get("d_date", []) if isinstance(d, dt.date)]
    if dates:
        return [d + dt.timedelta(days=n) for d in dates for n in (-25, -8, 0, 2, 12, 28, 55)]
    months = [m for m in hints.get("d_month_seq", []) if isinstance(m, int)]
    if months:
        spans = [month + n for month in months for n in (0, 1, 5)]
        return [dt.date(1900 + m // 12, m % 12 + 1, d) for m in spans for d in (1, 15)]
    named = [str(q) for q in hints.get("d_quarter_name", [])]
    if named:
        return [dt.date(int(q[:4]), int(q[5]) * 3 - 1, d) for q in named for d in (3, 17)]
    return _of_years(hints, random)


def _of_years(hints: dict[str, list[Value]], random: Random) -> list[dt.date]:
    years = sorted({y for y in hints.get("d_year", []) if isinstance(y, int) and 1900 < y < 2100}) or [
        2000,
        2001,
    ]
    moys = {m for m in hints.get("d_moy", []) if isinstance(m, int) and 1 <= m <= 12}
    quarters = [q for q in hints.get("d_qoy", []) if isinstance(q, int)]
    moys |= {q * 3 - 1 for near in quarters for q in (near - 1, near) if q > 0}  # `d_qoy < 4` as well
    moys = moys or set(random.sample(range(1, 12), 2))
    doms = [d for d in hints.get("d_dom", []) if isinstance(d, int)] or [2, 16]
    found = [
        dt.date(y, m, d) for y in (*years[:4], years[-1] + 1) for m in sorted(moys)[:5] for d in doms[:4]
    ]
    # the week with the number that is 52 or 53 higher (q2, q59), and the months that follow (q54)
    return found + [d + dt.timedelta(weeks=w) for d in found[:3] for w in (5, 9, 52, 53)]
