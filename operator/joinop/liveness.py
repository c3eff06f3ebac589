"""Liveness of the operator. A dead watch is silent, so it is found by what it fails to deliver.

dead watch     a version that a list or our own write has shown was not delivered by the watch within a minute
dead resync    two lists in a row have not come
"""

from dataclasses import dataclass, field

from joinlib.deploy import Resource
from joinop.cache import version
from joinop.names import Object

LATE_S = 60.0
SILENT_S = 1500.0


@dataclass
class Liveness:
    """Versions that watches have delivered, and that they are expected to deliver."""

    listed_at: float = float("inf")  # when everything was listed last, or the operator began to lead
    event_at: dict[str, float] = field(default_factory=dict)  # by kind
    # Resource, uid -> version, since.
    expected: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)

    def begin(self, now: float) -> None:
        """This operator leads from now on. One that waits is always healthy."""
        self.listed_at = now

    def event_seen(self, resource: Resource, obj: Object, now: float) -> None:
        """A watch has delivered an object."""
        self.event_at[resource.plural] = now
        at = (resource.plural, obj["metadata"]["uid"])
        if at in self.expected and self.expected[at][0] <= version(obj):
            del self.expected[at]

    def expect(self, resource: Resource, obj: Object, now: float) -> None:
        """A list, or the answer to a write, has shown a version that the watch must deliver."""
        at = (resource.plural, obj["metadata"]["uid"])
        self.expected.setdefault(at, (version(obj), now))

    def deleted(self, resource: Resource, obj: Object) -> None:
        """An object is gone: nothing is expected of it."""
        self.expected.pop((resource.plural, obj["metadata"]["uid"]), None)

    def failure(self, now: float) -> str | None:
        """Return why the operator should be restarted; None if it is healthy."""
        if now - self.listed_at > SILENT_S:
            return f"nothing was listed for {now - self.listed_at:.0f} s"
        overdue = {plural for (plural, _), (_, since) in self.expected.items() if now - since > LATE_S}
        return f"the watch of {', '.join(sorted(overdue))} is dead" if overdue else None
