"""Patterns of dates and times ('yyyy-MM-dd HH:mm'), as Spark 3 and later read and write them, in UTC and English.

Law: Java's DateTimeFormatter with Spark's rules: y is the year of the common calendar, fractions may be shorter.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from joinlib.expr import Expr
from joinlib.expr import signatures as s
from joinlib.expr.calendar import DAY_US, MONTHS, WEEKDAYS, civil, days_of
from joinlib.expr.rows import NoValueError
from joinlib.expr.text_values import shift

_ORDINALS = ("1st", "2nd", "3rd", "4th")
_MOST = {  # letters, and how many of them may stand together
    "G": 4, "y": 6, "M": 4, "L": 4, "d": 2, "D": 3, "E": 4, "F": 1, "a": 1, "h": 2, "K": 2, "k": 2, "H": 2, "m": 2,
    "s": 2, "S": 9, "Q": 4, "q": 4, "V": 2, "z": 4, "O": 4, "X": 5, "x": 5, "Z": 5,
}  # fmt: skip


@dataclass(frozen=True)
class Letters:
    """A run of one letter, or text between letters."""

    letter: str  # "" for text, "[" and "]" for what may be missing
    count: int
    text: str = ""


@lru_cache(maxsize=1000)
def pieces(pattern: str) -> tuple[Letters, ...]:
    """Read a pattern.

    Raises:
        NoValueError: if it has letters that mean nothing, or too many of one.
    """
    found, at = list[Letters](), 0
    while at < len(pattern):
        c = pattern[at]
        if c == "'":
            end = at + 1
            while (end := pattern.find("'", end)) >= 0 and pattern[end + 1 : end + 2] == "'" and end > at + 1:
                end += 2
            if end < 0:
                raise NoValueError("the pattern of a time has a quote that is not closed")
            found.append(Letters("", 0, pattern[at + 1 : end].replace("''", "'") or "'"))
            at = end + 1
        elif c.isascii() and c.isalpha():
            end = at
            while end < len(pattern) and pattern[end] == c:
                end += 1
            found.append(_letters(c, end - at))
            at = end
        elif c in "{}#":
            raise NoValueError(f"the pattern of a time has {c}, which means nothing")
        else:
            found.append(Letters(c if c in "[]" else "", 0, c))
            at += 1
    return tuple(found)


def _letters(letter: str, count: int) -> Letters:
    if letter not in _MOST:
        raise NoValueError(f"the letter {letter} is not supported in the pattern of a time")
    if count > _MOST[letter] or (letter == "V" and count != 2) or (letter == "O" and count not in (1, 4)):
        raise NoValueError(f"the pattern of a time has {letter} {count} times, which means nothing")
    return Letters(letter, count)


def written(micros: int, pattern: str) -> str:
    """Write microseconds since 1970 by a pattern."""
    days, rest = divmod(micros, DAY_US)
    moment = _Moment(*civil(days), days, rest)
    return "".join(
        p.text if not p.letter else "" if p.letter in "[]" else _WRITE[p.letter](moment, p.count)
        for p in pieces(pattern)
    )


@dataclass(frozen=True)
class _Moment:
    year: int
    month: int
    day: int
    days: int  # since 1970
    rest: int  # microseconds of the day

    @property
    def hour(self) -> int:
        return self.rest // 3_600_000_000


def _year_day(m: _Moment, count: int) -> str:
    first = days_of(m.year, 1, 1)
    assert first is not None
    return _two(m.days - first + 1, count)


def _two(number: int, count: int) -> str:
    return str(number).rjust(count, "0")


def _year(m: _Moment, count: int) -> str:
    if count == 2:
        return f"{m.year % 100:02d}"
    sign = "-" if m.year < 0 else "+" if count >= 4 and abs(m.year) >= 10**count else ""
    return sign + str(abs(m.year)).rjust(count, "0")


def _month(m: _Moment, count: int) -> str:
    name = MONTHS[m.month - 1]
    return _two(m.month, count) if count <= 2 else name[:3] if count == 3 else name


def _quarter(m: _Moment, count: int) -> str:
    number = (m.month + 2) // 3
    return (
        _two(number, count)
        if count <= 2
        else f"Q{number}"
        if count == 3
        else f"{_ORDINALS[number - 1]} quarter"
    )


def _weekday(m: _Moment, count: int) -> str:
    name = WEEKDAYS[(m.days + 3) % 7]
    return name if count == 4 else name[:3]


def _offset(letter: str, count: int) -> str:
    if letter == "X":
        return "Z"
    if letter == "x":
        return ("+00", "+0000", "+00:00", "+0000", "+00:00")[count - 1]
    if letter == "Z":
        return "+0000" if count <= 3 else "GMT" if count == 4 else "Z"
    return "GMT"


_WRITE: dict[str, Callable[[_Moment, int], str]] = {
    "G": lambda m, n: (
        ("AD" if m.year > 0 else "BC") if n < 4 else ("Anno Domini" if m.year > 0 else "Before Christ")
    ),
    "y": _year,
    "M": _month,
    "L": _month,
    "d": lambda m, n: _two(m.day, n),
    "D": _year_day,
    "E": _weekday,
    "F": lambda m, n: str((m.day - 1) % 7 + 1),
    "a": lambda m, n: "AM" if m.hour < 12 else "PM",
    "h": lambda m, n: _two((m.hour + 11) % 12 + 1, n),
    "K": lambda m, n: _two(m.hour % 12, n),
    "k": lambda m, n: _two((m.hour + 23) % 24 + 1, n),
    "H": lambda m, n: _two(m.hour, n),
    "m": lambda m, n: _two(m.rest // 60_000_000 % 60, n),
    "s": lambda m, n: _two(m.rest // 1_000_000 % 60, n),
    "S": lambda m, n: f"{m.rest % 1_000_000:06d}000"[:n],
    "Q": _quarter,
    "q": _quarter,
    "V": lambda m, n: "UTC",
    "z": lambda m, n: "UTC" if n < 4 else "Coordinated Universal Time",
    "O": lambda m, n: _offset("O", n),
    "X": lambda m, n: _offset("X", n),
    "x": lambda m, n: _offset("x", n),
    "Z": lambda m, n: _offset("Z", n),
}


def _numeric(count: int) -> str:
    return r"\d{1,2}" if count == 1 else r"\d{2}"


_NAMES = "|".join(MONTHS), "|".join(m[:3] for m in MONTHS)
_ZONES = r"[A-Za-z][A-Za-z0-9_+\-/:]*|[+-]\d{1,2}(?::?\d\d){0,2}"
_READ: dict[str, Callable[[int], str]] = {
    "y": lambda n: r"-?\d{1,9}" if n == 1 else r"\d{2}" if n == 2 else rf"-?\d{{{n}}}|[+-]\d{{{n + 1},9}}",
    "M": lambda n: _numeric(n) if n <= 2 else _NAMES[1] if n == 3 else _NAMES[0],
    "L": lambda n: _numeric(n) if n <= 2 else _NAMES[1] if n == 3 else _NAMES[0],
    "d": _numeric,
    "D": lambda n: rf"\d{{{n},3}}",
    "a": lambda n: "AM|PM",
    "h": _numeric,
    "K": _numeric,
    "k": _numeric,
    "H": _numeric,
    "m": _numeric,
    "s": _numeric,
    "S": lambda n: rf"\d{{1,{n}}}",
    "V": lambda n: _ZONES,
    "z": lambda n: _ZONES,
    "O": lambda n: r"GMT(?:[+-]\d{1,2}(?::\d\d)?)?",
    "X": lambda n: r"Z|[+-]\d\d(?::?\d\d){0,2}",
    "x": lambda n: r"[+-]\d\d(?::?\d\d){0,2}",
    "Z": lambda n: r"[+-]\d{4}" if n <= 3 else r"GMT(?:[+-]\d\d:\d\d)?" if n == 4 else r"Z|[+-]\d\d:\d\d",
}


@lru_cache(maxsize=1000)
def _reader(pattern: str) -> re.Pattern[str]:
    out, seen = list[str](), dict[str, int]()
    for piece in pieces(pattern):
        if piece.letter in ("[", "]"):
            out.append("(?:" if piece.letter == "[" else ")?")
        elif not piece.letter:
            out.append(re.escape(piece.text))
        elif piece.letter not in _READ:
            raise NoValueError(f"the letter {piece.letter} is not supported where a time is read")
        else:
            key = "Y" if piece.letter == "y" and piece.count == 2 else piece.letter
            number = seen[key] = seen.get(key, 0) + 1
            out.append(f"(?P<{key}{number}>{_READ[piece.letter](piece.count)})")
    try:
        return re.compile("".join(out), re.IGNORECASE | re.ASCII)
    except re.error as error:
        raise NoValueError("the pattern of a time cannot be read") from error


def read(text: str, pattern: str) -> tuple[int, int] | None:
    """Read a time: days since 1970 and microseconds of the day, in UTC; None if the text is none."""
    found = _reader(pattern).fullmatch(text)
    if found is None:
        return None
    got = {name[0]: value for name, value in found.groupdict().items() if value is not None}
    days, rest = _date(got), _time(got)
    if days is None or rest is None:
        return None
    zone = next((got[z] for z in "VzOXxZ" if z in got), None)
    moved = shift(_zone(zone), days, rest // 1_000_000)
    return None if moved is None else (days, rest - moved * 1_000_000)


def _zone(name: str | None) -> str | None:
    return "Z" if name and name.upper() in ("Z", "UTC", "GMT") else name


def _date(got: dict[str, str]) -> int | None:
    year = 2000 + int(got["Y"]) if "Y" in got else int(got.get("y", "1970"))
    if "D" in got and "M" not in got:
        day = int(got["D"])
        first, after = days_of(year, 1, 1), days_of(year + 1, 1, 1)
        return (
            first + day - 1 if first is not None and after is not None and 1 <= day <= after - first else None
        )
    month = got.get("M") or got.get("L") or "1"
    if not month.isdigit():
        month = str(1 + next(i for i, m in enumerate(MONTHS) if m[:3].lower() == month[:3].lower()))
    return days_of(year, int(month), int(got.get("d", "1")))


def _time(got: dict[str, str]) -> int | None:
    hour = _hour(got)
    minute, second = int(got.get("m", "0")), int(got.get("s", "0"))
    if hour is None or minute > 59 or second > 59:
        return None
    return (hour * 3600 + minute * 60 + second) * 1_000_000 + int(got.get("S", "").ljust(9, "0")[:6])


def _hour(got: dict[str, str]) -> int | None:
    late = 12 * (got.get("a", "AM").upper() == "PM")
    if "H" in got or "k" in got:
        hour, most = (int(got["H"]), 23) if "H" in got else (int(got["k"]), 24)
        return hour % 24 if hour <= most and not ("k" in got and not hour and "H" not in got) else None
    if "h" in got or "K" in got:
        hour = int(got.get("h") or got["K"])
        return hour % 12 + late if (1 <= hour <= 12 if "h" in got else hour <= 11) else None
    return late


def template(name: str, value: Expr) -> Expr:
    """Take the pattern of a time; a constant one is checked at once."""
    return s.readable(name, value, pieces)
