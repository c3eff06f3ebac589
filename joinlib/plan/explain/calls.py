"""Says calls that only rewrites write in the words of SQL.

$tumble(at, 10000000, 0)                         TUMBLE(at, 10s)
$one(any_value(q.x), count(*)), of a subquery    single_value(q.x)
INTERVAL 10000000 MICROSECONDS                   INTERVAL 10 SECONDS
NOT (a.x IS NULL)                                a.x IS NOT NULL
"""

import re

from joinlib.plan.explain.texts import QUOTED
from joinlib.spec.duration import text as duration

_INNER = r"((?:[^()]|\((?:[^()]|\([^()]*\))*\))*?)"
_WINDOW = re.compile(rf"\$(tumble|hop|cumulate)\({_INNER}, (\d+)(?:, (\d+))?, (\d+)\)")
_MICROS = re.compile(rf"{QUOTED}|INTERVAL (-?\d+) MICROSECONDS")
_NOT_NULL = re.compile(rf"\bNOT \({_INNER} IS NULL\)")
# Spark's sessions end before a row that is so far behind, others behind it
_GAP = re.compile(r"(\bsession_(?:start|end)\([^()]*, INTERVAL )(\d*999)(?= MICROSECONDS\))")
_END = re.compile(r"(\bsession_end) \+ INTERVAL 1 MICROSECONDS")
_ONE = "$one("
_UNITS = {
    "DAYS": 86_400_000_000,
    "HOURS": 3_600_000_000,
    "MINUTES": 60_000_000,
    "SECONDS": 1_000_000,
    "MILLISECONDS": 1000,
}


def in_sql(text: str) -> str:
    """Return the text with such calls said."""
    said = _NOT_NULL.sub(r"\1 IS NOT NULL", _END.sub(r"\1", text))
    said = _GAP.sub(lambda found: f"{found[1]}{int(found[2]) + 1}", said)
    while _ONE in said:
        said = _single(said, said.rindex(_ONE))
    return _MICROS.sub(_interval, _WINDOW.sub(_window, said))


def _single(text: str, start: int) -> str:
    """Say the call at this place, which has no other within it."""
    begin, depth, comma = start + len(_ONE), 1, 0
    end = begin
    while depth and end < len(text):
        depth += (text[end] == "(") - (text[end] == ")")
        comma = end if depth == 1 and text[end] == "," else comma
        end += 1
    value = re.sub(r"^any_value\((.*)\)$", r"single_value(\1)", text[begin:comma])
    return f"{text[:start]}{value}{text[end:]}"


def _window(found: re.Match[str]) -> str:
    kind, at, size, step, offset = found.groups()
    lengths = [int(step), int(size)] if step else [int(size)]
    lengths += [int(offset)] if int(offset) else []
    return f"{kind.upper()}({at}, {', '.join(map(duration, lengths))})"


def _interval(found: re.Match[str]) -> str:
    if found[1] is None:
        return found[0]
    micros = int(found[1])
    unit = next((u for u, length in _UNITS.items() if micros and micros % length == 0), None)
    return f"INTERVAL {micros // _UNITS[unit]} {unit}" if unit else found[0]
