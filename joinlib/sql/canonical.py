"""Window functions as canonical text: equal text, equal meaning. It is shown in plans and part of a fingerprint."""

from dataclasses import replace

import pyarrow as pa

from joinlib.expr import types as t
from joinlib.model.over import RUNNING, WHOLE, Frame, OrderKey, OverCall

_NUMBERED = ("ntile", "lag", "lead", "nth_value")


def with_text(call: OverCall, partition: tuple[str, ...], by: pa.DataType | None) -> OverCall:
    """Return the call with its text. `by`: the type of the first column of ORDER BY."""
    given = [name for name, _ in call.arguments[:1]]
    if call.function == "count" and not given:
        given = ["*"]
    if call.function in _NUMBERED:
        given.append(str(call.number))
    elif call.function.startswith("session"):
        given.append(f"INTERVAL {call.number} MICROSECONDS")
    given += [name for name, _ in call.arguments[1:]]
    if call.default is not None:
        given.append(str(call.default.as_py()))
    parts = []
    if partition:
        parts.append(f"PARTITION BY {', '.join(partition)}")
    if call.order:
        parts.append(f"ORDER BY {', '.join(_key(key) for key in call.order)}")
    if call.frame != (RUNNING if call.order else WHOLE):
        parts.append(_frame(call.frame, by))
    text = f"{call.function}({', '.join(given)})"
    if call.condition is not None:
        text += f" FILTER (WHERE {call.condition})"
    if call.ignore_nulls:
        text += " IGNORE NULLS"
    return replace(call, sql=f"{text} OVER ({' '.join(parts)})")


def _key(key: OrderKey) -> str:
    nulls = "" if key.nulls_first != key.descending else f" NULLS {'FIRST' if key.nulls_first else 'LAST'}"
    return f"{key.column}{' DESC' if key.descending else ''}{nulls}"


def _frame(frame: Frame, by: pa.DataType | None) -> str:
    ends = " AND ".join(
        _end(end, word, frame.unit, by) for end, word in ((frame.low, "PRECEDING"), (frame.high, "FOLLOWING"))
    )
    return f"{frame.unit.upper()} BETWEEN {ends}"


def _end(end: float | None, word: str, unit: str, by: pa.DataType | None) -> str:
    if end is None:
        return f"UNBOUNDED {word}"
    if end == 0:
        return "CURRENT ROW"
    far, ranged = str(abs(end)), unit == "range" and by is not None
    if ranged and t.is_timestamp(by):
        far = f"INTERVAL {far} MICROSECONDS"
    elif ranged and by == t.DATE:
        far = f"INTERVAL {far} DAYS"
    elif ranged and t.is_decimal(by):
        far = f"{far} UNITS OF THE LAST DIGIT"
    return f"{far} {'PRECEDING' if end < 0 else 'FOLLOWING'}"
