"""Which offsets does slice n stand for? A log of how far each partition was known, cut into slices; pure.

    entry   {"at":  [[topic, partition, offset]],                     where partitions begin, or begin again
             "cut": [[topic, partition, start, stop, rows, bytes]],   offsets seen since the entry before
             "lost": n,                                               messages that expired unread
             "ids": {topic: id}}                                      the topic's id from here on

Each cut makes slices of `rows` messages of about `bytes` bytes each. The slices of an entry are interleaved
by their relative position in their own cut, so that a backlog is read through all its partitions at once and
event time advances evenly. A topic that was deleted and created again has the name and the offsets of the
old one, but another id: what was known of its partitions no longer applies. Entries of logs older than the
ids have none, and match any id. Entries whose slices were all read are folded into one that begins the log,
so it does not grow with time.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from joinlib.errors import StateError
from joinlib.source.log import Entry
from joinlib.source.slices import SLICE_ROWS, Slice

Partition = tuple[str, int]
SLICE_BYTES = 16 << 20  # estimated bytes of messages per slice
_KEPT = 1024  # the newest entries always stay: Spark may run the last few batches again


@dataclass(frozen=True)
class Cut:
    """Offsets [start, stop) of one partition, in slices of `rows`."""

    topic: str
    partition: int
    start: int
    stop: int
    rows: int
    bytes: int  # per message, about

    @property
    def slices(self) -> int:
        return -(-(self.stop - self.start) // self.rows)


def cut(partition: Partition, start: int, stop: int, message_bytes: int) -> Cut:
    """Cut offsets into slices that are bounded in messages and bytes."""
    rows = min(max(SLICE_BYTES // max(message_bytes, 1), 1), SLICE_ROWS)
    return Cut(*partition, start, stop, rows, message_bytes)


class OffsetRanges:
    """The entries of a log, ready to be looked up. A look-up costs O(log entries) and what is returned."""

    def __init__(self, place: str, entries: Iterable[Entry]) -> None:
        self.place = place
        self.at: dict[Partition, int] = {}  # the next offset of each partition
        self.ids: dict[str, str] = {}  # topic ids by name
        self.slices = self.rows = self.lost = 0
        self.base = 0  # the number of slices that were folded away
        self._seen: list[tuple[int, int, tuple[Cut, ...]]] = []  # (first slice, rows before, cuts)
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        if "base" in entry:
            self.base = self.slices = entry["base"]
            self.rows = entry["rows"]
        self.lost += entry.get("lost", 0)
        anew = {topic for topic, id in entry.get("ids", {}).items() if self.ids.get(topic, id) != id}
        self.ids.update(entry.get("ids", {}))
        self.at = {p: offset for p, offset in self.at.items() if p[0] not in anew}
        for topic, partition, offset in entry.get("at", ()):
            self.at[topic, partition] = offset
        cuts = tuple(Cut(*c) for c in entry.get("cut", ()))
        for c in cuts:
            self.at[c.topic, c.partition] = c.stop
        if cuts:
            self._seen.append((self.slices, self.rows, cuts))
            self.slices += sum(c.slices for c in cuts)
            self.rows += sum(c.stop - c.start for c in cuts)

    def between(self, start: int, stop: int) -> list[Slice]:
        """Return slices [start, stop).

        Raises:
            StateError: The log does not know them.
        """
        if stop > self.slices or (start < stop and start < self.base):
            raise StateError(
                f"{self.place}: lists slices {self.base} to {self.slices}, but {start} to {stop} were read;"
                " restore the file or start with a new checkpoint"
            )
        found: list[Slice] = []
        at = self._position(start)
        while start + len(found) < stop:
            first, _, cuts = self._seen[at]
            found += _slices(first, cuts)[start + len(found) - first : stop - first]
            at += 1
        return found

    def rows_before(self, start: int) -> int:
        """Return the number of messages in slices [0, start)."""
        if start >= self.slices or not self._seen:
            return self.rows
        first, rows, cuts = self._seen[self._position(start)]
        return rows + sum(s.weight for s in _slices(first, cuts)[: max(start - first, 0)])

    def folded(self, before: int) -> list[Entry] | None:
        """Return a shorter log that knows every slice from `before` on; None if folding does not pay."""
        keep = min(self._position(before), len(self._seen) - _KEPT)
        if keep < _KEPT:
            return None
        first, rows, _ = self._seen[keep]
        starts = dict(self.at)
        for _, _, cuts in reversed(self._seen[keep:]):
            starts.update({(c.topic, c.partition): c.start for c in cuts})
        at = [[*p, offset] for p, offset in starts.items()]
        base = {"base": first, "rows": rows, "lost": self.lost, "at": at, "ids": self.ids}
        return [base, *({"cut": [list(vars(c).values()) for c in cuts]} for _, _, cuts in self._seen[keep:])]

    def _position(self, start: int) -> int:
        """Return the last entry that begins at or before the slice."""
        return max(bisect_right(self._seen, start, key=lambda s: s[0]) - 1, 0)


def advance(
    at: Mapping[Partition, int],
    now: Mapping[Partition, tuple[int, int]],
    latest: bool,
    message_bytes: Mapping[str, int],
    anew: Collection[str] = (),
) -> tuple[Entry, dict[Partition, tuple[int, int, int]]]:
    """Return the next log entry, and the partitions whose next offset is gone, as (next, low, high).

    The latter begin again at the lowest offset that exists. A partition that appears later than the first
    ones begins at its beginning; otherwise messages sent before it was noticed would be lost.

    Args:
        at: The next offset to read, by partition.
        now: The (low, high) offsets that the brokers report, by partition.
        latest: Whether the input starts at the latest offsets.
        message_bytes: The mean bytes of a message, by topic.
        anew: Topics that were deleted and created again, so nothing of the old ones is left.
    """
    begun: list[list[object]] = []
    cuts: list[Cut] = []
    missing: dict[Partition, tuple[int, int, int]] = {}
    lost = 0
    for partition, (low, high) in sorted(now.items()):
        start = at.get(partition)
        if start is None:
            start = high if latest and not at else low
            begun.append([*partition, start])
        elif partition[0] in anew or not low <= start <= high:
            missing[partition] = start, low, high
            lost += max(low - start, 0)
            start = low
            begun.append([*partition, start])
        if high > start:
            cuts.append(cut(partition, start, high, message_bytes[partition[0]]))
    entry: Entry = {"at": begun, "cut": [list(vars(c).values()) for c in cuts], "lost": lost}
    return {key: value for key, value in entry.items() if value}, missing


@lru_cache(maxsize=64)
def _slices(first: int, cuts: tuple[Cut, ...]) -> tuple[Slice, ...]:
    """Return the slices of an entry, in order. Slice k of n is at (k + 1) / n of its cut."""
    parts = sorted(((k + 1) / c.slices, number, k) for number, c in enumerate(cuts) for k in range(c.slices))
    return tuple(_slice(first + i, cuts[number], k) for i, (_, number, k) in enumerate(parts))


def _slice(index: int, c: Cut, k: int) -> Slice:
    start = c.start + k * c.rows
    stop = min(start + c.rows, c.stop)
    count = stop - start
    return Slice(
        index, None, count, path=c.topic, size=count * c.bytes, group=c.partition, start=start, stop=stop
    )
