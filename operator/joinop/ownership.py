"""Ownership of checkpoints.

If two StreamJoins name one, it belongs to the one that has run on it, else to the older one, else to the
first by name.

StreamJoins are indexed by the paths of their checkpoints, so that only checkpoints in or around a job's own
are compared. Law: the answer is the same as that of a scan over all StreamJoins.

Cost: a document is validated once, when its spec is new; a query takes one step for each folder of the
checkpoint's path.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from joinop import volumes
from joinop.admission import Admitted, verdict_of
from joinop.names import JobKey, Object, key
from joinop.volumes import VolumePath

Order = tuple[bool, str, JobKey]  # the least of two claims wins


@dataclass(frozen=True)
class _Claim:
    """A StreamJoin's claim to a checkpoint."""

    obj: Object
    path: VolumePath | None = None  # None: its document is rejected
    folder: str | None = None  # the same, as in its spec

    @property
    def order(self) -> Order:
        metadata = self.obj["metadata"]
        used = ((self.obj.get("status") or {}).get("checkpoint") or {}).get("folder")
        has_run_there = self.folder is not None and used == self.folder
        return not has_run_there, metadata.get("creationTimestamp", ""), key(self.obj)


@dataclass
class CheckpointOwners:
    """The claims of all StreamJoins."""

    unvalidated: dict[JobKey, Object] = field(default_factory=dict)  # StreamJoins whose specs are new
    _claims: dict[JobKey, _Claim] = field(default_factory=dict)
    # Jobs whose checkpoint is here.
    _at: dict[VolumePath, set[JobKey]] = field(default_factory=lambda: defaultdict(set))
    # Jobs whose checkpoint is here or in a folder below.
    _below: dict[VolumePath, set[JobKey]] = field(default_factory=lambda: defaultdict(set))

    def put(self, obj: Object) -> None:
        """Add a StreamJoin, or a new version of it."""
        known = self._claims.get(key(obj))
        if known is not None and _mark(known.obj) == _mark(obj):
            self._claims[key(obj)] = _Claim(obj, known.path, known.folder)
            self.unvalidated.pop(key(obj), None)
        else:
            self.unvalidated[key(obj)] = obj

    def drop(self, job: JobKey) -> None:
        """Remove a StreamJoin."""
        self.unvalidated.pop(job, None)
        self._forget(job)

    def resolve(self, job: JobKey) -> None:
        """Validate a StreamJoin whose spec is new, and record its claim."""
        obj = self.unvalidated.pop(job)
        self._forget(job)
        claim = self._claims[job] = _claim(obj)
        for path in _with_parents(claim.path):
            self._below[path].add(job)
        if claim.path is not None:
            self._at[claim.path].add(job)

    def owner_of(self, job: JobKey) -> JobKey | None:
        """Return the other StreamJoin that owns the checkpoint of this one; None if there is none."""
        for new in tuple(self.unvalidated):
            self.resolve(new)
        mine = self._claims.get(job)
        if mine is None:
            return None
        first = min((self._claims[other].order for other in self._overlapping(mine.path)), default=mine.order)
        return first[-1] if first < mine.order else None

    def _overlapping(self, path: VolumePath | None) -> Iterator[JobKey]:
        """Yield the jobs whose checkpoints overlap."""
        for parent in _with_parents(path):
            yield from self._at.get(parent, ())
        if path is not None:
            yield from self._below.get(path, ())

    def _forget(self, job: JobKey) -> None:
        known = self._claims.pop(job, None)
        for found in (self._at, self._below):
            for path in _with_parents(known.path if known is not None else None):
                if path in found:
                    found[path].discard(job)
                    if not found[path]:
                        del found[path]


def _claim(obj: Object) -> _Claim:
    verdict = verdict_of(obj)
    if not isinstance(verdict, Admitted):
        return _Claim(obj)
    return _Claim(obj, volumes.checkpoint(verdict.model.spec, obj["metadata"]["namespace"]), verdict.folder)


def _mark(obj: Object) -> tuple[object, ...]:
    """Return what changes with the spec.

    The generation distinguishes 1 from true, which are equal in Python.
    """
    metadata = obj["metadata"]
    return metadata.get("uid"), metadata.get("generation"), obj.get("spec")


def _with_parents(path: VolumePath | None) -> Iterator[VolumePath]:
    """Yield the path and all its parents."""
    if path is not None:
        yield path
        for folder in path.folder.parents:
            yield VolumePath(path.claim, folder)
