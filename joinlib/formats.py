"""The versions of a checkpoint's formats: which are written, and which are read. The one place that says so.

    streamjoin.json     identity    the others' versions too, so they are known before anything else is opened
    streamjoin.json     plan        the fingerprint (`model.fingerprint`)
    spark/offsets/N     offset      the source's envelope (`engine.composer`)
    state/manifests/N   manifest    (`state.manifest`)
    sources/NAME.jsonl  log         entries of inputs (`source.log`)
    timeline/M          timeline    batches of the past (`checkpoint.timeline`); says its version itself, as it may be lost
    segments            segment     Arrow streams, hash first (`state.segment`, `route.split`, ...)
    segments            hash        of keys and groups (`route.hash`), and the unit that it leads to

Law: the next version goes on from what a released version wrote. So a change that gives a format a new
version keeps the old one among those that are read, with a reader beside the format's own code; one release
later that reader may go. What a later version wrote is refused by name, before anything is changed: the
result may depend on a field that this version does not know.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from joinlib.errors import StateError


@dataclass(frozen=True)
class Format:
    """One stored format: its name, the version that is written and those that are read."""

    name: str
    writes: int
    reads: tuple[int, ...]

    def refused(self, version: Any, place: str) -> str | None:
        """Return why this version of StreamJoin cannot read `version`, or None if it can.

        `place` says where it was found.
        """
        if version in self.reads:
            return None
        known = " and ".join(map(str, self.reads))
        on = _BETWEEN if isinstance(version, int) and version < self.writes else _LATER
        return f"{place} has {self.name} version {version}, this StreamJoin reads {known}; {on}"

    def strange(self, found: Iterable[str], known: Iterable[str], place: str) -> str | None:
        """Return why the fields cannot be read, or None if all are known.

        An unknown field means that a later version wrote it.
        """
        fields = ", ".join(sorted(set(found) - set(known)))
        if not fields:
            return None
        unknown = f"fields that {self.name} version {self.writes} of this StreamJoin does not know ({fields})"
        return f"{place} has {unknown}; {_LATER}"

    def check(self, version: Any, place: str) -> None:
        """Raise StateError if the version cannot be read."""
        if why := self.refused(version, place):
            raise StateError(why)

    def check_fields(self, found: Iterable[str], known: Iterable[str], place: str) -> None:
        """Raise StateError if a field is unknown."""
        if why := self.strange(found, known, place):
            raise StateError(why)


IDENTITY = Format("identity", writes=2, reads=(1, 2))  # version 1 did not hold these versions
PLAN = Format("plan", writes=1, reads=(1,))
OFFSET = Format(
    "offset", writes=4, reads=(2, 3, 4)
)  # version 2 knew no small batches, 3 no rules of later stages
MANIFEST = Format("manifest", writes=2, reads=(2,))
LOG = Format("log", writes=1, reads=(1,))
SEGMENT = Format("segment", writes=1, reads=(1,))
HASH = Format("hash", writes=1, reads=(1,))
TIMELINE = Format("timeline", writes=1, reads=(1,))

STORED = (OFFSET, MANIFEST, LOG, SEGMENT, HASH)
"""The formats whose versions the identity holds; the plan holds its own."""

FIRST = {"offset": 2, "manifest": 2, "log": 1, "segment": 1, "hash": 1}
"""The versions of a checkpoint whose identity does not name them."""


def written() -> dict[str, int]:
    """Return the versions that a checkpoint of this release holds."""
    return {f.name: f.writes for f in STORED}


def check(found: Mapping[str, int], place: str) -> None:
    """Check that everything in a checkpoint can be read.

    Raises:
        StateError: A version or a format is not known.
    """
    for format in STORED:
        format.check(found.get(format.name), place)
    strangers = sorted(set(found) - {f.name for f in STORED})
    if strangers:
        raise StateError(
            f"{place} has formats that this StreamJoin does not know ({', '.join(strangers)}); {_LATER}"
        )


_LATER = "a later version wrote it: go on with that one, or start with a new checkpoint folder"
_BETWEEN = (
    "run a version in between once, which reads it and writes it again, or start with a new checkpoint folder"
)
