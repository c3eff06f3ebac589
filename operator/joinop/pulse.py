"""Is the operator alive? A watch that dies says nothing, so it is found out: it owes what a listing or our own write has shown.

dead watch     something that was listed or written has still not come by the watch a minute later
dead resync    two listings in a row have not come
"""

from dataclasses import dataclass, field

from joinop.cache import version
from joinop.kinds import Kind
from joinop.names import Object

LATE_S = 60.0
SILENT_S = 1500.0


@dataclass
class Pulse:
    """What watches have told, and what they owe."""

    listed_at: float = float("inf")  # when everything was listed last; at first, the start; never before it
    told_at: dict[str, float] = field(default_factory=dict)  # by kind
    # Kind, uid -> version, since.
    owed: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)

    def begin(self, now: float) -> None:
        """This operator leads from now on; one that waits is well."""
        self.listed_at = now

    def told(self, kind: Kind, thing: Object, now: float) -> None:
        """A watch has told of an object."""
        self.told_at[kind.plural] = now
        at = (kind.plural, thing["metadata"]["uid"])
        if at in self.owed and self.owed[at][0] <= version(thing):
            del self.owed[at]

    def missed(self, kind: Kind, thing: Object, now: float) -> None:
        """A listing, or the answer to a write, has shown what no watch has told."""
        at = (kind.plural, thing["metadata"]["uid"])
        self.owed.setdefault(at, (version(thing), now))

    def gone(self, kind: Kind, thing: Object) -> None:
        """An object is no longer there: nothing is owed for it."""
        self.owed.pop((kind.plural, thing["metadata"]["uid"]), None)

    def illness(self, now: float) -> str | None:
        """Why the operator should be restarted; None if it should not."""
        if now - self.listed_at > SILENT_S:
            return f"nothing was listed for {now - self.listed_at:.0f} s"
        late = {kind for (kind, _), (_, since) in self.owed.items() if now - since > LATE_S}
        return f"the watch of {', '.join(sorted(late))} is dead" if late else None
