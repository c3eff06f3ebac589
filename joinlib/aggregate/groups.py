"""The groups of a unit, stored as segments of partials; and its bags, stored in the same way.

Law: the merge of all segments is the partial, or the bag, of all rows so far.

A batch's rows become a segment, sorted by hash. It is merged with preceding segments while they are
less than twice as large, so sizes fall by half or more: log2(groups) segments, with at most twice as many
rows as groups, and a row is rewritten log2(groups) times. What came and has gone again is dropped by a merge of
both. Files, names and digests are those of `state.segment`; pure functions of (segments, rows).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.aggregate import bag as bags
from joinlib.aggregate.partial import living, merge, schema
from joinlib.arrays import U64
from joinlib.model.bags import Bag, bags_of
from joinlib.model.grouping import Grouping, Release
from joinlib.model.inputs import HASH
from joinlib.model.time import ALWAYS, NEVER
from joinlib.model.tuning import Tuning
from joinlib.state import segment
from joinlib.state.manifest import Manifest, Run, Segment, SideManifest
from joinlib.state.unit import retire


@dataclass(frozen=True)
class Family:
    """What the segments of one kind hold, and how they are merged."""

    prefix: str  # of their names
    schema: pa.Schema
    merge: Callable[[Sequence[pa.RecordBatch]], pa.RecordBatch]
    kept: Callable[[pa.RecordBatch], pa.RecordBatch]  # what is written of merged rows, sorted by hash
    release: Release | None


def of_partials(grouping: Grouping) -> Family:
    """Return the family of partials."""

    def kept(rows: pa.RecordBatch) -> pa.RecordBatch:
        rows = living(rows, grouping)
        return rows.take(pa.array(np.argsort(rows.column(HASH).to_numpy(), kind="stable")))

    return Family("groups", schema(grouping), lambda parts: merge(parts, grouping), kept, grouping.release)


def of_bag(grouping: Grouping, number: int, bag: Bag) -> Family:
    """Return the family of a bag, whose merges are sorted."""
    return Family(
        f"bag{number}",
        bags.schema(grouping, bag),
        lambda parts: bags.merged(parts, grouping, bag),
        lambda rows: rows,
        grouping.release,
    )


def families(grouping: Grouping) -> tuple[Family, ...]:
    """Return what is kept of groups: partials, and bags in their order."""
    return of_partials(grouping), *(of_bag(grouping, at, bag) for at, bag in enumerate(bags_of(grouping), 1))


@dataclass
class Groups:
    """The segments of one family of one unit, oldest first.

    `add` and `release` change what is to be written; `write` writes it.
    """

    folder: Path
    family: Family
    segments: tuple[Segment, ...]
    waiting: pa.RecordBatch | None = None

    def stored(self, sought: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Return stored rows of the groups of `sought`, and possibly of others with the same hashes.

        O(sought * log groups).
        """
        hashes = np.unique(sought.column(HASH).to_numpy())
        return [rows for s in self.segments if (rows := with_hashes(self.read(s), hashes)).num_rows]

    def parts(self) -> list[pa.RecordBatch]:
        """Return the rows of all segments, memory-mapped."""
        return [self.read(s) for s in self.segments]

    def add(self, part: pa.RecordBatch) -> None:
        """Take a batch's rows, to be written by `write`."""
        if part.num_rows:
            self.waiting = part

    def release(self, bound: int) -> pa.RecordBatch:
        """Remove and return the groups whose release key is below `bound`; with ALWAYS, all groups."""
        due: list[pa.RecordBatch] = []
        rest: list[pa.RecordBatch] = []
        touched = [s for s in self.segments if s.low < bound or bound == ALWAYS]
        stay = [s for s in self.segments if s not in touched]
        parts = [self.read(s) for s in touched] + ([self.waiting] if self.waiting is not None else [])
        for part in parts:
            mask = self._below(part, bound)
            due.append(part.filter(mask))
            rest.append(part.filter(pc.invert(mask)))
        self.segments = tuple(stay)
        left = self.family.merge(rest)
        self.waiting = left if left.num_rows else None
        return self.family.merge(due)

    def write(self, batch: int, file_from: int) -> None:
        """Write the waiting rows as a segment, merged with preceding segments that are not much larger.

        file_from: size in bytes from which a segment is a file and not part of the manifest.
        """
        if self.waiting is None:
            return
        rows, kept = self.waiting, list(self.segments)
        while kept and kept[-1].rows < 2 * rows.num_rows:
            rows = self.family.merge([self.read(kept.pop()), rows])
        rows = self.family.kept(rows)
        self.segments, self.waiting = tuple(kept), None
        if rows.num_rows:
            self.segments = (*kept, self._written(rows, batch, file_from))

    def _written(self, rows: pa.RecordBatch, batch: int, file_from: int) -> Segment:
        made = segment.write(self.folder, f"{self.family.prefix}-{batch:08d}", rows, file_from)
        low, high = self._ends(rows)
        return Segment(made.name, rows.num_rows, made.bytes, made.digest, 0, 0, low, high, made.content)

    def read(self, stored: Segment) -> pa.RecordBatch:
        """Return a segment's rows, memory-mapped."""
        _verified(self.folder, stored)
        return segment.read(self.folder, stored, self.family.schema)

    def _below(self, part: pa.RecordBatch, bound: int) -> pa.BooleanArray:
        if bound == ALWAYS:
            return pa.repeat(True, part.num_rows)
        return pc.less(self._times(part), bound).fill_null(False)

    def _ends(self, rows: pa.RecordBatch) -> tuple[int, int]:
        if self.family.release is None or not rows.num_rows:
            return ALWAYS, NEVER
        ends = pc.min_max(self._times(rows)).as_py()
        return (ALWAYS, NEVER) if ends["min"] is None else (int(ends["min"]), int(ends["max"]))

    def _times(self, rows: pa.RecordBatch) -> pa.Array:
        assert self.family.release is not None
        return number(rows.column(self.family.release.key))


