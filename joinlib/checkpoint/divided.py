"""The state of a unit, put together from the units that held it when there were more or fewer of them.

    was 2, is 4    0 ─► 0, 1          was 4, is 2    0, 1 ─► 0        a key's hash has its unit in the top bits,
                   1 ─► 2, 3                         2, 3 ─► 1        and both numbers are powers of two

Law: with units that read nothing new, every batch behind it is the one that the old units would have made. The rows of a
key stay in the order in which they came. Rows that were deleted or have expired are left behind, as a merge leaves them.

Everything is made by what makes it in a batch, and from files alone: old units are only read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from joinlib.aggregate.groups import Family, Groups, committed, of_bag, of_partials
from joinlib.aggregate.keys import hashes
from joinlib.arrays import U64
from joinlib.model.bags import bags_of
from joinlib.model.side import SideConfig
from joinlib.model.stage import AnyStage, GroupStage, OverStage, PathStage, Stage
from joinlib.model.time import NEVER
from joinlib.model.tuning import Tuning
from joinlib.over.kept import families
from joinlib.state.location import unit_folder
from joinlib.state.manifest import Manifest, SideManifest
from joinlib.state.side import Arrival, Side
from joinlib.state.stored import Mask, matched, needed, stored
from joinlib.state.unit import Unit

_ROWS = 1 << 17  # that are inserted at once


@dataclass(frozen=True)
class Division:
    """From how many units to how many; powers of two."""

    was: int
    now: int

    def sources(self, unit: int) -> range:
        """Return the old units that held what a unit holds now."""
        if self.now >= self.was:
            one = unit * self.was // self.now
            return range(one, one + 1)
        each = self.was // self.now
        return range(unit * each, (unit + 1) * each)

    def first(self, unit: int) -> bool:
        """Return whether no unit before has the same sources."""
        return unit == 0 or self.sources(unit) != self.sources(unit - 1)

    def holds(self, unit: int, hashed: U64) -> Mask:
        """Return which keys belong to a unit, by their hashes."""
        bits = self.now.bit_length() - 1
        if not bits:
            return np.ones(len(hashed), np.bool_)
        found: Mask = hashed >> np.uint64(64 - bits) == np.uint64(unit)
        return found


class _Piece(NamedTuple):
    """A unit, and what it is made of."""

    unit: int
    division: Division
    sources: Mapping[int, Manifest]
    begun: Manifest  # of the unit, without rows
    state: Path
    indexes: Path
    tuning: Tuning

    @property
    def folder(self) -> Path:
        return unit_folder(self.state, self.unit)


def divided(
    stage: AnyStage,
    old: Mapping[int, Manifest],
    division: Division,
    unit: int,
    state: Path,
    indexes: Path,
    tuning: Tuning,
) -> Manifest:
    """Write the segments of a unit of a stage and return its manifest.

    Args:
        stage: The stage, with as many units as there are now.
        old: The manifests of all old units, after the same batch.
        division: How many there were.
        unit: The unit.
        state: The folder of the stage's segments.
        indexes: A folder for indexes, which nobody needs afterwards.
        tuning: Thresholds of the state.

    Raises:
        StateError: A segment is missing or damaged.
    """
    sources = {at: old[at] for at in division.sources(unit) if at in old}
    begun = _begun(old, sources, counts=division.first(unit))
    piece = _Piece(unit, division, sources, begun, state, indexes, tuning)
    if isinstance(stage, GroupStage | OverStage):
        return _grouped(stage, piece)
    return _joined(stage, piece) if isinstance(stage, Stage | PathStage) and stage.sides else begun


def _begun(old: Mapping[int, Manifest], sources: Mapping[int, Manifest], *, counts: bool) -> Manifest:
    """Return a manifest without rows. counts: whether it says what its sources have counted so far."""
    some = next(iter(old.values()))  # all units are told the same of time
    told = [*sources.values()] if counts else []

    def added(field: str) -> tuple[int, ...]:
        none = (0,) * len(some.highest)
        return tuple(map(sum, zip(none, *(getattr(m, field) for m in told), strict=True)))

    batch = max(m.batch for m in old.values())
    return Manifest(batch, (), some.watermark, some.highest, added("rows"), added("late"), added("bad"))


# --- groups, and rows of window functions -------------------------------------------------------------


def _grouped(stage: GroupStage | OverStage, piece: _Piece) -> Manifest:
    batch, stores = piece.begun.batch, []
    piece.folder.mkdir(parents=True, exist_ok=True)
    for number, (family, keys) in enumerate(_families(stage)):
        groups = Groups(piece.folder, family, ())
        groups.add(family.merge([*_rows(piece, number, family, keys)]))
        groups.write(batch, piece.tuning.file_bytes)
        stores.append(groups)
    return committed(stores, piece.begun, batch, piece.tuning)


def _rows(piece: _Piece, number: int, family: Family, keys: list[str] | None) -> Iterator[pa.RecordBatch]:
    """Yield what is kept for the unit, with the columns by which it is that of the unit; None: by the stored hash."""
    for at, manifest in piece.sources.items():
        there = manifest.sides[number].segments if number < len(manifest.sides) else ()
        for rows in Groups(unit_folder(piece.state, at), family, there).parts():
            hashed = rows.column(0) if keys is None else hashes(rows.select(keys).columns, rows.num_rows)
            yield rows.filter(pa.array(piece.division.holds(piece.unit, hashed.to_numpy())))


def _families(stage: GroupStage | OverStage) -> Iterator[tuple[Family, list[str] | None]]:
    """Yield what is kept, and the columns by which rows go to units; None: the hash of these is stored."""
    if isinstance(stage, OverStage):
        yield from ((family, None) for family in families(stage.over))
        return
    grouping = stage.grouping
    yield of_partials(grouping), None
    for number, bag in enumerate(bags_of(grouping), 1):  # some are stored by the hash of group and value
        yield of_bag(grouping, number, bag), [key.name for key in grouping.keys]


# --- rows of joins ------------------------------------------------------------------------------------


def _joined(stage: Stage | PathStage, piece: _Piece) -> Manifest:
    indexes = piece.indexes / f"{piece.unit:05d}"
    made, sides = Unit(piece.folder, indexes, stage.skip_bits, stage.sides, piece.tuning), []
    for side in made.sides:
        number = side.config.number
        # An index that an executor still has may be of a run of the same number and content, but of another unit.
        used = (manifest.sides[number].next_run for manifest in piece.sources.values())
        saved = SideManifest(next_run=max(used, default=0))
        for rows, marks in _gathered(_shares(side.config, piece)):
            saved = _inserted(side, saved, piece.begun.batch, rows, marks)
        sides.append(saved)
    return replace(piece.begun, sides=tuple(sides))


def _shares(config: SideConfig, piece: _Piece) -> Iterator[tuple[pa.RecordBatch, Mask]]:
    """Yield the rows of a side that belong to the unit, with whether each was matched."""
    for at, manifest in piece.sources.items():
        for rows, flags in stored(unit_folder(piece.state, at), manifest.sides[config.number], config):
            wanted = piece.division.holds(piece.unit, rows.column(0).to_numpy())
            wanted &= needed(rows, flags, config, manifest.watermark)
            if wanted.any():
                yield rows.filter(pa.array(wanted)), matched(flags)[wanted]


def _gathered(parts: Iterator[tuple[pa.RecordBatch, Mask]]) -> Iterator[tuple[pa.RecordBatch, Mask]]:
    """Join small parts."""
    some: list[tuple[pa.RecordBatch, Mask]] = []
    for part in parts:
        some.append(part)
        if sum(rows.num_rows for rows, _ in some) >= _ROWS:
            yield _together(some)
            some = []
    if some:
        yield _together(some)


def _together(some: Sequence[tuple[pa.RecordBatch, Mask]]) -> tuple[pa.RecordBatch, Mask]:
    rows, marks = zip(*some, strict=True)
    return pa.concat_batches(rows), np.concatenate(marks)


def _inserted(side: Side, saved: SideManifest, batch: int, rows: pa.RecordBatch, marks: Mask) -> SideManifest:
    """Store rows as a batch does; return what the side holds then."""
    side.open(saved)
    if side.config.versioned:
        side.tidy(batch, NEVER)
    numbers = side.insert(batch, Arrival(rows))
    if side.config.flagged and marks.any():
        side.mark(side.head, numbers[marks])
    after, _ = side.commit(batch)  # what merges have retired is swept when the unit is opened
    return after
