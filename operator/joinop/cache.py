"""What is in the cluster, as far as we have heard? Fed by watches, put right by listings.

Laws: an older version of an object never replaces a newer one, a listing that is older than an object does not delete it, and
one that is older than a deletion does not bring back what went. Memory: what decisions read of each object, and no more.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from joinop import names
from joinop.kinds import POD, STREAMJOIN, Kind
from joinop.names import Key, Object, key
from joinop.rivals import Rivals

Part = tuple[str, str]  # kind and name of an object of a job
_POD_STATUS = ("phase", "reason", "message", "conditions", "containerStatuses", "podIP")
_POD_SPEC = ("nodeName",)
_POD_METADATA = ("name", "namespace", "uid", "resourceVersion", "labels", "annotations", "deletionTimestamp")


@dataclass
class Cache:
    """Objects, the StreamJoins among them, by the job that they belong to."""

    parts: dict[Key, dict[Part, Object]] = field(default_factory=dict)
    rivals: Rivals = field(default_factory=Rivals)  # all StreamJoins, by their checkpoints
    _gone: dict[tuple[str, str], int] = field(
        default_factory=dict
    )  # kind and uid of what went: its last version
    _listed: dict[str, int] = field(default_factory=dict)  # version of the last listing, by kind

    def put(self, kind: Kind, thing: Object) -> Key | None:
        """Keep it, unless a newer version is known; the job that it belongs to."""
        owner = _owner(kind, thing)
        if owner is not None and version(thing) > self._gone.get(_one(kind, thing), -1):
            parts, part = self.parts.setdefault(owner, {}), (kind.kind, thing["metadata"]["name"])
            if part not in parts or version(parts[part]) <= version(thing):
                parts[part] = _slim(kind, thing)
                if kind is STREAMJOIN:
                    self.rivals.put(parts[part])
        return owner

    def drop(self, kind: Kind, thing: Object) -> Key | None:
        """Forget it, unless another took its name; the job that it belonged to."""
        owner = _owner(kind, thing)
        if owner is not None:
            self._gone[_one(kind, thing)] = version(thing)
            parts, part = self.parts.get(owner, {}), (kind.kind, thing["metadata"]["name"])
            if part in parts and parts[part]["metadata"]["uid"] == thing["metadata"]["uid"]:
                del parts[part]
                if kind is STREAMJOIN:
                    self.rivals.drop(owner)
            if not parts:
                self.parts.pop(owner, None)
        return owner

    def replace(self, kind: Kind, namespace: str | None, listed: Iterable[Object], at: int) -> list[Object]:
        """These were all there were of a kind as of a version; what we had not heard of them. Deleted ones are among it."""
        found = {thing["metadata"]["uid"]: thing for thing in listed}
        known = {thing["metadata"]["uid"]: thing for thing in self._all(kind, namespace)}
        gone = [thing for uid, thing in known.items() if uid not in found and version(thing) <= at]
        news = [thing for thing in found.values() if self.is_news(kind, thing)]
        for thing in gone:
            self.drop(kind, thing)
        for thing in news:
            self.put(kind, thing)
        self._forget_deletions(kind, at)
        return gone + news

    def is_news(self, kind: Kind, thing: Object) -> bool:
        """It is newer than what is known of it, or of its deletion."""
        owner = _owner(kind, thing)
        if owner is None:
            return False
        known = self.parts.get(owner, {}).get((kind.kind, thing["metadata"]["name"]))
        if known is not None and known["metadata"]["uid"] == thing["metadata"]["uid"]:
            return version(known) < version(thing)
        return version(thing) > self._gone.get(_one(kind, thing), -1)

    def job(self, job: Key) -> Object | None:
        """The StreamJoin itself."""
        return self.parts.get(job, {}).get((STREAMJOIN.kind, job.name))

    def jobs(self) -> list[Object]:
        """All StreamJoins."""
        return [thing for job in self.parts if (thing := self.job(job)) is not None]

    def children(self, job: Key) -> dict[Part, Object]:
        """What was made for a job, its pods apart."""
        others = (POD.kind, STREAMJOIN.kind)
        return {part: thing for part, thing in self.parts.get(job, {}).items() if part[0] not in others}

    def pods(self, job: Key) -> tuple[Object, ...]:
        """The pods of a job, by name."""
        found = self.parts.get(job, {})
        return tuple(found[part] for part in sorted(found) if part[0] == POD.kind)

    def _forget_deletions(self, kind: Kind, at: int) -> None:
        """Nothing is told any more that was true before the listing that came before this one."""
        before, self._listed[kind.kind] = self._listed.get(kind.kind, 0), at
        for one in [one for one, last in self._gone.items() if one[0] == kind.kind and last <= before]:
            del self._gone[one]

    def _all(self, kind: Kind, namespace: str | None) -> Iterator[Object]:
        for job, parts in self.parts.items():
            if namespace in (None, job.namespace):
                yield from (thing for part, thing in parts.items() if part[0] == kind.kind)


def version(thing: Object) -> int:
    """Versions are numbers in order: etcd has always done it, Kubernetes promises it."""
    found = thing["metadata"].get("resourceVersion", "0")
    return int(found) if found.isdecimal() else 0


def _one(kind: Kind, thing: Object) -> tuple[str, str]:
    return kind.kind, thing["metadata"]["uid"]


def _owner(kind: Kind, thing: Object) -> Key | None:
    if kind is STREAMJOIN:
        return key(thing)
    name = (thing["metadata"].get("labels") or {}).get(names.INSTANCE)
    return Key(thing["metadata"]["namespace"], name) if name else None


def _slim(kind: Kind, thing: Object) -> Object:
    if kind is POD:
        parts = {"metadata": _POD_METADATA, "spec": _POD_SPEC, "status": _POD_STATUS}
        return {
            part: {f: thing[part][f] for f in fields if f in thing.get(part, {})}
            for part, fields in parts.items()
        }
    metadata = {name: value for name, value in thing["metadata"].items() if name != "managedFields"}
    return {**thing, "kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