def opened(folder: Path, kept: Sequence[Family], manifest: Manifest) -> list[Groups]:
    """Return what a unit has stored of these families, which are numbered as its sides. Nothing is read."""
    sides = dict(enumerate(manifest.sides))
    return [Groups(folder, own, sides.get(at, SideManifest()).segments) for at, own in enumerate(kept)]


def lowest_key(release: Release | None, watermark: int) -> int:
    """Return the lowest release key that may still arrive at this watermark, µs."""
    if release is None or watermark in (ALWAYS, NEVER):
        return ALWAYS if watermark == ALWAYS else NEVER
    moment = pa.array([release.floor(watermark)], pa.int64()).view(release.type)
    return int(number(release.value.evaluate(lambda _: moment, 1))[0].as_py())


def number(times: pa.Array) -> pa.Array:
    """Return dates and timestamps as integers."""
    return times.view(pa.int32() if times.type == pa.date32() else pa.int64()).cast(pa.int64())


def with_hashes(part: pa.RecordBatch, hashes: U64) -> pa.RecordBatch:
    """Return the rows of a sorted segment that have one of these hashes."""
    stored = part.column(HASH).to_numpy()
    starts, ends = np.searchsorted(stored, hashes, "left"), np.searchsorted(stored, hashes, "right")
    some = ends > starts
    starts, counts = starts[some], (ends - starts)[some]
    first = (
        np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) if len(starts) else starts
    )
    return part.take(pa.array(first + np.arange(len(first)), pa.int64()))


@lru_cache(maxsize=4096)
def _verified(folder: Path, stored: Segment) -> None:
    """Verify a segment, once per process."""
    segment.verify(folder, stored)


def committed(stores: Sequence[Groups], before: Manifest, batch: int, tuning: Tuning) -> Manifest:
    """Return the manifest in which these families have their segments of now; those they had before retire."""
    every = [own.segments for own in stores]
    live = {s.name for segments in every for s in segments}
    gone = [s for side in before.sides for s in side.segments if s.name not in live]
    kept = retire(stores[0].folder, before.retired, batch - tuning.retain_batches)
    kept += tuple((batch, s.name, s.bytes) for s in gone if s.content is None)
    sides = tuple(SideManifest((Run(0, False, s),)) if s else SideManifest() for s in every)
    return replace(before, batch=batch, sides=sides, retired=kept)
