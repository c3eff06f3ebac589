"""A StreamJoin in a few lines for people: what is wrong comes first, then what it does, then what was decided and why."""

from collections.abc import Iterator, Sequence
from typing import Any

Object = dict[str, Any]
_DECISIONS, _EVENTS = 5, 5


def lines(thing: Object, events: Sequence[Object]) -> Iterator[str]:
    """Yield them."""
    metadata, status = thing["metadata"], thing.get("status") or {}
    yield f"{metadata['namespace']}/{metadata['name']}: {status.get('phase', 'not looked at yet: does an operator run?')}"
    if status.get("message"):
        yield f"  {status['message']}"
    yield from _conditions(status)
    yield from _figures(status)
    yield from _decisions(status)
    if events:
        yield "events"
        yield from (
            f"  {e.get('lastTimestamp') or ''} {e.get('reason')}: {e.get('message')}"
            for e in events[-_EVENTS:]
        )


def _conditions(status: Object) -> Iterator[str]:
    for one in status.get("conditions", ()):
        told = f": {one['message']}" if one.get("message") else ""
        yield f"  {one['type']:<17} {one['status']:<6} {one['reason']}{told}"


def _figures(status: Object) -> Iterator[str]:
    executors = status.get("executors") or {}
    figures = {
        "executors": f"{executors.get('ready', 0)} of {executors['wanted']}"
        if "wanted" in executors
        else None,
        "memory load": status.get("memoryLoad"),
        "lag": None if status.get("lag") is None else f"{status['lag']} rows",
        "rate": None if status.get("rate") is None else f"{status['rate']} rows/s",
        "skew": status.get("skew"),
        "batch": status.get("batch"),
        "restarts in a row": (status.get("driver") or {}).get("restarts"),
    }
    known = [f"{name} {value}" for name, value in figures.items() if value is not None]
    if known:
        yield f"figures: {', '.join(known)}"


def _decisions(status: Object) -> Iterator[str]:
    decisions = (status.get("scaling") or {}).get("decisions") or []
    if decisions:
        yield "scaling"
    for one in decisions[-_DECISIONS:]:
        yield f"  {one.get('at')} {one.get('verdict')}: {one.get('reason', '')}"
