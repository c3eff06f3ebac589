"""Makes rows again for which a stage reads many: last rows of keys, rows of groups, rows with window functions.

rows that are asked for ─► all rows of their keys, groups or partitions ─► without late ones ─► the stage's rows
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from joinlib.model.grouping import Grouping
from joinlib.model.inputs import InputPlan
from joinlib.model.over import Over
from joinlib.model.stage import GroupStage, OverStage, Pipeline, selected
from joinlib.model.time import ALWAYS, NEVER
from joinlib.over.settled import bound
from joinlib.plan.explain.texts import bare
from joinlib.plan.explain.words import spoken
from joinlib.why.dead import Dead
from joinlib.why.few import Few, Origin, concat, made_of
from joinlib.why.groups import groups, refused, released, row_of_group
from joinlib.why.incoming import Incoming
from joinlib.why.nearest import AsOf, asof_of
from joinlib.why.node import Level
from joinlib.why.over import Ranks, times
from joinlib.why.progress import Progress
from joinlib.why.scan import Scans, TooMany
from joinlib.why.verdict import (
    Counted,
    Failed,
    Filtered,
    InGroup,
    Late,
    Limit,
    NoNearest,
    NotNearest,
    PartnerRefused,
    Replaced,
    SourceRow,
    TooLate,
    Unqualified,
    Unsettled,
    Verdict,
    Withdrawn,
)

Asked = frozenset[int]  # numbers of rows of inputs of which it is said what became of them
_REFUSED = (
    "of an as-of join with a tolerance that is joined further, the nearest row is told also where the tolerance"
    " refuses it"
)
MOST_GROUPS = 1_000  # groups of which rows are made


@dataclass(frozen=True)
class Remade:
    """The rows of stages; `say` takes what became of rows that are not in them.

    read: returns the rows of an input of a level that have some values of a stored column; without, all.
    """

    pipeline: Pipeline
    progress: Progress
    scans: Scans
    incoming: Incoming
    dead: Dead
    read: Callable[[Level, InputPlan, Sequence[str], pa.Array | None], Few]
    say: Callable[[Iterable[int], Verdict], None]
    rows_of: Callable[[Origin], tuple[SourceRow, ...]]

    # --- keys --------------------------------------------------------------------------------------

    def latest(self, level: Level, few: Few, asked: Asked) -> Few:
        """Return the last rows of the keys of some events of an upsert."""
        [plan], keys = level.inputs, level.forms[0].sides[0].keys
        every = self.read(level, plan, keys[:1], few.rows.column(keys[0]).combine_chunks().unique())
        last = []
        for places in every.places(keys).values():
            origins = [every.origins[at] for at in places]
            for origin, later in zip(origins, [*origins[1:], None], strict=True):
                if (gone := self._gone(origin, later)) is not None:
                    self.say(asked.intersection(origin), gone)
            if asked.intersection(origins[-1]) and not self._deletes(origins[-1]):
                last.append(places[-1])
        return every.take(last)

    def _gone(self, origin: Origin, later: Origin | None) -> Verdict | None:
        """Return why an event is not the row of its key; None: it is."""
        if self._deletes(origin):
            return Withdrawn(None)
        if later is None:
            return None
        [by] = self.rows_of(later)
        return Withdrawn(by) if self._deletes(later) else Replaced(by)

    def _deletes(self, origin: Origin) -> bool:
        return any(self.scans.hits[number].weight < 0 for number in made_of(origin))

    # --- groups ------------------------------------------------------------------------------------

    def grouped(self, level: Level, stage: GroupStage, few: Few, asked: Asked) -> Few:
        """Return the rows of the groups of some rows, made of all rows that have come to these groups in time.

        Raises:
            TooMany: They have too many rows, or are too many.
        """
        grouping, names = stage.grouping, few.rows.column_names
        keys = [key.name for key in grouping.keys]
        every = concat(self._whole(level, names, keys, few))
        gone = self._late(level, grouping, every)
        late, every = every.where(gone), every.where(not one for one in gone)
        of = [every.take(at) for at in every.places(keys).values()]
        of = [members for members in of if asked.intersection(members.origin)]
        if len(of) > MOST_GROUPS:
            raise TooMany(f"more than {MOST_GROUPS:,} groups are asked for; narrow the condition")
        for origin, group in zip(late.origins, groups(grouping, self._told(level), late), strict=True):
            self.say(asked.intersection(origin), TooLate(group))
        made = [self._row(level, stage, members, asked) for members in of]
        return concat([Few(stage.schema.empty_table(), ()), *made])

    def _row(self, level: Level, stage: GroupStage, members: Few, asked: Asked) -> Few:
        """Return the row of a group, if it has come out."""
        grouping, limit, origin = stage.grouping, self._now(level.number), members.origin
        own, first = asked.intersection(origin), members.take([0])
        [group], [out] = (
            groups(grouping, self._told(level), first),
            released(grouping, first, [limit.watermark_us]),
        )
        waits = grouping.final_close and not (limit.over or out)
        self.say(own, InGroup(group, limit if waits else None, grouping.release is not None))
        if waits:
            return Few(stage.schema.empty_table(), ())
        row, error = row_of_group(stage, members)
        if error is not None:
            self.say(own, Failed(error, self.dead.of_stage(level.number)))
        elif not row.num_rows and grouping.having is not None:
            self.say(own, refused(stage, self._told(level), group, members))
        return Few(row, (origin,) * row.num_rows)

    def counted(self, level: Level, grouping: Grouping, few: Few, asked: Asked) -> None:
        """Say in which groups of the result rows count: the other rows of these groups are not looked at."""
        limit = self._now(level.number)
        now = released(grouping, few, [limit.watermark_us] * len(few.origins))
        late = self._late(level, grouping, few)
        for origin, group, out, gone in zip(
            few.origins, groups(grouping, self._told(level), few), now, late, strict=True
        ):
            until = replace(limit, over=limit.over or out) if grouping.final_close else None
            timed = grouping.release is not None
            verdict = TooLate(group) if gone else Counted(group, self.rows_of(origin), until, timed)
            self.say(asked.intersection(origin), verdict)

    def _told(self, level: Level) -> Grouping:
        """Return the groups of a stage in the words of the query."""
        stage = self._spoken.stages[level.number]
        assert isinstance(stage, GroupStage)
        return stage.grouping

    def _late(self, level: Level, grouping: Grouping, few: Few) -> list[bool]:
        """Return whether the group of each row had come out for good when the row came."""
        before = (self.incoming.watermark_before(level.number, origin) for origin in few.origins)
        return released(grouping, few, [watermark if known else NEVER for watermark, known in before])

    # --- partitions --------------------------------------------------------------------------------

    def ranked(self, level: Level, over: Over, few: Few, asked: Asked) -> Few:
        """Return rows with window functions, which are computed over all rows that have come to their partitions in time."""
        asof = self._asof(level.number)
        if asof is not None and not asof.inner and self._passes_on(level.number):
            self.incoming.notes[_REFUSED] = None
        ranks = Ranks(over, self._partitions(level, over, few, asked), asof is not None)
        limit, out = self._now(level.number), []
        final = ranks.final(limit.watermark_us)
        for at in range(len(ranks.few.origins)):
            if asof is not None and ranks.right[at]:
                self._unmet(ranks, at, asof, asked)
                continue
            own = asked.intersection(ranks.joined(at))
            if own and at in ranks.failing:
                self.say(own, Failed(ranks.failing[at], self.dead.of_stage(level.number)))
            elif own and over.qualify is not None and at not in ranks.passing:
                self._left_out(level, ranks, at, asof, asked)
            elif own and not final[at]:
                self.say(own, Unsettled(limit, over.settles_by is not None))
            elif own:
                out.append(at)
        for at, counts in zip(out, ranks.counting(out) if asof is not None else (), strict=False):
            if not counts and ranks.partners[at] >= 0:
                self._refused(ranks, at, "", asked)
        return ranks.result(out)

    def _left_out(self, level: Level, ranks: Ranks, at: int, asof: AsOf | None, asked: Asked) -> None:
        """Say why QUALIFY leaves a row out, which of an as-of join is one of the left side."""
        own = asked.intersection(ranks.few.origins[at])
        if asof is None:
            self.say(own, self._unqualified(level, ranks, at))
        elif ranks.partners[at] >= 0:
            self._refused(ranks, at, asof.clause, asked)
        elif asof.inner:
            self.say(own, NoNearest(asof.right, asof.where))
        else:
            self.say(own, Filtered(asof.clause or "WHERE"))

    def _refused(self, ranks: Ranks, at: int, clause: str, asked: Asked) -> None:
        """Say of a row of the left side of an as-of join, and of its partner, that a condition over both is not true."""
        both = ranks.few.origins[at], ranks.few.origins[ranks.partners[at]]
        for own, other in (both, both[::-1]):
            self.say(asked.intersection(own), PartnerRefused(self.rows_of(other)[0], clause))

    def _unmet(self, ranks: Ranks, at: int, asof: AsOf, asked: Asked) -> None:
        """Say of a row of the right side of an as-of join whether it is the partner of none."""
        own = asked.intersection(ranks.few.origins[at])
        if own and at not in ranks.met:
            later = ranks.next(at)
            self.say(
                own, NotNearest(asof.left, self.rows_of(ranks.few.origins[later])[0] if later >= 0 else None)
            )

    def _passes_on(self, number: int) -> bool:
        """Whether a stage that reads this one may have the tolerance of its as-of join, which is a CASE."""
        readers = [(self.pipeline.stages[reader], plan) for reader, plan in self.pipeline.readers(number)]
        values = [v for stage, _ in readers for _, v in selected(stage)]
        values += [v for _, plan in readers for step in plan.maps for _, v in step.columns]
        return any("CASE " in value.sql for value in values)

    def _asof(self, number: int) -> AsOf | None:
        """Return the as-of join that a stage computes."""
        plain, told = self.pipeline.stages[number], self._spoken.stages[number]
        assert isinstance(plain, OverStage) and isinstance(told, OverStage)
        return asof_of(plain, told, self.incoming.shown)

    def _unqualified(self, level: Level, ranks: Ranks, at: int) -> Verdict:
        stage, first = self._spoken.stages[level.number], ranks.first(at)
        assert isinstance(stage, OverStage)
        assert stage.over.qualify is not None
        names = [bare(call.sql) for call in stage.over.calls]
        values = tuple(zip(names, ranks.values(at), strict=True))
        row = self.rows_of(ranks.few.origins[first])[-1] if first != at else None
        return Unqualified(stage.over.qualify.sql, values, row)

    @cached_property
    def _spoken(self) -> Pipeline:
        """The plan in the words of the query."""
        return spoken(self.pipeline)

    def _partitions(self, level: Level, over: Over, few: Few, asked: Asked) -> Few:
        """Return all rows that have come in time to the partitions of some, in the columns of the functions."""
        parts = self._whole(level, [name for name, _ in over.columns], over.partition, few)
        own = zip(level.inputs, parts, strict=True)
        every = concat([self._in_time(level, plan, over, part, asked) for plan, part in own])
        return Few(every.rows.cast(pa.schema(over.columns)), every.origins)

    def _in_time(self, level: Level, plan: InputPlan, over: Over, few: Few, asked: Asked) -> Few:
        """Return the rows that were not late when they came; of the others it is said."""
        if over.settles_by is None:
            return few
        kept, unit_us = [], 86_400_000_000 if dict(over.columns)[over.settles_by] == pa.date32() else 1
        for at, (time, origin) in enumerate(zip(times(over, few).tolist(), few.origins, strict=True)):
            watermark, known = self.incoming.watermark_before(level.number, origin)
            behind = bound(over, watermark if known else NEVER) - time
            if time != ALWAYS and behind <= 0:
                kept.append(at)
                continue
            late = Late(behind * unit_us, watermark, dead=self.dead.of_late(plan))
            verdict = Filtered(f"{plan.time} IS NOT NULL") if time == ALWAYS else late
            self.say(asked.intersection(origin), verdict)
        return few.take(kept)

    # --- both --------------------------------------------------------------------------------------

    def _whole(self, level: Level, names: Sequence[str], keys: Sequence[str], few: Few) -> list[Few]:
        """Return, by input, all rows that have come to a stage with the first key of some.

        names: what the stage calls the columns of each input.
        """
        values = few.rows.column(names.index(keys[0])).combine_chunks().unique() if keys else None
        parts = []
        for plan in level.inputs:
            own = () if values is None else (plan.schema.names[names.index(keys[0])],)
            rows, origins = (kept := self.read(level, plan, own, values)).rows, kept.origins
            parts.append(Few(rows.select(rows.column_names[: len(names)]).rename_columns(names), origins))
        return parts

    def _now(self, number: int) -> Limit:
        """Return how far the watermark of a stage is."""
        watermark = self.progress.watermark(number)
        return Limit(None, watermark, *self.progress.holder(number), watermark == ALWAYS)
