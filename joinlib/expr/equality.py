"""What plain values are equal, and which is the greater. Law: NaN equals NaN and is the greatest; NULL is the least."""

import math
from typing import Any


def key(value: Any) -> Any:
    """Return what is equal for equal values: NaN has none of its own."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, list | tuple):
        return tuple(map(key, value))
    return tuple((k, key(v)) for k, v in value.items()) if isinstance(value, dict) else value


def zeroed(value: Any) -> Any:
    """Return the value with 0.0 for each -0.0, which equals it."""
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, list | tuple):
        return type(value)(map(zeroed, value))
    return {k: zeroed(v) for k, v in value.items()} if isinstance(value, dict) else value


def rank(value: Any) -> Any:
    """Return what sorts as Spark does: NULL first, NaN last."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value)
    if isinstance(value, list | tuple):
        return (1, *map(rank, value))
    if isinstance(value, dict):
        return (1, *map(rank, value.values()))
    return (1, value)


def compared(left: Any, right: Any, sign: str) -> bool:
    """Compare ARRAYs or STRUCTs, part by part; NULL parts are equal."""
    if sign in ("=", "<>", "<=>"):
        return (key(left) == key(right)) == (sign != "<>")
    one, other = rank(left), rank(right)
    return bool({"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}[sign])
