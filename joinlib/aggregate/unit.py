"""Groups one batch in one unit: takes partials of the join's units, emits result rows, makes the next
manifest.

    append      partials wait as segments; a group is emitted when the watermark has passed its key, or the
                inputs are closed
    changelog   for each group whose row the batch has changed: the old row with weight -1, the new one with +1
    DISTINCT    a group is emitted when it is new

Groups that come out at once and have a release are forgotten when the watermark has passed it.

Law: after each batch of a changelog the sum of what has come out is the query over the sum of what has come in.

Bags of distinct values are brought up to date first: what they gain and lose are rows for the partials, and
for the other bags. Result and files are pure functions of (manifest, blocks), with blocks sorted by the unit
that made them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.aggregate import bag as bags
from joinlib.aggregate.finish import Then, changes, existing, finished
from joinlib.aggregate.found import found
from joinlib.aggregate.groups import committed, families, lowest_key, number, opened
from joinlib.aggregate.keys import hashes
from joinlib.aggregate.members import decoded
from joinlib.aggregate.partial import ROWS, merge, nothing, of_distinct
from joinlib.apart import KeepFailed
from joinlib.errors import InputError
from joinlib.model.bags import Bag, bags_of
from joinlib.model.grouping import Grouping
from joinlib.model.inputs import HASH, WEIGHT
from joinlib.model.stage import GroupStage
from joinlib.model.time import ALWAYS, NEVER
from joinlib.model.tuning import Tuning
from joinlib.model.watermark import Tick, advance
from joinlib.route import content
from joinlib.state.manifest import Manifest
from joinlib.state.unit import sweep

# The unit that made it; 0 for partials, or the number of a bag from 1 on; the rows.
Block = tuple[int, int, pa.RecordBatch]


class GroupUnit:
    """Groups the partials of one batch in one unit. The caller holds the unit's lock.

    `manifest` is the state before the batch until `run` is exhausted, then the state after it. failed: takes groups that
    have no result.
    """

    def __init__(
        self,
        stage: GroupStage,
        unit: int,
        folder: Path,
        tuning: Tuning,
        manifest: Manifest,
        failed: KeepFailed | None = None,
    ) -> None:
        self.inputs, self.grouping, self._failed = stage.inputs, stage.grouping, failed
        grouping = stage.grouping
        self.unit, self.tuning, self.manifest = unit, tuning, manifest
        self.closed = manifest.watermark == ALWAYS
        self.deleted = self.unknown = (0,) * len(stage.inputs)  # deletions are counted in the groups
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder, manifest)
        self.groups, *stored = opened(folder, families(grouping), manifest)
        self.bags = dict(zip(bags_of(grouping), stored, strict=True))

    def run(self, batch: int, blocks: Sequence[Block], ticks: Sequence[Tick]) -> Iterator[pa.RecordBatch]:
        """Yield the result rows of the batch and write the new state."""
        before = self.manifest
        part, more = self._arrived(sorted(blocks, key=lambda b: b[:2]), first=before.batch < 0)
        part, more = self._in_time(part, more)
        known = [p.tells_time for p in self.inputs]
        delays = [p.delay_us for p in self.inputs]
        after, highest = advance(before.watermark, before.highest, delays, ticks, known)
        self.closed = after == ALWAYS
        bound = lowest_key(self.grouping.release, after) if after > before.watermark else NEVER
        if self.grouping.final_close:
            self._add(part, more)
            if bound != NEVER:
                yield self._released(bound)
        elif part.num_rows:
            yield self._changed(part, more, first=before.batch < 0)
        stores = [self.groups, *self.bags.values()]
        forgets = not self.grouping.final_close and self.grouping.release is not None
        if forgets and bound != NEVER:
            for stored in stores:
                stored.release(bound)  # they are out, and no row of theirs can come
        for stored in stores:
            stored.write(batch, self.tuning.file_bytes)
        first = next((n for n, p in enumerate(self.inputs) if p.upstream is None), 0)
        self.manifest = replace(
            committed(stores, before, batch, self.tuning),
            watermark=after,
            highest=highest,
            rows=self._counted(before.rows, ticks, "rows"),
            late=tuple(n + (self._late if at == first else 0) for at, n in enumerate(before.late)),
            bad=self._counted(before.bad, ticks, "bad"),
        )

    def _counted(self, before: Sequence[int], ticks: Sequence[Tick], field: str) -> tuple[int, ...]:
        """Add up what the ticks say, in one unit: all units are told the same."""
        more = [sum(getattr(t, field) for t in ticks if t.input == n) for n in range(len(before))]
        return tuple(n + (m if self.unit == 0 else 0) for n, m in zip(before, more, strict=True))

    def _in_time(
        self, part: pa.RecordBatch, more: dict[Bag, pa.RecordBatch]
    ) -> tuple[pa.RecordBatch, dict[Bag, pa.RecordBatch]]:
        """Drop what is for groups that have been emitted for good, and count its rows."""
        self._late = 0
        release, bound = self.grouping.release, lowest_key(self.grouping.release, self.manifest.watermark)
        if release is None or bound == NEVER:
            return part, more
        kept = pc.greater_equal(number(part.column(release.key)), bound).fill_null(True)
        late = part.filter(pc.invert(kept))
        if not late.num_rows:
            return part, more
        self._late = int(pc.sum(pc.abs(late.column(ROWS))).as_py())
        return part.filter(kept), {
            bag: rows.filter(pc.greater_equal(number(rows.column(release.key)), bound).fill_null(True))
            for bag, rows in more.items()
        }

    def _arrived(
        self, blocks: Sequence[Block], first: bool
    ) -> tuple[pa.RecordBatch, dict[Bag, pa.RecordBatch]]:
        """Return the batch's partials, and what it adds to each bag that values are computed from."""
        parts = [block for _, number, block in blocks if number == 0]
        if not self.grouping.keys and self.unit == 0 and first:
            parts.insert(0, nothing(self.grouping))
        more: dict[Bag, list[pa.RecordBatch]] = {bag: [] for bag in self.bags}
        for at, bag in enumerate(self.bags, 1):
            more[bag] += [block for _, number, block in blocks if number == at]
        for bag in [bag for bag in self.bags if bag.kind == "distinct"]:
            rows = self._distinct(bag, bags.merged(more.pop(bag), self.grouping, bag))
            if not rows.num_rows:
                continue
            parts.append(of_distinct(rows, self.grouping, bag))
            for other in [other for other in more if other.rest and other.columns == bag.columns]:
                more[other].append(bags.added(rows, self.grouping, other))
        merged = {bag: bags.merged(found, self.grouping, bag) for bag, found in more.items()}
        return merge(parts, self.grouping), merged

    def _distinct(self, bag: Bag, more: pa.RecordBatch) -> pa.RecordBatch:
        """Bring a bag of distinct values up to date.

        Returns the values that have come into a group, and those that have gone, as rows with weights.
        """
        # Stored by the hash of group and value, so that only the values of this batch are looked up.
        hashed = hashes(more.columns[1:-1], more.num_rows)
        more = bags.merged([more.set_column(0, HASH, hashed)], self.grouping, bag)
        was = bags.weights_in(self.bags[bag].stored(more), more)
        now = was + content.weights(more)
        self.bags[bag].add(more)
        turned = (now > 0).astype(np.int64) - (was > 0)
        rows = more.set_column(more.num_columns - 1, WEIGHT, pa.array(turned))
        return decoded(rows.filter(pa.array(turned != 0)), self.grouping, bag)

    def _add(self, part: pa.RecordBatch, more: Mapping[Bag, pa.RecordBatch]) -> None:
        """Store what the batch adds."""
        self.groups.add(part)
        for bag, rows in more.items():
            self.bags[bag].add(rows)

    def _released(self, bound: int) -> pa.RecordBatch:
        """Remove the groups below the bound, and return their rows."""
        due = self.groups.release(bound)
        rows = {bag: [stored.release(bound)] for bag, stored in self.bags.items()}
        return finished(due, self.grouping, found(self.grouping, due, rows), self._failed)

    def _changed(
        self, part: pa.RecordBatch, more: Mapping[Bag, pa.RecordBatch], first: bool
    ) -> pa.RecordBatch:
        """Return rows of the changelog, or new groups if they are emitted at once."""
        stored = self.groups.stored(part)
        count = part.num_rows
        was = merge([_blank(part, self.grouping), *stored], self.grouping).slice(0, count)
        known = existing(was)
        if self.grouping.eager:
            fresh = part.filter(pc.invert(known))
            self.groups.add(fresh)
            return finished(fresh, self.grouping, failed=self._failed)
        now = merge([part, *stored], self.grouping).slice(0, count)
        _check_counts(now)
        exists = existing(now)
        if not self.grouping.keys:  # the one group always exists
            known, exists = pa.repeat(not first, count), pa.repeat(True, count)
        old = {bag: self.bags[bag].parts() for bag in more}
        new = {bag: [*old[bag], rows] for bag, rows in more.items()}
        self._add(part, more)
        before = Then(was, found(self.grouping, was, old), known)
        after = Then(now, found(self.grouping, now, new), exists)
        return changes(before, after, self.grouping, self._failed)


def _check_counts(partials: pa.RecordBatch) -> None:
    """Raise InputError if more rows of a group went than came: the query joins nothing that would have noticed."""
    if partials.num_rows and pc.min(partials.column(ROWS)).as_py() < 0:
        raise InputError(
            "a group has lost more rows than it had: an input holds deletions of rows that never came; mend the input"
        )


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
