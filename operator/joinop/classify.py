"""Classify what a change of the spec costs.

Law: equal specs cost nothing, and every field has exactly one class.

nothing      the same
live         the running driver adopts it: executors, scaling, suspend
restart      another driver goes on from the checkpoint: image, resources, batches, output, …
checkpoint   stored state would not fit the query: refused, unless checkpoint.path or reset changed too. As long as
             columns of a registry are not known it is the driver that finds out, as it starts: see admission
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from joinlib.model.fingerprint import compare
from joinop.admission import Admitted, Pinned
from joinop.flatten import LIVE

_SHOWN = 60  # characters of a value


class Cost(StrEnum):
    """The cost of following a change."""

    NOTHING = "nothing"
    LIVE = "live"
    RESTART = "restart"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True)
class Change:
    """The change from the accepted document to a new one."""

    cost: Cost
    reasons: tuple[str, ...] = ()
    refused: bool = False


def classify(old: Admitted | None, new: Admitted, pinned: Pinned | None) -> Change:
    """Return the class of a change and what has changed. Without `old` nothing runs yet."""
    same = pinned is not None and pinned.folder == new.folder
    if pinned is not None and same and (reasons := differences(pinned, new)):
        return Change(Cost.CHECKPOINT, reasons, refused=True)
    if old is None:
        return Change(Cost.NOTHING)
    changed = {place: _description(place, old, new) for place in _changed(old.fields, new.fields)}
    if pinned is not None and not same:
        return Change(Cost.CHECKPOINT, (f"a new checkpoint begins in {new.folder}", *changed.values()))
    return Change(
        max((cost(place) for place in changed), key=list(Cost).index, default=Cost.NOTHING),
        tuple(changed.values()),
    )


def differences(pinned: Pinned, new: Admitted) -> tuple[str, ...]:
    """Return why the state of a checkpoint cannot serve a document; nothing where only the driver can tell."""
    if pinned.fingerprint is None or new.fingerprint is None:
        return ()
    return tuple(compare(pinned.fingerprint, new.fingerprint))


def cost(place: str) -> Cost:
    """The cost of changing this field, apart from its effect on stored state."""
    return Cost.LIVE if LIVE.match(place) else Cost.RESTART


def _changed(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    for place in sorted({*old, *new}):
        if place not in old or place not in new or old[place] != new[place]:
            yield place


def _description(place: str, old: Admitted, new: Admitted) -> str:
    was, now = (str(each.fields.get(place, "the default")) for each in (old, new))
    short = max(len(was), len(now)) <= _SHOWN and "\n" not in was + now
    return f"spec.{place}: {was} -> {now}" if short else f"spec.{place} changed"
