"""One unit's state in this process: its sides, its folder in the checkpoint, its lock.

A task calls `hold`, which locks the unit and opens the manifest, and finally `commit`. Any worker process
of the executor may do so: what a process keeps between batches (open maps) is checked against the manifest
each time.
"""

import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from joinlib.model.side import SideConfig
from joinlib.model.time import ALWAYS
from joinlib.model.tuning import Tuning
from joinlib.model.watermark import horizon
from joinlib.state.location import Location
from joinlib.state.manifest import Manifest
from joinlib.state.segment import Written
from joinlib.state.side import Side
from joinlib.state.twin import Twin
from joinlib.worker import Keep, current

Retired = tuple[tuple[int, str, int], ...]  # (batch, name, bytes)


class Unit:
    """The sides of one unit. Use within `hold`."""

    def __init__(
        self, segments: Path, indexes: Path, skip_bits: int, configs: Sequence[SideConfig], tuning: Tuning
    ) -> None:
        segments.mkdir(parents=True, exist_ok=True)
        indexes.mkdir(parents=True, exist_ok=True)
        self.segments, self.tuning = segments, tuning
        self.sides: list[Side] = []
        for c in configs:
            place = Location(segments, indexes, skip_bits, _stagger(segments, c))
            side = Side(c, place, tuning) if c.of is None else Twin(c, place, tuning, self.sides[c.of])
            self.sides.append(side)

    def open(self, manifest: Manifest, swept: bool = True) -> None:
        """Make every side that of `manifest`; delete files left behind by failed attempts.

        Files are swept on every call: a batch that failed may be retried in a process that has been open
        for long, and files of the failed attempt can only be recognised once the batch is over.

        swept: False for those who only read: files are their owner's.
        """
        if swept:
            sweep(self.segments, manifest)
        for side, saved in zip(self.sides, manifest.sides, strict=True):
            side.open(saved)

    def tidy(self, batch: int, watermark: int) -> None:
        """Do what the last batch has left in every side, up to its watermark, µs; see `Side.tidy`."""
        for side in self.sides:
            side.tidy(batch, horizon(watermark, side.config.hold_us))

    def commit(self, manifest: Manifest, batch: int, offered: Iterable[Written] = ()) -> Manifest:
        """Return the manifest after `batch`, with the current sides; delete files that were retired long
        enough ago.

        offered: files that map tasks wrote for this batch; those that no side has taken are retired.
        """
        kept = retire(self.segments, manifest.retired, batch - self.tuning.retain_batches)
        sides = []
        for side in self.sides:
            saved, retired = side.commit(batch)
            sides.append(saved)
            kept += tuple((batch, s.name, s.bytes) for s in retired if s.content is None)
        taken = {s.name for saved in sides for s in saved.segments} | {name for _, name, _ in kept}
        # No later batch reads them, and a batch that runs again writes them again: they go with the next one.
        soon = batch - self.tuning.retain_batches + 1
        kept += tuple((soon, w.name, w.bytes) for w in sorted(offered) if w.name not in taken)
        return replace(manifest, batch=batch, sides=tuple(sides), retired=kept)

    @property
    def merged_bytes(self) -> int:
        """The bytes written by merges in this batch."""
        return sum([side.merged_bytes for side in self.sides])

    @property
    def dead_rows(self) -> int:
        """The number of rows that were deleted and are still stored."""
        return sum([live.dead for side in self.sides for live in side.runs])

    @property
    def index_bytes(self) -> int:
        """The size of the indexes on the executor, in bytes."""
        return sum([side.index_bytes for side in self.sides])


class Held(NamedTuple):
    """The size of a unit's live state."""

    rows: int
    bytes: int
    segments: int
    runs: tuple[int, ...]  # number of heads, then of runs of level 0, 1, …
    run_bytes: tuple[int, ...]  # bytes, in the same order


def held(manifest: Manifest) -> Held:
    """Return the size of a unit's live state. O(segments).

    It is computed in one pass, because every unit calls it in every batch and the properties of runs would
    take five times as long.
    """
    beside = [s for side in manifest.sides for s in side.beside]
    rows, segments, size = 0, len(beside), sum([s.bytes for s in beside])
    runs: list[int] = []
    run_bytes: list[int] = []
    for run in [run for side in manifest.sides for run in side.runs]:
        at = run.level + 1 if run.sealed else 0
        while len(runs) <= at:
            runs.append(0)
            run_bytes.append(0)
        runs[at] += 1
        segments += len(run.segments)
        for segment in run.segments:
            rows += segment.rows
            run_bytes[at] += segment.bytes
    return Held(rows, size + sum(run_bytes), segments, tuple(runs), tuple(run_bytes))


@contextmanager
def hold(
    segments: Path,
    indexes: Path,
    skip_bits: int,
    configs: Sequence[SideConfig],
    tuning: Tuning,
    manifest: Manifest,
    run: str = "",
    swept: bool = True,
) -> Iterator[Unit]:
    """Open the unit with the state of `manifest`, locked against other tasks of this executor.

    run: identifies the run this process belongs to. Files that another run left open may have been damaged
    since, and are compared with the manifest again. swept: as in `Unit.open`.
    """
    kept: Keep[tuple[Path, Path], tuple[str, Unit]] = current().units
    key = (segments, indexes)
    opened, unit = kept.get(key) or ("", None)
    if unit is None or opened != run or not indexes.exists():
        unit = Unit(segments, indexes, skip_bits, configs, tuning)
        kept.put(key, (run, unit))
    with locked(indexes / "lock"):
        unit.open(manifest, swept)
        yield unit


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold an exclusive lock against other tasks of this executor.

    The file is opened on every call: a process handles hundreds of units.
    """
    with open(file, "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _batch(name: str) -> int:
    """Return the batch that wrote a segment named SIDE-BATCH-…, also one written aside but not renamed.

    For other files, return ALWAYS: they are never swept.
    """
    found = re.match(r"\.?\w+-(\d+)", name)
    return int(found[1]) if found else ALWAYS


def _stagger(segments: Path, config: SideConfig) -> int:
    return sum(segments.name.encode()) + 3 * config.number


def sweep(folder: Path, manifest: Manifest) -> None:
    """Delete files that no manifest names, except those of batches later than the manifest's; O(files).

    Later files may be live: Spark may have given this task up, and another attempt may have continued.
    """
    names = manifest.names
    for name in os.listdir(folder):
        if name not in names and _batch(name) <= manifest.batch:
            (folder / name).unlink(missing_ok=True)


def retire(folder: Path, retired: Retired, before: int) -> Retired:
    """Delete the files that were retired up to batch `before`; return the remaining entries."""
    for batch, name, _ in retired:
        if batch <= before:
            (folder / name).unlink(missing_ok=True)
    return tuple(r for r in retired if r[0] > before)
