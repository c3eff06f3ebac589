"""One unit's state in this process: its sides, its folder in the checkpoint, its lock.

A task calls `hold` (locks the files), which opens the manifest, and at the end `commit`. Any worker process of the executor
may do so: what a process keeps between batches (open maps) is checked against the manifest each time.
"""

import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from joinlib.state.config import Place, SideConfig
from joinlib.state.manifest import ALWAYS, Manifest
from joinlib.state.segment import Written
from joinlib.state.side import Side
from joinlib.state.tuning import Tuning

Retired = tuple[tuple[int, str, int], ...]  # (batch, name, bytes)
# By folders, with its run. A cache: losing it costs the time to map the files again.
_open: dict[tuple[Path, Path], tuple[str, "Unit"]] = {}


class Unit:
    """The sides of one unit. Use within `hold`."""

    def __init__(
        self, segments: Path, indexes: Path, skip_bits: int, configs: Sequence[SideConfig], tuning: Tuning
    ) -> None:
        segments.mkdir(parents=True, exist_ok=True)
        indexes.mkdir(parents=True, exist_ok=True)
        self.segments, self.tuning = segments, tuning
        self.sides = [
            Side(c, Place(segments, indexes, skip_bits, _stagger(segments, c)), tuning) for c in configs
        ]

    def open(self, manifest: Manifest) -> None:
        """Makes every side be that of `manifest`; sweeps what attempts that died have left.

        Each time: a task that died may be run again by a process that has long been here, and what it left of the very
        batch that runs again can only be told apart once that batch is over.
        """
        sweep(self.segments, manifest)
        for side, saved in zip(self.sides, manifest.sides, strict=True):
            side.open(saved)

    def commit(self, manifest: Manifest, batch: int, offered: Iterable[Written] = ()) -> Manifest:
        """The manifest after `batch`, with the sides as they are now; deletes files retired long enough ago.

        `offered`: files that map tasks have written for this batch; those that no side has taken are retired.
        """
        kept = retire(self.segments, manifest.retired, batch - self.tuning.retain_batches)
        sides = []
        for side in self.sides:
            saved, retired = side.commit(batch)
            sides.append(saved)
            kept += tuple((batch, s.name, s.bytes) for s in retired if s.content is None)
        taken = {s.name for saved in sides for s in saved.segments} | {name for _, name, _ in kept}
        kept += tuple((batch, w.name, w.bytes) for w in sorted(offered) if w.name not in taken)
        return replace(manifest, batch=batch, sides=tuple(sides), retired=kept)

    @property
    def merged_bytes(self) -> int:
        """What merges have written in this batch."""
        return sum([side.merged_bytes for side in self.sides])

    @property
    def index_bytes(self) -> int:
        """What the indexes take on the executor."""
        return sum([side.index_bytes for side in self.sides])


class Held(NamedTuple):
    """What lives of a unit's state."""

    rows: int
    bytes: int
    segments: int
    runs: tuple[int, ...]  # heads, then the runs of level 0, 1, …, as far as there are any
    run_bytes: tuple[int, ...]  # likewise


def held(manifest: Manifest) -> Held:
    """O(segments), and in one pass: every unit asks in every batch, and properties of runs would cost five times as much."""
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
) -> Iterator[Unit]:
    """The unit as `manifest` says, locked against other tasks of this executor.

    run: whose process this is; what another has left open may have been damaged since, and is compared with the manifest anew.
    """
    key = (segments, indexes)
    opened, unit = _open.get(key, ("", None))
    if unit is None or opened != run or not indexes.exists():
        unit = Unit(segments, indexes, skip_bits, configs, tuning)
        _open[key] = run, unit
    with locked(indexes / "lock"):
        unit.open(manifest)
        yield unit


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Locked against other tasks of this executor. Opened anew each time: a process holds hundreds of units."""
    with open(file, "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _batch(name: str) -> int:
    """The batch that wrote a segment SIDE-BATCH-…, also one that was only written aside; other files: never swept."""
    found = re.match(r"\.?\w+-(\d+)", name)
    return int(found[1]) if found else ALWAYS


def _stagger(segments: Path, config: SideConfig) -> int:
    return sum(segments.name.encode()) + 3 * config.number


def sweep(folder: Path, manifest: Manifest) -> None:
    """Deletes files that no manifest names, but for those of later batches than the manifest's; O(files).

    They may be alive: Spark may have given this task up for lost, and another have gone on.
    """
    names = manifest.names
    for name in os.listdir(folder):
        if name not in names and _batch(name) <= manifest.batch:
            (folder / name).unlink(missing_ok=True)


def retire(folder: Path, retired: Retired, before: int) -> Retired:
    """Deletes what was retired up to the batch `before`; what is left."""
    for batch, name, _ in retired:
        if batch <= before:
            (folder / name).unlink(missing_ok=True)
    return tuple(r for r in retired if r[0] > before)
