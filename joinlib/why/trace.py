"""Follows rows of inputs through the stages of a query, to the result or to where they are lost.

    rows ─► sift ─► late? ─► partners, read by key ─► match ─► rows of the stage ─► next stage … ─► result

Partners that are rows of an earlier stage are found by the input that their key comes from, and joined first.
Groups, partitions of window functions and keys of upserts are read whole (`remade`).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joinlib.apart import apart
from joinlib.compiled import Compiled
from joinlib.errors import SpecError
from joinlib.model.inputs import InputPlan
from joinlib.model.joins import Leaf
from joinlib.model.stage import AnyStage, GroupStage, OverStage, Pipeline, selected
from joinlib.why.dead import Dead
from joinlib.why.few import Few, Origin, concat, made_of, table, whole
from joinlib.why.incoming import Incoming
from joinlib.why.looked import kept_table
from joinlib.why.match import Matching, Nearest
from joinlib.why.near import Near
from joinlib.why.node import Level, level_of
from joinlib.why.progress import Progress
from joinlib.why.remade import Remade
from joinlib.why.scan import Scanned, Scans, TooMany, Wanted
from joinlib.why.sift import Dropped, Sifted, key_mask, stored_value
from joinlib.why.verdict import (
    Beyond,
    Failed,
    Found,
    ResultRow,
    SourceRow,
    Verdict,
)

_NEAR = 5  # keys for which the nearest ones are looked for


class NotFollowed(Exception):
    """Rows came to a part of the query that is not followed row by row; the message says what it does."""


class Trace:
    """The rows of one input that are asked for, and what became of them. `notes`: what could not be looked at."""

    def __init__(
        self, plan: Compiled, progress: Progress, scans: Scans, shown: Callable[[InputPlan], str]
    ) -> None:
        self.pipeline, self._progress, self._scans, self._shown = plan.pipeline, progress, scans, shown
        self._dead = Dead(plan)
        self._incoming = Incoming(progress, scans, shown, self._dead)
        self._tables = plan.source.tables
        self._remade = Remade(
            self.pipeline,
            progress,
            scans,
            self._incoming,
            self._dead,
            lambda *given: self._read(*given)[0].kept,
            self._say,
            self._rows_of,
        )
        self.verdicts: dict[int, list[Verdict]] = defaultdict(list)
        self.asked: frozenset[int] = frozenset()

    # --- where rows come in ------------------------------------------------------------------------

    def follow(self, stage: int, leaf: int, wanted: Wanted, columns: Sequence[str]) -> Scanned:
        """Follow the rows of an input of a stage that are wanted."""
        level = level_of(self.pipeline, stage)
        plan = level.inputs[leaf]
        scanned = self._incoming.scan(plan, wanted, columns)
        self.asked = frozenset(scanned.ids)
        sifted = self._incoming.sifted(level, plan, scanned)
        for number in sorted(self.asked & self._incoming.doubts.keys()):
            self.verdicts[number].append(self._incoming.doubts[number])
        self._note(sifted, level, leaf)
        return scanned

    @property
    def notes(self) -> dict[str, None]:
        return self._incoming.notes

    def _note(self, sifted: Sifted, level: Level, leaf: int) -> None:
        asked = self.asked.difference(sifted.kept.origin)
        for one in sifted.lost:
            for number in asked.intersection(one.origin):
                self.verdicts[number].append(one.verdict)
        if sifted.kept.origins:
            self._onward(level, leaf, sifted)

    def _onward(self, level: Level, leaf: int, sifted: Sifted) -> None:
        """Join rows that have come to a level, and follow what comes out."""
        stage = self.pipeline.stages[level.number]
        try:
            if (what := _beyond(stage)) is not None:
                raise NotFollowed(what[0])
            if (made := self._made(level, leaf, sifted, self.asked)).origins:
                self._emitted(level.last, made)
        except TooMany:  # of the same group or partition, to which no condition is of use
            if isinstance(stage, GroupStage) and self._is_result(level.number):
                self._remade.counted(level, stage.grouping, sifted.kept, self.asked)
            elif _of_many(stage):
                self._all(sifted.kept, Beyond("its row is made of more rows than are looked at"))
            else:
                raise
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
            made = table.looked_up(made, self._lose, self._dead.of_stage(number))
        return self._selected(number, made)

    def _selected(self, number: int, made: Few) -> Few:
        """Return joined rows in the columns of a stage's rows: those for which no column fails."""
        stage = self.pipeline.stages[number]

        def each(some: pa.RecordBatch) -> None:
            for _, value in selected(stage):
                value.evaluate(some.column, some.num_rows)

        _, _, failing = apart(whole(made.rows), each, SpecError)
        for one in failing:
            self._all(made.take([one.at]), Failed(str(one.error), self._dead.of_stage(number)))
        gone = {one.at for one in failing}
        return _selected(stage, made.where(at not in gone for at in range(made.rows.num_rows)))

    def _emitted(self, number: int, few: Few) -> None:
        """Follow rows of a stage to the result and to the stages that read them."""
        for result in self.pipeline.results:
            if result.stage == number:
                self._found(result.name, few)
        for reader, plan in self.pipeline.readers(number):
            level = level_of(self.pipeline, reader)
            leaf = level.own.index(plan.number)
            self._note(self._incoming.passed_on(level, plan, few), level, leaf)

    def _is_result(self, number: int) -> bool:
        return any(result.stage == number for result in self.pipeline.results)

    def _lose(self, before: Few, after: Few, verdict: Verdict) -> None:
        """Note why rows are there before and not after."""
        for number in self.asked.intersection(before.origin).difference(after.origin):
            self.verdicts[number].append(verdict)

    def _all(self, few: Few, verdict: Verdict) -> None:
        self._say(self.asked.intersection(few.origin), verdict)

    def _say(self, rows: Iterable[int], verdict: Verdict) -> None:
        for number in rows:
            if verdict not in self.verdicts[number]:  # a stage above may have had the rows made once more
                self.verdicts[number].append(verdict)

    def _found(self, name: str, few: Few) -> None:
        columns = few.rows.column_names
        rows = [
            ResultRow(
                name, tuple((c, row[c]) for c in columns), self._rows_of(origin), read=self._read_by(origin)
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

    def _rows_of(self, origin: Origin) -> tuple[SourceRow, ...]:
        """Return where the rows came from of which one was made, in the order of the inputs."""
        return tuple(sorted(map(self.row_of, made_of(origin)), key=self._place))

    def _read_by(self, origin: Origin) -> tuple[SourceRow, ...]:
        """Return the rows that window functions have read and of which it was not made otherwise, likewise."""
        return self._rows_of(tuple(dict.fromkeys(~n for n in origin if n < 0 and ~n not in origin)))

    def row_of(self, number: int) -> SourceRow:
        """Return where a row came from."""
        return self._scans.hits[number].row

    # --- rows of stages ----------------------------------------------------------------------------

    def _made(self, level: Level, leaf: int, given: Sifted, asked: frozenset[int]) -> Few:
        """Return the rows of a stage that come of some rows of one of its inputs.

        Raises:
            NotFollowed: They cannot be told.
        """
        stage = self.pipeline.stages[level.number]
        if isinstance(stage, GroupStage):
            return self._remade.grouped(level, stage, given.kept, asked)
        if isinstance(stage, OverStage):
            return self._remade.ranked(level, stage.over, given.kept, asked)
        if level.upsert:
            return self._rows(level.last, self._remade.latest(level, given.kept, asked))
        return self._rows(level.last, self._joined(level, leaf, given, asked))

    def _joined(self, level: Level, leaf: int, given: Sifted, asked: frozenset[int]) -> Few:
        """Return the rows that a level makes of some rows of one of its inputs."""
        leaves = {leaf: given}
        nearest: dict[int, Nearest] = {}
        waiting = [n for n in range(len(level.inputs)) if n != leaf] if level.forms else []
        while waiting:
            known = {name: n for n in leaves for name in level.inputs[n].schema.names}
            at, keys = next(((n, k) for n in waiting if (k := _keys(level, known, n))), (waiting[0], []))
            waiting.remove(at)
            with self._few_enough(level.inputs[at]):
                leaves[at], nearest[at] = self._partners(level, at, keys, known, leaves)
        dead, limit = self._dead.of_stage(level.number), self._incoming.limit_of(level)
        matching = Matching(level, leaves, asked, nearest, self.row_of, limit, dead)
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

    @contextmanager
    def _few_enough(self, partners: InputPlan) -> Iterator[None]:
        """Go no further where partners are made of too many rows: a narrower condition would be of no use."""
        try:
            yield
        except TooMany:
            if partners.upstream is None or not _of_many(self.pipeline.stages[partners.upstream]):
                raise
            raise NotFollowed("its partners are made of more rows than are looked at") from None

    def _read(
        self, level: Level, plan: InputPlan, columns: Sequence[str], values: pa.Array | None
    ) -> tuple[Sifted, Nearest]:
        """Return the rows of an input with some values of a stored column; without, all."""
        if plan.upstream is not None:
            return self._from_stage(level, plan, columns, values), {}
        near = Near(values) if values is not None and len(values) <= _NEAR else None

        def wanted(rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
            if values is None:
                return np.ones(rows.num_rows, np.bool_)
            if near is not None:
                near.seen(stored_value(plan, rows, columns[0]))
            return key_mask(plan, rows, columns, values)

        scanned = self._incoming.scan(plan, wanted, ())
        return self._incoming.sifted(level, plan, scanned), near.found() if near is not None else {}

    def _from_stage(
        self, level: Level, plan: InputPlan, columns: Sequence[str], values: pa.Array | None
    ) -> Sifted:
        """Return rows of an earlier stage, found by the input that their key comes from; all, if it is computed."""
        assert plan.upstream is not None
        below, source = level_of(self.pipeline, plan.upstream), None
        if (what := _beyond(self.pipeline.stages[below.number])) is not None:
            raise NotFollowed(f"its partners are {what[1]}")
        if values is not None and (name := plan.below(columns[0])) is not None:
            source = stored_as(self.pipeline, plan.upstream, name)
        if source is not None and values is not None and values.null_count and source[1] in below.optional:
            source = None  # NULL also where that input has no row
        leaf, column = source[1:] if source is not None else (0, "")
        parts, gone, seen = list[Few](), list[Dropped](), frozenset[int]()
        by_key = source is not None and not isinstance(below.root, Leaf)
        for one in [leaf] if by_key else below.covering:
            read, _ = self._read(below, below.inputs[one], (column,), values if source is not None else None)
            made = self._made(below, one, read, frozenset(read.kept.origin))
            parts.append(made.where(map(seen.isdisjoint, made.origins)))
            gone += self._dropped(read, made, column, columns[0]) if source is not None else []
            seen |= frozenset(made_of(read.kept.origin))
        found = self._incoming.passed_on(level, plan, concat(parts))
        return Sifted(found.kept, (*found.lost, *gone))

    def _dropped(self, read: Sifted, made: Few, column: str, key: str) -> list[Dropped]:
        """Return the rows that an earlier stage has dropped, with the key by which they were looked for."""
        out = frozenset(made_of(made.origin))
        keys = zip(read.kept.origins, read.kept.rows.column(column).to_pylist(), strict=True)
        left = ((o, v, self.verdicts[o[0]][-1:]) for o, v in keys if not out.intersection(o))
        gone = [Dropped(o, verdict, {key: v}) for o, v, said in left for verdict in said]
        return gone + [
            Dropped(o.origin, o.verdict, {key: o.row[column]}) for o in read.lost if column in o.row
        ]


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


def _of_many(stage: AnyStage) -> bool:
    """Whether rows of a stage are made of many."""
    return isinstance(stage, GroupStage | OverStage)


def _beyond(stage: AnyStage) -> tuple[str, str] | None:
    """Return what a stage does with rows that are not followed, and what comes out of it; None if they are."""
    if isinstance(stage, OverStage) and stage.over.present is not None:
        return "it comes and goes with the watermark", "rows that come and go with the watermark"
    if any(operator.partial for operator in stage.operators):
        return "it replaces the row of its key, or is replaced by a later one", "the last rows of their keys"
    return None
