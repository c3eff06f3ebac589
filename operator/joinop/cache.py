"""The cluster as the operator knows it: fed by watches and by the answers to writes, corrected by lists.

Laws: an older version of an object never replaces a newer one; a list that is older than an object does not
delete it; a list that is older than a deletion does not bring the object back. Memory: only the fields that
decisions read.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from joinlib import deploy
from joinlib.deploy import POD, Resource
from joinop.names import JobKey, Object, key
from joinop.ownership import CheckpointOwners
from joinop.resources import STREAMJOIN

Part = tuple[str, str]  # kind and name of an object of a job
_POD_STATUS = ("phase", "reason", "message", "conditions", "containerStatuses", "podIP")
_POD_SPEC = ("nodeName",)
_POD_METADATA = ("name", "namespace", "uid", "resourceVersion", "labels", "annotations", "deletionTimestamp")


@dataclass
class ObjectCache:
    """Objects, StreamJoins included, by the job that they belong to."""

    parts: dict[JobKey, dict[Part, Object]] = field(default_factory=dict)
    # All StreamJoins, by their checkpoints.
    checkpoint_owners: CheckpointOwners = field(default_factory=CheckpointOwners)
    # Last version of each deleted object, by kind and uid.
    _gone: dict[tuple[str, str], int] = field(default_factory=dict)
    _listed: dict[str, int] = field(default_factory=dict)  # version of the last list, by kind

    def put(self, resource: Resource, obj: Object) -> JobKey | None:
        """Store an object unless a newer version is known. Returns the job that it belongs to."""
        owner = _owner(resource, obj)
        if owner is not None and version(obj) > self._gone.get(_one(resource, obj), -1):
            parts, part = self.parts.setdefault(owner, {}), (resource.kind, obj["metadata"]["name"])
            if part not in parts or version(parts[part]) <= version(obj):
                parts[part] = _slim(resource, obj)
                if resource is STREAMJOIN:
                    self.checkpoint_owners.put(parts[part])
        return owner

    def drop(self, resource: Resource, obj: Object) -> JobKey | None:
        """Remove an object unless a later one has taken its name. Returns the job that it belonged to."""
        owner = _owner(resource, obj)
        if owner is not None:
            self._gone[_one(resource, obj)] = version(obj)
            parts, part = self.parts.get(owner, {}), (resource.kind, obj["metadata"]["name"])
            if part in parts and parts[part]["metadata"]["uid"] == obj["metadata"]["uid"]:
                del parts[part]
                if resource is STREAMJOIN:
                    self.checkpoint_owners.drop(owner)
            if not parts:
                self.parts.pop(owner, None)
        return owner

    def replace(
        self, resource: Resource, namespace: str | None, listed: Iterable[Object], at: int
    ) -> list[Object]:
        """Take in a complete list of a resource as of a version.

        Returns what is new in it, deleted objects included.
        """
        found = {obj["metadata"]["uid"]: obj for obj in listed}
        known = {obj["metadata"]["uid"]: obj for obj in self._all(resource, namespace)}
        gone = [obj for uid, obj in known.items() if uid not in found and version(obj) <= at]
        news = [obj for obj in found.values() if self.is_news(resource, obj)]
        for obj in gone:
            self.drop(resource, obj)
        for obj in news:
            self.put(resource, obj)
        self._forget_deletions(resource, at)
        return gone + news

    def is_news(self, resource: Resource, obj: Object) -> bool:
        """Is it newer than the known version, or than the known deletion?"""
        owner = _owner(resource, obj)
        if owner is None:
            return False
        known = self.parts.get(owner, {}).get((resource.kind, obj["metadata"]["name"]))
        if known is not None and known["metadata"]["uid"] == obj["metadata"]["uid"]:
            return version(known) < version(obj)
        return version(obj) > self._gone.get(_one(resource, obj), -1)

    def job(self, job: JobKey) -> Object | None:
        """The StreamJoin itself."""
        return self.parts.get(job, {}).get((STREAMJOIN.kind, job.name))

    def jobs(self) -> list[Object]:
        """All StreamJoins."""
        return [obj for job in self.parts if (obj := self.job(job)) is not None]

    def children(self, job: JobKey) -> dict[Part, Object]:
        """The objects that were made for a job, without its pods."""
        others = (POD.kind, STREAMJOIN.kind)
        return {part: obj for part, obj in self.parts.get(job, {}).items() if part[0] not in others}

    def pods(self, job: JobKey) -> tuple[Object, ...]:
        """The pods of a job, by name."""
        found = self.parts.get(job, {})
        return tuple(found[part] for part in sorted(found) if part[0] == POD.kind)

    def _forget_deletions(self, resource: Resource, at: int) -> None:
        """Drop records of deletions: no watch delivers what is older than the previous list."""
        before, self._listed[resource.kind] = self._listed.get(resource.kind, 0), at
        for one in [one for one, last in self._gone.items() if one[0] == resource.kind and last <= before]:
            del self._gone[one]

    def _all(self, resource: Resource, namespace: str | None) -> Iterator[Object]:
        for job, parts in self.parts.items():
            if namespace in (None, job.namespace):
                yield from (obj for part, obj in parts.items() if part[0] == resource.kind)


def version(obj: Object) -> int:
    """The resource version as a number. Kubernetes promises that they are ordered."""
    found = obj["metadata"].get("resourceVersion", "0")
    return int(found) if found.isdecimal() else 0


def _one(resource: Resource, obj: Object) -> tuple[str, str]:
    return resource.kind, obj["metadata"]["uid"]


def _owner(resource: Resource, obj: Object) -> JobKey | None:
    if resource is STREAMJOIN:
        return key(obj)
    name = (obj["metadata"].get("labels") or {}).get(deploy.INSTANCE)
    return JobKey(obj["metadata"]["namespace"], name) if name else None


def _slim(resource: Resource, obj: Object) -> Object:
    if resource is POD:
        parts = {"metadata": _POD_METADATA, "spec": _POD_SPEC, "status": _POD_STATUS}
        return {
            part: {f: obj[part][f] for f in fields if f in obj.get(part, {})}
            for part, fields in parts.items()
        }
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
