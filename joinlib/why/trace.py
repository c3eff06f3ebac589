"""Follows rows of inputs through the stages of a query, to the result or to where they are lost.

    rows ─► sift ─► late? ─► partners, read by key ─► match ─► rows of the stage ─► next stage … ─► result

Partners that are rows of an earlier stage are found by the input that their key comes from, and joined first.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.compiled import Compiled
from joinlib.model.inputs import InputPlan
from joinlib.model.joins import Leaf
from joinlib.model.side import SideConfig
from joinlib.model.stage import AnyStage, GroupStage, OverStage, Pipeline, selected
from joinlib.model.time import ALWAYS, NEVER
from joinlib.model.watermark import horizon
from joinlib.state.run import time_values
from joinlib.why.few import Few, table
from joinlib.why.looked import kept_table
from joinlib.why.match import Matching, Nearest
from joinlib.why.node import Level, level_of
from joinlib.why.progress import Progress
from joinlib.why.scan import Scanned, Scans, Wanted
from joinlib.why.sift import Dropped, Sifted, key_mask, sift, stored_value
from joinlib.why.verdict import (
    Beyond,
    Found,
    Late,
    Limit,
    ResultRow,
    SourceRow,
    Unread,
    Verdict,
    Withdrawn,
)

_NEAR = 5  # keys for which the nearest ones are looked for


class NotFollowed(Exception):
    """Rows came to a part of the query that is not followed row by row; the message says what it does."""


class Trace:
    """The rows of one input that are asked for, and what became of them. `notes`: what could not be looked at."""

    def __init__(
        self, plan: Compiled, progress: Progress, scans: Scans, shown: Callable[[InputPlan], str]
    ) -> None:
        self._shown = shown
        self.pipeline, self._progress, self._scans = plan.pipeline, progress, scans
        self._tables = plan.source.tables
        self.verdicts: dict[int, list[Verdict]] = defaultdict(list)
        self.notes: dict[str, None] = {}
        self.asked: frozenset[int] = frozenset()

    # --- where rows come in ------------------------------------------------------------------------

    def follow(self, stage: int, leaf: int, wanted: Wanted, columns: Sequence[str]) -> Scanned:
        """Follow the rows of an input of a stage that are wanted."""
        level = level_of(self.pipeline, stage)
        plan = level.inputs[leaf]
        scanned = self._scan(plan, wanted, columns)
        self.asked = frozenset(scanned.ids)
        self._note(self._sifted(level, plan, scanned), level, leaf)
        return scanned

    def _note(self, sifted: Sifted, level: Level, leaf: int) -> None:
        kept = {n for origin in sifted.kept.origins for n in origin}
        for one in sifted.lost:
            for number in self.asked.intersection(one.origin) - kept:
                self.verdicts[number].append(one.verdict)
        if sifted.kept.origins:
            self._onward(level, leaf, sifted)

    def _onward(self, level: Level, leaf: int, sifted: Sifted) -> None:
        """Join rows that have come to a level, and follow what comes out."""
        if (what := _beyond(self.pipeline.stages[level.number])) is not None:
            self._all(sifted.kept, Beyond(what[0]))
            return
        try:
            made = self._joined(level, leaf, sifted, self.asked)
            if made.origins:
                self._emitted(level.last, self._rows(level.last, made))
        except NotFollowed as found:
            self._all(sifted.kept, Beyond(str(found)))

    def _rows(self, number: int, made: Few) -> Few:
        """Return the rows of a stage that are made of joined rows: looked up in tables, in the stage's columns.

        Raises:
            NotFollowed: They cannot be told.
        """
        stage = self.pipeline.stages[number]
        for lookup in stage.lookups:
            task = next(t for t in self._tables if t.alias == lookup.table.alias)
            table = kept_table(task, self._progress.tables().get(task.alias))
            if table is None:
                raise NotFollowed(f"its rows are looked up in {lookup.table.source}, which is not kept whole")
            made = table.looked_up(made, self._lose)
        return _selected(stage, made)

    def _emitted(self, number: int, few: Few) -> None:
        """Follow rows of a stage to the result and to the stages that read them."""
        for result in self.pipeline.results:
            if result.stage == number:
                self._found(result.name, few)
        for reader, plan in self.pipeline.readers(number):
            level = level_of(self.pipeline, reader)
            leaf = level.own.index(plan.number)
            self._note(self._received(level, plan, few), level, leaf)

    def _lose(self, before: Few, after: Few, verdict: Verdict) -> None:
        """Note why rows are there before and not after."""
        there, left = ({n for origin in few.origins for n in origin} for few in (before, after))
        for number in self.asked & there - left:
            self.verdicts[number].append(verdict)

    def _all(self, few: Few, verdict: Verdict) -> None:
        for number in self.asked.intersection(n for origin in few.origins for n in origin):
            self.verdicts[number].append(verdict)

    def _found(self, name: str, few: Few) -> None:
        columns = few.rows.column_names
        rows = [
            ResultRow(
                name,
                tuple((c, row[c]) for c in columns),
                tuple(sorted(map(self.row_of, origin), key=self._place)),
            )
            for row, origin in zip(few.rows.to_pylist(), few.origins, strict=True)
        ]
        for number in self.asked:
            if at := few.positions(number):
                self.verdicts[number].append(Found(tuple(rows[n] for n in at)))

    def _place(self, row: SourceRow) -> tuple[int, str, int, int]:
        """Return what rows of inputs are sorted by."""
        names = [self._shown(plan) for plan in self.pipeline.inputs]
        return names.index(row.alias), row.file, row.partition or 0, row.at

    def row_of(self, number: int) -> SourceRow:
        """Return where a row came from."""
        return self._scans.hits[number].row

    # --- joins -------------------------------------------------------------------------------------

    def _joined(self, level: Level, leaf: int, given: Sifted, asked: frozenset[int]) -> Few:
        """Return the rows that a level makes of some rows of one of its inputs."""
        leaves = {leaf: given}
        nearest: dict[int, Nearest] = {}
        waiting = [n for n in range(len(level.inputs)) if n != leaf] if level.forms else []
        while waiting:
            known = {name: n for n in leaves for name in level.inputs[n].schema.names}
            at, keys = next(((n, k) for n in waiting if (k := _keys(level, known, n))), (waiting[0], []))
            waiting.remove(at)
            leaves[at], nearest[at] = self._partners(level, at, keys, known, leaves)
        matching = Matching(level, leaves, asked, nearest, self.row_of, self._limit_of(level))
        made = matching.run()
        alone = {one: why for one, why in matching.missed.items() if one not in matching.lost}
        for one, verdict in (*alone.items(), *matching.lost.items()):
            self.verdicts[one].append(verdict)
        return made

    def _partners(
        self,
        level: Level,
        at: int,
        keys: Sequence[tuple[str, str]],
        known: Mapping[str, int],
        leaves: Mapping[int, Sifted],
    ) -> tuple[Sifted, Nearest]:
        """Return the rows of an input that have the keys of rows that are there, and the keys near those."""
        plan = level.inputs[at]
        if not keys:
            return self._read(level, plan, (), None)
        mine, its = keys[0]
        values = leaves[known[mine]].kept.rows.column(mine).combine_chunks().drop_null().unique()
        if not len(values):
            return Sifted(Few(plan.schema.empty_table(), ()), ()), {}
        return self._read(level, plan, (its,), values)

    def _read(
        self, level: Level, plan: InputPlan, columns: Sequence[str], values: pa.Array | None
    ) -> tuple[Sifted, Nearest]:
        """Return the rows of an input with some values of a stored column; without, all."""
        if plan.upstream is not None:
            return self._from_stage(level, plan, columns, values), {}
        near = _Near(values) if values is not None and len(values) <= _NEAR else None

        def wanted(rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
            if values is None:
                return np.ones(rows.num_rows, np.bool_)
            if near is not None:
                near.seen(stored_value(plan, rows, columns[0]))
            return key_mask(plan, rows, columns, values)

        scanned = self._scan(plan, wanted, ())
        return self._sifted(level, plan, scanned), near.found() if near is not None else {}

    def _from_stage(
        self, level: Level, plan: InputPlan, columns: Sequence[str], values: pa.Array | None
    ) -> Sifted:
        """Return rows of an earlier stage, found by the input that their key comes from; all, if it is computed."""
        assert plan.upstream is not None
        below, source = level_of(self.pipeline, plan.upstream), None
        if (what := _beyond(self.pipeline.stages[below.number])) is not None:
            raise NotFollowed(f"its partners are {what[1]}")
        if values is not None and (name := _below(plan, columns[0])) is not None:
            source = stored_as(self.pipeline, plan.upstream, name)
        leaf, column = source[1:] if source is not None else (0, "")
        parts, gone = list[Few](), list[Dropped]()
        union = isinstance(below.root, Leaf)
        for one in range(len(below.inputs)) if union else [leaf]:
            read, _ = self._read(below, below.inputs[one], (column,), values if source is not None else None)
            few = self._joined(below, one, read, frozenset(n for o in read.kept.origins for n in o))
            parts.append(self._rows(plan.upstream, few))
            gone += self._dropped(read, parts[-1], column, columns[0]) if source is not None else []
        made = Few(
            pa.concat_tables([part.rows for part in parts]), tuple(o for part in parts for o in part.origins)
        )
        found = self._received(level, plan, made)
        return Sifted(found.kept, (*found.lost, *gone))

    def _dropped(self, read: Sifted, made: Few, column: str, key: str) -> list[Dropped]:
        """Return the rows that an earlier stage has dropped, with the key by which they were looked for."""
        out = {n for o in made.origins for n in o}
        keys = zip(read.kept.origins, read.kept.rows.column(column).to_pylist(), strict=True)
        left = ((o, v, self.verdicts[o[0]][-1:]) for o, v in keys if not out.intersection(o))
        gone = [Dropped(o, verdict, {key: v}) for o, v, said in left for verdict in said]
        return gone + [
            Dropped(o.origin, o.verdict, {key: o.row[column]}) for o in read.lost if column in o.row
        ]

    # --- time --------------------------------------------------------------------------------------

    def _scan(self, plan: InputPlan, wanted: Wanted, more: Iterable[str]) -> Scanned:
        columns = [name for name in dict.fromkeys([*plan.read, *more]) if not name.startswith("$")]
        scanned = self._scans.scan(
            plan.source,
            columns,
            plan.source_time if not plan.numbered else None,
            wanted,
            plan.alias,
            self._shown(plan),
        )
        self.notes |= dict.fromkeys(f"{plan.source}: {note}" for note in scanned.notes)
        return scanned

    def _sifted(self, level: Level, plan: InputPlan, scanned: Scanned) -> Sifted:
        """Return the rows of a source that join: those that are read, not deleted, and in time."""
        hits = {n: self._scans.hits[n] for n in scanned.ids}
        found = sift(plan, scanned.rows, [(n,) for n in scanned.ids])
        gone = self._withdrawn(plan, found.kept)
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

    def _received(self, level: Level, plan: InputPlan, few: Few) -> Sifted:
        """Return the rows of an earlier stage that join: all, except late ones where that stage has dropped none."""
        found = sift(plan, few.rows, few.origins)
        if not (plan.settled and level.timed and plan.time is not None):
            return found
        times = time_values(found.kept.rows.column(plan.time).combine_chunks()).tolist()
        late: dict[int, Verdict] = {}
        for at, (origin, time) in enumerate(zip(found.kept.origins, times, strict=True)):
            by = max((self._scans.hits[n].by for n in origin), key=lambda by: by.batch or 0)
            watermark, known = self._progress.watermark_before(level.number, by)
            if known and time < watermark - plan.lag_us:
                late[at] = Late(watermark - plan.lag_us - time, watermark)
        rows = found.kept.rows.to_pylist() if late else []
        lost = [Dropped(found.kept.origins[at], verdict, rows[at]) for at, verdict in late.items()]
        return Sifted(found.kept.where([at not in late for at in range(len(times))]), (*found.lost, *lost))

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
                gone[there[row].pop(0)] = Withdrawn(self.row_of(number))
        return gone

    def _late(self, level: Level, plan: InputPlan, few: Few) -> dict[int, Verdict]:
        """Return the rows that were behind the watermark before their batch; of others that may have been, note it."""
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
                late[number] = Late(by, watermark)
            elif by > 0 and number in self.asked and watermark != ALWAYS:
                self.verdicts[number].append(Late(by, watermark, sure=False))
        return late

    def _limit_of(self, level: Level) -> Any:
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


class _Near:
    """The nearest keys below and above some values, among all that were seen."""

    def __init__(self, values: pa.Array) -> None:
        self._values, self._below, self._above = values, dict[int, Any](), dict[int, Any]()

    def seen(self, column: pa.Array | pa.ChunkedArray) -> None:
        """Look at the keys of some rows."""
        if not _ordered(column.type):
            return
        for at, value in enumerate(self._values):
            below = pc.max(column.filter(pc.less(column, value)))
            above = pc.min(column.filter(pc.greater(column, value)))
            for known, one, better in ((self._below, below, pc.greater), (self._above, above, pc.less)):
                if one.is_valid and (at not in known or better(one, known[at]).as_py()):
                    known[at] = one

    def found(self) -> Nearest:
        """Return the nearest keys by value."""
        return {
            value.as_py(): tuple(str(k[at].as_py()) for k in (self._below, self._above) if at in k)
            for at, value in enumerate(self._values)
        }


def _ordered(kind: pa.DataType) -> bool:
    numbers = pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind)
    return bool(numbers or pa.types.is_string(kind) or pa.types.is_temporal(kind))


def _below(plan: InputPlan, column: str) -> str | None:
    """Return the column of the stage below that a stored column is; None if it is computed."""
    name = next(c.value.column for c in plan.columns if c.name == column)
    for step in reversed(plan.maps):
        value = dict(step.columns).get((name or "").removeprefix(f"{plan.alias}."))
        name = value.column if value is not None else None
    return name


def stored_as(pipeline: Pipeline, number: int, name: str) -> tuple[Level, int, str] | None:
    """Return where a column of a stage's rows is stored: the level, its leaf and the column there; None if it is computed."""
    value = dict(selected(pipeline.stages[number])).get(name)
    if value is None or value.column is None:
        return None
    level = level_of(pipeline, number)
    leaf = next((n for n, plan in enumerate(level.inputs) if value.column in plan.schema.names), None)
    return None if leaf is None else (level, leaf, value.column)


def _keys(level: Level, known: Mapping[str, int], at: int) -> list[tuple[str, str]]:
    """Return the columns by which rows of an input are found from those that are known."""
    names = set(level.inputs[at].schema.names)
    both = [*level.equal, *((b, a) for a, b in level.equal)]
    return list(dict.fromkeys((a, b) for a, b in both if a in known and b in names))


def _selected(stage: AnyStage, made: Few) -> Few:
    """Return joined rows in the columns of a stage's rows."""
    rows = made.rows.num_rows
    columns = [(name, _whole(value.evaluate(made.read, rows))) for name, value in selected(stage)]
    return Few(table(columns, rows), made.origins)


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _beyond(stage: AnyStage) -> tuple[str, str] | None:
    """Return what a stage does with rows that are not followed, and what comes out of it; None if they are."""
    if isinstance(stage, GroupStage):
        return "groups are made of it", "groups"
    if isinstance(stage, OverStage):
        return "window functions are computed over it", "rows of window functions"
    if "upsert" in {operator.kind for operator in stage.operators}:
        return "it replaces the row of its key, or is replaced by a later one", "the last rows of their keys"
    return None
