"""Groups one batch in one unit: takes partials of the join's units, emits result rows, makes the next
manifest.

    append      partials wait as segments; a group is emitted when the watermark has passed its key, or the
                inputs are closed
    changelog   a row is emitted for each group that the batch has changed
    DISTINCT    a group is emitted when it is new

Result and files are pure functions of (manifest, partials), with partials sorted by the unit that made them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.aggregate.finish import changes, existing, finished
from joinlib.aggregate.groups import Groups, number
from joinlib.aggregate.partial import merge, nothing
from joinlib.model.grouping import Grouping
from joinlib.model.inputs import HASH
from joinlib.model.time import ALWAYS, NEVER
from joinlib.model.tuning import Tuning
from joinlib.state.manifest import Manifest, Run, SideManifest
from joinlib.state.manifest import empty as empty_manifest
from joinlib.state.unit import retire, sweep


def empty() -> Manifest:
    """Return the state before the first batch."""
    return empty_manifest(1, 1)


class GroupUnit:
    """Groups the partials of one batch in one unit. The caller holds the unit's lock.

    `manifest` is the state before the batch until `run` is exhausted, then the state after it.
    """

    def __init__(
        self, grouping: Grouping, unit: int, folder: Path, tuning: Tuning, manifest: Manifest
    ) -> None:
        self.grouping, self.unit, self.tuning, self.manifest = grouping, unit, tuning, manifest
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder, manifest)
        self.groups = Groups(folder, grouping, manifest.sides[0].segments)

    def run(
        self, batch: int, parts: Sequence[tuple[int, pa.RecordBatch]], watermark: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the result rows of the batch and write the new state.

        parts: pairs (the unit that made them, partials).
        watermark: that of the join, µs; ALWAYS means that the inputs are closed.
        """
        before = self.manifest
        arrived = [part for _, part in sorted(parts, key=lambda p: p[0])]
        if not self.grouping.keys and self.unit == 0 and before.batch < 0:
            arrived.insert(0, nothing(self.grouping))
        part = merge(arrived, self.grouping)
        after = max(watermark, before.watermark)
        if self.grouping.final_close:
            self.groups.add(part)
            if after > before.watermark and (bound := self._bound(after)) != NEVER:
                yield finished(self.groups.release(bound), self.grouping)
        elif part.num_rows:
            yield self._changed(part, first=before.batch < 0)
        self.groups.write(batch, self.tuning.file_bytes)
        self.manifest = self._committed(before, batch, after)

    def _bound(self, watermark: int) -> int:
        """Return the lowest release key that may still arrive."""
        release = self.grouping.release
        if watermark == ALWAYS or release is None:
            return ALWAYS if watermark == ALWAYS else NEVER
        moment = pa.array([release.floor(watermark)], pa.int64()).view(release.type)
        return int(number(release.value.evaluate(lambda _: moment, 1))[0].as_py())

    def _changed(self, part: pa.RecordBatch, first: bool) -> pa.RecordBatch:
        """Return rows of the changelog, or new groups if they are emitted at once."""
        stored = self.groups.stored(part)
        count = part.num_rows
        blank = _blank(part, self.grouping)
        was = merge([blank, *stored], self.grouping).slice(0, count)
        known = existing(was)
        if self.grouping.eager:
            fresh = part.filter(pc.invert(known))
            self.groups.add(fresh)
            return finished(fresh, self.grouping)
        self.groups.add(part)
        if not self.grouping.keys:  # the one group always exists
            known = pa.repeat(not first, count)
        now = merge([part, *stored], self.grouping).slice(0, count)
        return changes(was, now, known, self.grouping)

    def _committed(self, before: Manifest, batch: int, watermark: int) -> Manifest:
        segments = self.groups.segments
        gone = [s for s in before.sides[0].segments if s not in segments]
        kept = retire(self.groups.folder, before.retired, batch - self.tuning.retain_batches)
        kept += tuple((batch, s.name, s.bytes) for s in gone if s.content is None)
        side = SideManifest((Run(0, False, segments),)) if segments else SideManifest()
        return replace(before, batch=batch, sides=(side,), watermark=watermark, retired=kept)


def _blank(part: pa.RecordBatch, grouping: Grouping) -> pa.RecordBatch:
    """Return the partials of the same groups over no rows."""
    keyed = {HASH, *(k.name for k in grouping.keys)}
    columns = []
    for field, column in zip(part.schema, part.columns, strict=True):
        if field.name in keyed:
            columns.append(column)
        elif field.name.endswith("n"):
            columns.append(pa.array([0] * part.num_rows, field.type))
        else:
            columns.append(pa.nulls(part.num_rows, field.type))
    return pa.record_batch(columns, part.schema)
