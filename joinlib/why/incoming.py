"""The rows that come to a level: of those that were read, the ones that are in time and not deleted.

scan ─► sift ─► read by a batch that is done? ─► deleted? ─► late? ─► what joins
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from joinlib.apart import apart
from joinlib.errors import SpecError
from joinlib.model.inputs import InputPlan
from joinlib.model.side import SideConfig
from joinlib.model.time import ALWAYS, NEVER
from joinlib.model.watermark import horizon
from joinlib.route.split import projected
from joinlib.state.run import time_values
from joinlib.why.dead import Dead
from joinlib.why.few import Few, Origin, whole
from joinlib.why.node import Level
from joinlib.why.progress import Progress
from joinlib.why.scan import Scanned, Scans, Wanted
from joinlib.why.sift import Dropped, Sifted, sift
from joinlib.why.verdict import Failed, Late, Limit, Unread, Verdict, Withdrawn


class Incoming:
    """What comes to levels.

    notes: what could not be looked at. doubts: rows that may have been late, which is not known any more.
    """

    def __init__(
        self, progress: Progress, scans: Scans, shown: Callable[[InputPlan], str], dead: Dead
    ) -> None:
        self._progress, self._scans, self.shown, self._dead = progress, scans, shown, dead
        self.notes: dict[str, None] = {}
        self.doubts: dict[int, Late] = {}

    def scan(self, plan: InputPlan, wanted: Wanted, more: Iterable[str]) -> Scanned:
        columns = [name for name in dict.fromkeys([*plan.read, *more]) if not name.startswith("$")]
        scanned = self._scans.scan(
            plan.source,
            columns,
            plan.source_time if not plan.numbered else None,
            wanted,
            plan.alias,
            self.shown(plan),
        )
        self.notes |= dict.fromkeys(f"{plan.source}: {note}" for note in scanned.notes)
        return scanned

    def sifted(self, level: Level, plan: InputPlan, scanned: Scanned) -> Sifted:
        """Return the rows of a source that join: those that are read, not deleted, and in time."""
        hits = {n: self._scans.hits[n] for n in scanned.ids}
        found = self._sift(plan, scanned.rows, [(n,) for n in scanned.ids], self._dead.of_source(plan.source))
        gone = self._withdrawn(plan, found.kept) if not level.upsert else {}
        early: dict[int, Verdict] = {
            n: Unread(hit.by.batch) for n, hit in hits.items() if not hit.by.done
        } | gone
        early |= {n: late for n, late in self._late(level, plan, found.kept).items() if n not in early}
        unread = {n for n, hit in hits.items() if not hit.by.done}
        lost = [
            Dropped(o.origin, early[o.origin[0]], o.row) if o.origin[0] in unread else o for o in found.lost
        ]
        rows = found.kept.rows.to_pylist() if early else []
        lost += [
            Dropped(o, early[o[0]], rows[at]) for at, o in enumerate(found.kept.origins) if o[0] in early
        ]
        return Sifted(found.kept.where([o[0] not in early for o in found.kept.origins]), tuple(lost))

    def passed_on(self, level: Level, plan: InputPlan, few: Few) -> Sifted:
        """Return the rows of an earlier stage that join: all, except late ones where that stage has dropped none."""
        assert plan.upstream is not None
        found = self._sift(plan, few.rows, few.origins, self._dead.between(plan.upstream, level.number))
        if not (plan.settled and level.timed and plan.time is not None):
            return found
        times = time_values(found.kept.rows.column(plan.time).combine_chunks()).tolist()
        late: dict[int, Verdict] = {}
        for at, (origin, time) in enumerate(zip(found.kept.origins, times, strict=True)):
            watermark, known = self.watermark_before(level.number, origin)
            if known and time < watermark - plan.lag_us:
                late[at] = Late(watermark - plan.lag_us - time, watermark, dead=self._dead.of_late(plan))
        rows = found.kept.rows.to_pylist() if late else []
        lost = [Dropped(found.kept.origins[at], verdict, rows[at]) for at, verdict in late.items()]
        return Sifted(found.kept.where([at not in late for at in range(len(times))]), (*found.lost, *lost))

    def watermark_before(self, stage: int, origin: Origin) -> tuple[int, bool]:
        """Return the watermark of a stage before the batch that completed a row, µs, and whether it is known."""
        by = max((self._scans.hits[n if n >= 0 else ~n].by for n in origin), key=lambda by: by.batch or 0)
        return self._progress.watermark_before(stage, by)

    def _sift(self, plan: InputPlan, rows: pa.Table, origins: Sequence[Origin], dead: str | None) -> Sifted:
        """Return what an input makes of rows; those for which an expression fails are lost."""
        sound, _, failing = apart(whole(rows), lambda some: projected(plan, some), SpecError)
        lost = [Dropped(origins[one.at], Failed(str(one.error), dead), {}) for one in failing]
        gone = {one.at for one in failing}
        kept = [origin for at, origin in enumerate(origins) if at not in gone]
        found = sift(plan, pa.Table.from_batches([sound]), kept)
        return Sifted(found.kept, (*found.lost, *lost))

    def _withdrawn(self, plan: InputPlan, few: Few) -> dict[int, Verdict]:
        """Return what was deleted, and the deletions: equal rows, one for one, in their order."""
        gone: dict[int, Verdict] = {}
        if not plan.changes:
            return gone
        there: dict[Any, list[int]] = defaultdict(list)
        for (number, *_), row in zip(few.origins, few.values(few.rows.column_names), strict=True):
            if self._scans.hits[number].weight > 0:
                there[row].append(number)
                continue
            gone[number] = Withdrawn(None)
            if there[row]:
                gone[there[row].pop(0)] = Withdrawn(self._scans.hits[number].row)
        return gone

    def _late(self, level: Level, plan: InputPlan, few: Few) -> dict[int, Verdict]:
        """Return the rows that were behind the watermark before their batch; others that may have been are in doubt."""
        late: dict[int, Verdict] = {}
        if not level.timed or plan.time is None:
            return late
        times = time_values(few.rows.column(plan.time).combine_chunks()).tolist()
        for (number, *_), time in zip(few.origins, times, strict=True):
            hit = self._scans.hits[number]
            if not hit.by.done:
                continue
            watermark, known = self._progress.watermark_before(level.number, hit.by)
            if not known and plan.idle_us is None and plan.source_time is not None and hit.top_us > NEVER:
                watermark = min(watermark, hit.top_us - plan.delay_us)
            elif not known and hit.top_us == NEVER and plan.idle_us is None:
                continue  # the first rows of an input are never late
            by = watermark - plan.lag_us - time
            if by > 0 and known:
                late[number] = Late(by, watermark, dead=self._dead.of_late(plan))
            elif by > 0 and watermark != ALWAYS:
                self.doubts[number] = Late(by, watermark, sure=False)
        return late

    def limit_of(self, level: Level) -> Any:
        """Return what says until when a row of a side waits."""
        watermark = self._progress.watermark(level.number)
        holder, how_far = self._progress.holder(level.number)

        def limit(side: SideConfig, few: Few, at: int) -> Limit:
            until = None
            over = watermark == ALWAYS
            if side.time is not None and side.hold_us is not None:
                [time] = time_values(few.take([at]).rows.column(side.time).combine_chunks()).tolist()
                until = time + side.hold_us
                over = time <= horizon(watermark, side.hold_us)
            return Limit(until, watermark, holder, how_far, over)

        return limit
