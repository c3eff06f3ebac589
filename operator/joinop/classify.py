"""What does a change of the spec cost? Law: equal specs cost nothing, and every field has exactly one class.

nothing      the same
live         the running driver takes it over: executors, scaling, suspend
restart      another driver goes on from the checkpoint: image, resources, batches, output, …
checkpoint   stored state would not fit the query: refused, unless checkpoint.path or reset changed too
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from joinlib.plan import compare
from joinop.judge import Accepted
from joinop.leaves import LIVE

_SHOWN = 60  # characters of a value


class Cost(StrEnum):
    """What it costs to follow a change."""

    NOTHING = "nothing"
    LIVE = "live"
    RESTART = "restart"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True)
class Pinned:
    """The checkpoint that a driver has worked on."""

    folder: str
    fingerprint: dict[str, Any]


@dataclass(frozen=True)
class Change:
    """From the accepted document to a new one."""

    cost: Cost
    reasons: tuple[str, ...] = ()
    refused: bool = False


def classify(old: Accepted | None, new: Accepted, pinned: Pinned | None) -> Change:
    """The class of a change, with what has changed. Without `old` nothing runs: everything is new."""
    same = pinned is not None and pinned.folder == new.folder
    if pinned is not None and same and (reasons := tuple(compare(pinned.fingerprint, new.fingerprint))):
        return Change(Cost.CHECKPOINT, reasons, refused=True)
    if old is None:
        return Change(Cost.NOTHING)
    changed = {place: _said(place, old, new) for place in _changed(old.leaves, new.leaves)}
    if pinned is not None and not same:
        return Change(Cost.CHECKPOINT, (f"a new checkpoint begins in {new.folder}", *changed.values()))
    return Change(
        max((cost(place) for place in changed), key=list(Cost).index, default=Cost.NOTHING),
        tuple(changed.values()),
    )


def cost(place: str) -> Cost:
    """What a change of this field costs, the state apart."""
    return Cost.LIVE if LIVE.match(place) else Cost.RESTART


def _changed(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    for place in sorted({*old, *new}):
        if place not in old or place not in new or old[place] != new[place]:
            yield place


def _said(place: str, old: Accepted, new: Accepted) -> str:
    was, now = (str(each.leaves.get(place, "the default")) for each in (old, new))
    short = max(len(was), len(now)) <= _SHOWN and "\n" not in was + now
    return f"spec.{place}: {was} -> {now}" if short else f"spec.{place} changed"
