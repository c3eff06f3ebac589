"""Who owns a checkpoint that two StreamJoins name? The one that has run on it, else the older one, else the first by name.

All StreamJoins are known here by where their checkpoints lie, so that a look at one of them asks only those that lie in
or around its own. Law: the answer is that of a walk over all of them.

Cost: a document is judged once, when its spec is new; a question costs as many steps as the checkpoint's path has folders.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from joinop import places
from joinop.judge import Accepted, document, judge
from joinop.names import Key, Object, key
from joinop.places import Place

Order = tuple[bool, str, Key]  # the least owns what two want


@dataclass(frozen=True)
class _Wish:
    """A StreamJoin, and the checkpoint that it wants."""

    thing: Object
    place: Place | None = None  # None: it cannot run
    folder: str | None = None  # the same, as its spec calls it

    @property
    def order(self) -> Order:
        metadata = self.thing["metadata"]
        used = ((self.thing.get("status") or {}).get("checkpoint") or {}).get("folder")
        has_run_there = self.folder is not None and used == self.folder
        return not has_run_there, metadata.get("creationTimestamp", ""), key(self.thing)


@dataclass
class Rivals:
    """All StreamJoins."""

    unjudged: dict[Key, Object] = field(default_factory=dict)  # their specs are new
    _wishes: dict[Key, _Wish] = field(default_factory=dict)
    _at: dict[Place, set[Key]] = field(default_factory=lambda: defaultdict(set))  # whose checkpoint is there
    _below: dict[Place, set[Key]] = field(default_factory=lambda: defaultdict(set))  # or in a folder of it

    def put(self, thing: Object) -> None:
        """There is this StreamJoin, or this version of it."""
        known = self._wishes.get(key(thing))
        if known is not None and _mark(known.thing) == _mark(thing):
            self._wishes[key(thing)] = _Wish(thing, known.place, known.folder)
            self.unjudged.pop(key(thing), None)
        else:
            self.unjudged[key(thing)] = thing

    def drop(self, job: Key) -> None:
        """It is gone."""
        self.unjudged.pop(job, None)
        self._forget(job)

    def settle(self, job: Key) -> None:
        """Judge one whose spec is new."""
        thing = self.unjudged.pop(job)
        self._forget(job)
        wish = self._wishes[job] = _wish(thing)
        for place in _around(wish.place):
            self._below[place].add(job)
        if wish.place is not None:
            self._at[wish.place].add(job)

    def of(self, job: Key) -> Key | None:
        """The StreamJoin that owns the checkpoint of this one; None if nobody else does."""
        for new in tuple(self.unjudged):
            self.settle(new)
        mine = self._wishes.get(job)
        if mine is None:
            return None
        first = min((self._wishes[other].order for other in self._near(mine.place)), default=mine.order)
        return first[-1] if first < mine.order else None

    def _near(self, place: Place | None) -> Iterator[Key]:
        """Those whose checkpoints overlap."""
        for around in _around(place):
            yield from self._at.get(around, ())
        if place is not None:
            yield from self._below.get(place, ())

    def _forget(self, job: Key) -> None:
        known = self._wishes.pop(job, None)
        for found in (self._at, self._below):
            for place in _around(known.place if known is not None else None):
                if place in found:
                    found[place].discard(job)
                    if not found[place]:
                        del found[place]


def _wish(thing: Object) -> _Wish:
    verdict = judge(document(thing))
    if not isinstance(verdict, Accepted):
        return _Wish(thing)
    return _Wish(thing, places.checkpoint(verdict.model.spec, thing["metadata"]["namespace"]), verdict.folder)


def _mark(thing: Object) -> tuple[object, ...]:
    """Changes with the spec. The generation tells 1 from true, which are equal here."""
    metadata = thing["metadata"]
    return metadata.get("uid"), metadata.get("generation"), thing.get("spec")


def _around(place: Place | None) -> Iterator[Place]:
    """The place itself, and all that hold it."""
    if place is not None:
        yield place
        for folder in place.folder.parents:
            yield Place(place.claim, folder)
