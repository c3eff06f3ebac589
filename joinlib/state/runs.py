"""The open runs of one side, oldest first; the only module that opens, creates and drops runs.

Segments of a dropped run are *retired*: their files are kept while an earlier batch that needs them may run
again. Indexes, guides and sorted indexes are caches in the executor's folder, and are deleted when nothing
live needs them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from joinlib.files import begin_writing
from joinlib.index.neighbours import shared
from joinlib.model.side import SideConfig
from joinlib.model.time import ALWAYS
from joinlib.model.tuning import Tuning
from joinlib.state import segment
from joinlib.state.guides import Guides
from joinlib.state.location import Location
from joinlib.state.manifest import Run, Segment, SideManifest
from joinlib.state.run import LiveRun, SortedRun, UnsortedRun, contents_path, time_values
from joinlib.state.sorted import SortedIndexes, named

_L = TypeVar("_L", bound=LiveRun)
_LARGE = 1 << 18  # bytes of a segment that the disk needs a while for


class Runs:
    """The runs of one side.

    retired: segments dropped since `open`. merged: bytes written by merges since `open`.
    """

    def __init__(self, config: SideConfig, place: Location, tuning: Tuning) -> None:
        self.config, self.place, self.tuning = config, place, tuning
        self.live: list[LiveRun] = []
        self.retired: list[Segment] = []
        self.guides = Guides(place.segments, place.indexes, config.number)
        self.sorted = SortedIndexes(place.indexes, config.number, config.compared)
        self.next = 0  # the number of the next run
        self.merged = 0
        self._known: dict[int, LiveRun] = {}

    # --- the runs ---------------------------------------------------------------------------------

    def open(self, manifest: SideManifest) -> None:
        """Make the runs those of `manifest`; runs that are already open are reused."""
        known, self._known = self._known, {}
        self.live, self.retired, self.next, self.merged = [], [], manifest.next_run, 0
        for run in manifest.runs:
            live = known.get(run.number)
            if live is None or isinstance(live, SortedRun) != (run.level > 0):
                live = self._live(run)
            live.open(run)
            self._known[run.number] = live
            self.live.append(live)
        if known.keys() - self._known.keys() or not known:
            self._forget_indexes(manifest)

    @property
    def head(self) -> UnsortedRun | None:
        """The run that takes inserts, if there is one."""
        last = self.live[-1] if self.live else None
        return last if isinstance(last, UnsortedRun) and not last.run.sealed else None

    def number(self) -> int:
        """Return a run number that was never used before."""
        self.next += 1
        return self.next - 1

    def begin(self) -> UnsortedRun:
        """Add a new head, without rows, as the last run."""
        return self._added(self._unsorted, Run(self.number(), False, ()), len(self.live))

    def add(self, run: Run, before: LiveRun) -> LiveRun:
        """Open a run that this batch has merged from others, and insert it before the run `before`."""
        return self._added(self._live, run, self.live.index(before))

    def _added(self, make: Callable[[Run], _L], run: Run, at: int) -> _L:
        path = self._path(run)
        for old in (path, contents_path(path)):
            old.unlink(missing_ok=True)  # from another attempt: its marks may be of a later batch
        live = make(run)
        live.open(run)
        self._known[run.number] = live
        self.live.insert(at, live)
        return live

    def drop(self, live: LiveRun) -> None:
        """Remove a run: retire its segments and delete its index."""
        self.retired.extend(live.run.segments)
        self.live.remove(live)
        self._known.pop(live.run.number)
        live.index.path.unlink(missing_ok=True)
        contents_path(live.index.path).unlink(missing_ok=True)

    def among(self, numbers: tuple[int, ...]) -> list[LiveRun]:
        """Return the runs with these numbers that still exist."""
        return [self._known[number] for number in numbers if number in self._known]

    def _live(self, run: Run) -> LiveRun:
        if run.level:
            return SortedRun(self.config.schema, self._path(run), self.guides, self.config.flagged)
        return self._unsorted(run)

    def _unsorted(self, run: Run) -> UnsortedRun:
        config, place = self.config, self.place
        return UnsortedRun(place.segments, config.schema, self._path(run), place.skip_bits, config.chained)

    def _path(self, run: Run) -> Path:
        return self.place.indexes / f"{self.config.number}-{run.number}.{'marks' if run.level else 'index'}"

    # --- their segments ---------------------------------------------------------------------------

    def write(self, batch: int, kind: str, rows: pa.RecordBatch) -> segment.Written:
        """Write a segment of this side, named SIDE-BATCH-KIND-DIGEST."""
        prefix = f"{self.config.number}-{batch:08d}{kind}"
        written = segment.write(self.place.segments, prefix, rows, self.tuning.file_bytes)
        if self.tuning.sync and written.bytes >= _LARGE:
            begin_writing(self.place.segments / written.name)  # while the batch goes on
        return written

    def behind(self, run: Run, written: segment.Written, rows: pa.RecordBatch) -> Segment:
        """Return what was written as a segment that follows those of `run`."""
        name, size, digest, content = written
        token, (low, high) = segment.chained(run.token, digest), self._span(rows)
        return Segment(name, rows.num_rows, size, digest, token, run.level, low, high, content)

    def _span(self, rows: pa.RecordBatch) -> tuple[int, int]:
        if self.config.time is None:
            return ALWAYS, ALWAYS
        times = time_values(rows.column(self.config.time))
        return int(times.min()), int(times.max())

    # --- caches -----------------------------------------------------------------------------------

    def forget(self, manifest: SideManifest) -> None:
        """Delete the caches of segments that this batch has retired."""
        if self.config.compared:
            self._forget_sorted()
        alive = {s.name for s in manifest.segments}
        if self.guides.names - alive:
            self.guides.keep(alive)

    def _forget_indexes(self, manifest: SideManifest) -> None:
        """Delete all caches that do not belong to `manifest`, including those of other processes."""
        if self.config.compared:
            self._forget_sorted(at_all_events=True)
        self.guides.keep({s.name for s in manifest.segments})
        wanted = {path for live in self.live for path in (live.index.path, contents_path(live.index.path))}
        for path in self.place.indexes.glob(f"{self.config.number}-*"):
            if path not in wanted:
                path.unlink(missing_ok=True)

    def _forget_sorted(self, at_all_events: bool = False) -> None:
        alive = {
            named([s.name for s in live.run.segments[start:stop]])
            for live in self.live
            for start, stop in shared([s.rows for s in live.run.segments])
        }
        if at_all_events or self.retired or self.sorted.names - alive:
            self.sorted.keep(alive)
