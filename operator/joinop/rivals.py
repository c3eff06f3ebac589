"""Who owns a checkpoint that two StreamJoins name? The one that has run on it, else the older one, else the first by name."""

from collections.abc import Iterable

from joinop import places
from joinop.judge import Accepted, document, judge
from joinop.names import Key, Object, key


def rival(thing: Object, all_: Iterable[Object]) -> Key | None:
    """The StreamJoin that owns the checkpoint of this one; None if nobody else does."""
    place, mine = _place(thing), _order(thing)
    if place is None:
        return None
    before = (other for other in all_ if _order(other) < mine and key(other) != key(thing))
    owners = [_order(other) for other in before if (theirs := _place(other)) and theirs.overlaps(place)]
    return min(owners)[-1] if owners else None


def _place(thing: Object) -> places.Place | None:
    verdict = judge(document(thing))
    if not isinstance(verdict, Accepted):
        return None
    return places.checkpoint(verdict.model.spec, thing["metadata"]["namespace"])


def _order(thing: Object) -> tuple[bool, str, Key]:
    return not _has_run_there(thing), thing["metadata"].get("creationTimestamp", ""), key(thing)


def _has_run_there(thing: Object) -> bool:
    verdict = judge(document(thing))
    used = thing.get("status", {}).get("checkpoint", {}).get("folder")
    return isinstance(verdict, Accepted) and used == verdict.folder
