"""One batch of one unit of groups: partials of the join's units in, rows of the result and the next manifest out.

    append      partials wait as segments; a group comes out when its key's time has passed, or the inputs are closed
    changelog   a row for each group that the batch has changed
    DISTINCT    a group comes out when it is new

Answer and files are pure functions of (manifest, partials): those are ordered by the unit that made them first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.aggregate.config import Grouping
from joinlib.aggregate.finish import changes, existing, finished
from joinlib.aggregate.groups import Groups, number
from joinlib.aggregate.partial import merge, nothing
from joinlib.route.config import HASH
from joinlib.state.manifest import ALWAYS, NEVER, Manifest, Run, SideManifest
from joinlib.state.manifest import empty as empty_manifest
from joinlib.state.tuning import Tuning
from joinlib.state.unit import retire, sweep


def empty() -> Manifest:
    """The state before the first batch."""
    return empty_manifest(1, 1)


class GroupUnit:
    """`manifest` is that before the batch until `run` is exhausted, then that after it. The caller holds the unit's lock."""

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
        """`parts`: (the unit that made them, partials). `watermark`: that of the join; ALWAYS: the inputs are closed."""
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
        """The lowest release key that may still come."""
        release = self.grouping.release
        if watermark == ALWAYS or release is None:
            return ALWAYS if watermark == ALWAYS else NEVER
        moment = pa.array([release.floor(watermark)], pa.int64()).view(release.type)
        return int(number(release.value.evaluate(lambda _: moment, 1))[0].as_py())

    def _changed(self, part: pa.RecordBatch, first: bool) -> pa.RecordBatch:
        """Rows of the changelog, or new groups where they come out at once."""
        stored = self.groups.found(part)
        count = part.num_rows
        blank = _blank(part, self.grouping)
        was = merge([blank, *stored], self.grouping).slice(0, count)
        known = existing(was)
        if self.grouping.eager:
            fresh = part.filter(pc.invert(known))
            self.groups.add(fresh)
            return finished(fresh, self.grouping)
        self.groups.add(part)
        if not self.grouping.keys:  # the one group that is always there
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
    """The same groups, of no rows."""
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
