"""The rows of one input of one join in one unit: a chain of runs, the newest of which, the head, takes inserts.

    open(manifest) ─► probe / insert / mark / unmatched ─► expire ─► commit ─► manifest

Everything it writes is a pure function of (manifest, rows), so two attempts of a batch write the same bytes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from pathlib import Path

import numpy as np
import pyarrow as pa
import xxhash

from joinlib import fault
from joinlib.index.chains import Chains
from joinlib.index.neighbours import shared
from joinlib.index.sealed import Sealed
from joinlib.state import levels, segment
from joinlib.state.guides import Guides
from joinlib.state.manifest import ALWAYS, NEVER, Merge, Run, Segment, SideManifest
from joinlib.state.run import I32, LiveRun, SortedRun, time_values
from joinlib.state.sorted import SortedIndexes, named
from joinlib.state.tuning import Tuning

INDEX_BYTES = 21  # of a row in `Chains`, at most
_MARKS = pa.schema([pa.field("run", pa.int32()), pa.field("row", pa.int32())])


@dataclass(frozen=True)
class SideConfig:
    """What a side keeps and for how long."""

    number: int  # in its stage
    schema: pa.Schema  # "$hash" first
    keys: tuple[str, ...]
    time: str | None  # the column by which rows expire
    hold_us: int | None  # a row at t is needed until the watermark is beyond t + hold; None: for ever
    marked: bool  # rows come out unmatched, or once when first matched
    compared: str = ""  # what stored rows are sorted by, and how; empty: they are not sorted
    chained: bool = True  # rows are found by their hashes; False: the join has no key, or sorts by it


@dataclass(frozen=True)
class Place:
    """Where a side lives: its unit's folder in the checkpoint, and the executor's folder of indexes."""

    segments: Path
    indexes: Path
    skip_bits: int
    stagger: int = 0  # differs between sides and units


@dataclass(frozen=True)
class Part:
    """Rows that arrive together. `written`: the segment that holds just these rows, if a map task has written one."""

    rows: pa.RecordBatch
    written: segment.Written | None = None
    stored: bool = True  # False: they only look for partners
    probing: bool = True  # False: they are only stored, and look for partners in other units


class Side:
    """The state of one side, open in this process."""

    def __init__(self, config: SideConfig, place: Place, tuning: Tuning) -> None:
        self.config, self.place, self.tuning = config, place, tuning
        self.runs: list[LiveRun] = []
        self.sorted = SortedIndexes(place.indexes, config.number, config.compared)
        self.guides = Guides(place.segments, place.indexes, config.number)
        self._known: dict[int, LiveRun] = {}
        self._marks: tuple[Segment, ...] = ()
        self._next_run = 0
        self._fresh: list[tuple[int, I32]] = []
        self._inserted: dict[int, int] = {}
        self._retired: list[Segment] = []
        self._merges: tuple[Merge, ...] = ()
        self._horizon = NEVER
        self._came = 0  # bytes that were inserted in this batch

    # --- the batch ---------------------------------------------------------------------------------------------------

    def open(self, manifest: SideManifest) -> None:
        """Makes index and rows be those of `manifest`."""
        self._fresh, self._inserted, self._retired = [], {}, []
        self._next_run, self._marks = manifest.next_run, manifest.marks
        self._merges, self._horizon, self._came = manifest.merges, NEVER, 0
        known, self._known = self._known, {}
        self.runs = []
        for run in manifest.runs:
            live = known.get(run.number)
            if live is None or isinstance(live, SortedRun) != (run.level > 0):
                live = self._live(run)
            live.open(run)
            self._known[run.number] = live
            self.runs.append(live)
        if known.keys() - self._known.keys() or not known:
            self._forget_indexes()
        self._open_marks()

    def insert(self, batch: int, part: Part) -> I32:
        """Logs rows as a segment, unless they are one, then indexes them; returns their numbers in the head."""
        head, rows = self._head(), part.rows
        written = part.written or self._write(batch, "", rows)
        fault.point("segment", batch)
        low, high = self._span(rows)
        name, size, digest, content = written
        self._came += size
        token = _chain(head.run.token, digest)
        if not part.written and size >= self.tuning.small_bytes:
            rows = segment.read(self.place.segments, written, self.config.schema)
        numbers = head.append(Segment(name, rows.num_rows, size, digest, token, 0, low, high, content), rows)
        self._inserted.setdefault(head.run.number, int(numbers[0]))
        fault.point("index", batch)
        return numbers.astype(np.int32)

    @property
    def head(self) -> LiveRun:
        """The run that `insert` last wrote to."""
        return self.runs[-1]

    def mark(self, live: LiveRun, rows: I32) -> I32:
        """Marks rows as matched; returns those that were not before, each once."""
        live.index.begin()
        fresh = live.index.mark(rows)
        if len(fresh):
            self._fresh.append((live.run.number, fresh))
        return fresh

    def unmatched(self, before: int, after: int) -> Iterator[tuple[LiveRun, I32]]:
        """Rows without a match whose last possible partner is now late: before < time <= after, or new and <= after."""
        for live in self.runs:
            fresh_from = self._inserted.get(live.run.number, live.run.rows)
            if live.run.low > after or (live.run.high <= before and fresh_from == live.run.rows):
                continue
            due = live.index.marks[: live.run.rows] == 0
            if self.config.time is not None:
                times = live.times(self.config.time)
                due &= times <= after
                due[:fresh_from] &= times[:fresh_from] > before
            rows = np.flatnonzero(due).astype(np.int32)
            if len(rows):
                yield live, rows

    def expire(self, horizon: int) -> None:
        """Drops runs in which no row is later than `horizon`."""
        self._horizon = horizon
        for live in [r for r in self.runs if r.run.high <= horizon]:
            self._remove(live)
        for merge in self._merges:
            if not self._merging(merge):
                self._end(merge)
                self._retired.extend(merge.output.segments)

    def commit(self, batch: int) -> tuple[SideManifest, list[Segment]]:
        """Merges what should be merged; returns the new manifest and the segments it no longer needs."""
        self._log_marks(batch)
        self._seal(batch)
        self._compact(batch)
        for live in self.runs:
            live.index.finish(live.run.token, self._marks_token)
        runs = tuple(live.run for live in self.runs)
        manifest = SideManifest(runs, self._marks, self._next_run, self._merges)
        if self.config.compared:
            self._forget_sorted()
        if any(r.level for r in runs) and self._retired:
            self.guides.keep({s.name for s in manifest.segments})
        alive = {
            s.name for s in manifest.segments
        }  # a merge that changed nothing makes the name it started from
        return manifest, [s for s in self._retired if s.name not in alive]

    def check(self) -> None:
        """Every invariant, O(rows)."""
        for live in self.runs:
            # The index holds the rows of the segments, in their order.
            assert live.index.rows == live.run.rows
            if isinstance(live.index, Sealed):
                live.index.check()
            if isinstance(live.index, Chains):
                live.index.check()
                hashes = [b.column(0).to_numpy() for b in live.batches]
                assert np.array_equal(live.index.hashes, np.concatenate(hashes) if hashes else [])
        # Only the newest run takes inserts.
        assert all(r.run.sealed for r in self.runs[:-1])
        loose = [r.run for r in self.runs if not r.run.sealed or not (r.run.level or self._levelled)]
        assert sum(len(r.segments) for r in loose) + len(self._marks) <= self.tuning.max_segments

    @property
    def index_bytes(self) -> int:
        """What the indexes take on the executor."""
        chains = sum(live.index.allocated_bytes for live in self.runs)
        return chains + (self.sorted.bytes if self.config.compared else 0)

    # --- marks -------------------------------------------------------------------------------------------------------

    @property
    def _marks_token(self) -> int:
        token = 0
        for s in self._marks:
            token = _chain(token, s.digest)
        return token

    def _open_marks(self) -> None:
        if all(live.index.marks_token == self._marks_token for live in self.runs):
            return
        stored = [self._read_marks(s) for s in self._marks]
        for live in self.runs:
            live.index.begin()
            live.index.clear_marks()
            for runs, rows in stored:
                live.index.mark(rows[runs == live.run.number])
            live.index.finish(live.run.token, self._marks_token)

    def _read_marks(self, marks: Segment) -> tuple[I32, I32]:
        segment.verify(self.place.segments, marks)
        batch = segment.read(self.place.segments, marks, _MARKS)
        return batch.column("run").to_numpy(), batch.column("row").to_numpy()

    def _log_marks(self, batch: int) -> None:
        if self._fresh:
            runs = np.concatenate([np.full(len(rows), run, np.int32) for run, rows in self._fresh])
            self._marks += (
                self._write_marks(batch, "-marks", runs, np.concatenate([rows for _, rows in self._fresh])),
            )
        if len(self._marks) > self.tuning.marks_segments:
            self._rewrite_marks(batch)

    def _rewrite_marks(self, batch: int) -> None:
        """All live marks as one file."""
        set_in = [(live.run.number, np.flatnonzero(live.index.marks).astype(np.int32)) for live in self.runs]
        runs = np.concatenate(
            [np.zeros(0, np.int32), *(np.full(len(rows), n, np.int32) for n, rows in set_in)]
        )
        rows = np.concatenate([np.zeros(0, np.int32), *(rows for _, rows in set_in)])
        self._retired.extend(self._marks)
        self._marks = (self._write_marks(batch, "-marks", runs, rows),) if len(rows) else ()

    def _write_marks(self, batch: int, kind: str, runs: I32, rows: I32) -> Segment:
        marks = pa.record_batch([pa.array(runs, pa.int32()), pa.array(rows, pa.int32())], _MARKS)
        name, size, digest, content = self._write(batch, kind, marks)
        return Segment(name, len(rows), size, digest, 0, 0, content=content)

    # --- runs --------------------------------------------------------------------------------------------------------

    def _head(self) -> LiveRun:
        if not self.runs or self.runs[-1].run.sealed:
            empty = Run(self._next_run, False, ())
            live = self._live(empty)
            live.open(empty)
            live.index.finish(live.index.token, self._marks_token)
            self._known[self._next_run] = live
            self._next_run += 1
            self.runs.append(live)
        return self.runs[-1]

    def _live(self, run: Run) -> LiveRun:
        config, place = self.config, self.place
        path = place.indexes / f"{config.number}-{run.number}.{'marks' if run.level else 'index'}"
        if run.level:
            return SortedRun(config.schema, path, self.guides, config.marked)
        return LiveRun(place.segments, config.schema, path, place.skip_bits, config.chained)

    def _write(self, batch: int, kind: str, rows: pa.RecordBatch) -> segment.Written:
        prefix = f"{self.config.number}-{batch:08d}{kind}"
        return segment.write(self.place.segments, prefix, rows, self.tuning.file_bytes)

    def _forget_indexes(self) -> None:
        wanted = {live.index.path for live in self.runs}
        if self.config.compared:
            self._forget_sorted(at_all_events=True)
        pieces = (s for m in self._merges for s in m.output.segments)
        self.guides.keep({s.name for s in pieces} | {s.name for live in self.runs for s in live.run.segments})
        for path in self.place.indexes.glob(f"{self.config.number}-*"):
            if path not in wanted:
                path.unlink(missing_ok=True)

    def _forget_sorted(self, at_all_events: bool = False) -> None:
        alive = {
            named([s.name for s in live.run.segments[start:stop]])
            for live in self.runs
            for start, stop in shared([s.rows for s in live.run.segments])
        }
        if at_all_events or self._retired or self.sorted.names - alive:
            self.sorted.keep(alive)

    def _remove(self, live: LiveRun) -> None:
        self._retired.extend(live.run.segments)
        self.runs.remove(live)
        self._known.pop(live.run.number)
        live.index.path.unlink(missing_ok=True)

    def _span(self, rows: pa.RecordBatch) -> tuple[int, int]:
        if self.config.time is None:
            return ALWAYS, ALWAYS
        times = time_values(rows.column(self.config.time))
        return int(times.min()), int(times.max())

    def _seal(self, batch: int) -> None:
        if not self.runs or self.runs[-1].run.sealed:
            return
        head, hold = self.runs[-1], self.config.hold_us
        full = (
            head.run.rows >= self.tuning.seal_rows
            or _bytes(head) + head.run.rows * INDEX_BYTES >= self.tuning.seal_bytes
        )
        old = (
            hold is not None
            and head.run.low > NEVER
            and head.run.high - head.run.low > hold // self.tuning.spans
        )
        if full or old:
            head.run = replace(head.run, sealed=True)
            fault.point("sealed", batch)

    # --- merges ------------------------------------------------------------------------------------------------------

    @property
    def _levelled(self) -> bool:
        return self.tuning.levelled and self.config.chained

    def _compact(self, batch: int) -> None:
        for live in self._loose() if not self._levelled else ():
            if len(live.run.segments) > 1:
                self._merge(batch, live, 0, len(live.run.segments))
        if self.runs and not self.runs[-1].run.sealed:
            self._merge_newest(batch, self.runs[-1])
        for level in range(0 if self._levelled else 1, 1 + max((r.run.level for r in self.runs), default=0)):
            self._advance(batch, level)
        while not self._levelled and len(self._loose()) > self.tuning.max_runs and self._merge_runs(batch):
            pass

    def _loose(self) -> list[LiveRun]:
        """Sealed runs whose rows are as they came, and stay so."""
        busy = {number for merge in self._merges for number in merge.runs}
        sealed = [live for live in self.runs if live.run.sealed and not live.run.level]
        return [live for live in sealed if live.run.number not in busy]

    def _advance(self, batch: int, level: int) -> None:
        """Goes on with the merge of a level: a piece, and as much as came in, so that runs do not heap up."""
        fanout, size = self.tuning.fanout, min(self.tuning.piece_bytes, self.tuning.seal_bytes)
        for _ in range(1 + self._came // size):
            runs = [live.run for live in self.runs]
            if old := levels.due(runs, self._merges, level, fanout, self.config.hold_us):
                lives = [self._known[run.number] for run in old]
                self._merges += (levels.begun(self._next_run, level, lives, size),)
                self._next_run += 1
            for merge in [m for m in self._merges if m.output.level == level + 1]:
                self._go_on(batch, merge, size)

    def _go_on(self, batch: int, merge: Merge, size: int) -> None:
        """The next part of a merge; after the last one the old runs make room for the new one."""
        self._merges = tuple(m for m in self._merges if m is not merge)
        time = self.config.time
        for piece in levels.pieces(merge, self._merging(merge), time, self._horizon, size):
            merge = self._log_piece(batch, merge, piece)
            fault.point("piece", batch)
        merge = replace(merge, done=merge.done + 1)
        self._merges += (merge,)
        if merge.done == merge.pieces:
            self._finish(batch, merge)
            fault.point("merged", batch)

    def _merging(self, merge: Merge) -> list[LiveRun]:
        """The runs of a merge that are still there."""
        return [self._known[number] for number in merge.runs if number in self._known]

    def _log_piece(self, batch: int, merge: Merge, piece: levels.Piece) -> Merge:
        rows, output = piece.rows, merge.output
        name, size, digest, content = self._write(batch, "-sorted", rows)
        token, (low, high) = _chain(output.token, digest), self._span(rows)
        level = output.level
        added = Segment(name, rows.num_rows, size, digest, token, level, low, high, content)
        self.guides.make(added, rows)
        merge = replace(merge, output=replace(output, segments=(*output.segments, added)))
        if self.config.marked:
            origin = self._write_marks(batch, "-origin", piece.runs, piece.numbers)
            merge = replace(merge, origins=(*merge.origins, origin))
        return merge

    def _finish(self, batch: int, merge: Merge) -> None:
        """The new run takes the place of the old ones; their marks follow their rows."""
        old = self._merging(merge)
        if merge.output.rows:
            live = self._live(merge.output)
            live.open(merge.output)
            self._known[live.run.number] = live
            self.runs.insert(self.runs.index(old[0]), live)
            self._move_marks(merge, old, live)
        for gone in old:
            self._remove(gone)
        self._end(merge)
        if self._marks:
            self._rewrite_marks(batch)

    def _move_marks(self, merge: Merge, old: list[LiveRun], new: LiveRun) -> None:
        new.index.begin()
        new.index.clear_marks()
        first = 0
        for origin in merge.origins:
            runs, rows = self._read_marks(origin)
            for live in old:
                here = np.flatnonzero(runs == live.run.number)
                new.index.mark((first + here[live.index.marks[rows[here]] > 0]).astype(np.int32))
            first += origin.rows

    def _end(self, merge: Merge) -> None:
        """Nothing of it goes on."""
        self._merges = tuple(m for m in self._merges if m is not merge)
        self._retired.extend(merge.origins)

    def _merge_newest(self, batch: int, head: LiveRun) -> None:
        """While there are too many segments, the newest become one: O(log rows) rewrites of each row.

        Lazy, so that a short run of large batches merges nothing; but where each is small a gather from many costs more
        than the merge. Units begin at different batches, so that they do not all merge in one.
        """
        marks = self.tuning.marks_segments
        stagger = self.place.stagger % (marks + 1)
        others = 1 if self._levelled else 1 + len(self._loose())
        room = max(self.tuning.max_segments - others - marks - stagger, 1)
        while len(head.run.segments) > room or self._small(head) > self.tuning.merge_segments - stagger:
            self._merge(batch, head, _worth([s.rows for s in head.run.segments]), len(head.run.segments))

    def _small(self, head: LiveRun) -> int:
        """How many of the newest segments are small."""
        return sum(
            1 for _ in takewhile(lambda s: s.bytes < self.tuning.small_bytes, reversed(head.run.segments))
        )

    def _merge(self, batch: int, live: LiveRun, start: int, stop: int) -> None:
        """The segments [start, stop) become one; row numbers and index stay."""
        segments = live.run.segments
        old = segments[start:stop]
        merged = replace(self._write_merged(batch, live.batches[start:stop], old), token=old[-1].token)
        self._retired.extend(old)
        live.replace(replace(live.run, segments=(*segments[:start], merged, *segments[stop:])))

    def _write_merged(self, batch: int, batches: list[pa.RecordBatch], old: tuple[Segment, ...]) -> Segment:
        table = pa.concat_batches(batches)
        name, size, digest, content = self._write(batch, "-merged", table)
        low, high, level = min(s.low for s in old), max(s.high for s in old), max(s.level for s in old) + 1
        return Segment(name, table.num_rows, size, digest, 0, level, low, high, content)

    def _merge_runs(self, batch: int) -> bool:
        """The two neighbouring loose runs with the fewest rows become one, with an index of its own; False: none may."""
        pairs = [p for p in pairwise(self._loose()) if _bytes(*p) <= 2 * self.tuning.seal_bytes]
        if not pairs:  # an Arrow array of strings ends at 2 GiB: then there are more runs to search
            return False
        first, second = min(pairs, key=lambda p: p[0].run.rows + p[1].run.rows)
        old = first.run.segments + second.run.segments
        merged = self._write_merged(batch, first.batches + second.batches, old)
        merged = replace(merged, token=_chain(0, merged.digest))
        run = Run(self._next_run, True, (merged,))
        live = self._live(run)
        live.open(run)
        self._known[run.number] = live
        self.runs.insert(self.runs.index(first), live)
        self._next_run += 1
        live.index.begin()
        both = np.concatenate([first.index.marks, second.index.marks])
        live.index.mark(np.flatnonzero(both).astype(np.int32))
        self._remove(first)
        self._remove(second)
        if self._marks:
            self._rewrite_marks(batch)
        return True


def _bytes(*runs: LiveRun) -> int:
    return sum(s.bytes for live in runs for s in live.run.segments)


def _worth(rows: list[int]) -> int:
    """From which segment on a merge pays: the first that holds no more rows than all behind it together.

    A row is then in a segment twice as large after each merge. 9 4 2 2 1: from the 4 on (4 <= 2 + 2 + 1). Where each
    segment holds more than all behind it there are few of them, and the newest two are merged.
    """
    behind = 0
    start = max(0, len(rows) - 2)
    for at in reversed(range(len(rows))):
        if 0 < rows[at] <= behind:
            start = at
        behind += rows[at]
    return start


def _chain(token: int, digest: str) -> int:
    """Hash of everything before and one digest more, as a positive int64, never 0."""
    return xxhash.xxh3_64_intdigest(f"{token}:{digest}".encode()) >> 1 | 1
