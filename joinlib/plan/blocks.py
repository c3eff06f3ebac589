"""Plans a query: each of its parts becomes maps, stages, or both; parts that only compute cost no stage.

    part     becomes                                                      is read as
    map      nothing: its readers compute it                              what feeds it, with one map more
    union    nothing: its readers take all that feeds it                  several feeds
    select   stages of joins, a stage of groups                           the rows of the last of them
    over     a stage of window functions                                  its rows

A reader that joins has one feed for each input, so a union that is joined becomes a stage that only unites.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from joinlib.errors import SqlError, of_output
from joinlib.expr import Expr, ref
from joinlib.expr import types as t
from joinlib.expr.behind import Rising
from joinlib.expr.cast import cast
from joinlib.expr.logic import all_of
from joinlib.model.called import Called
from joinlib.model.grouping import Grouping
from joinlib.model.inputs import InputPlan, StoredColumn
from joinlib.model.joins import Leaf
from joinlib.model.maps import Map
from joinlib.model.order import StageOrder
from joinlib.model.stage import AnyStage, GroupStage, NamedResult, OutputColumn, OverStage, Pipeline, Stage
from joinlib.plan import known, rising
from joinlib.plan.build import Request
from joinlib.plan.changes import Mode, OutputMode, check_changes, static, upserted, with_key, with_upserts
from joinlib.plan.clocks import clocked, with_clocks
from joinlib.plan.decide import JoinAnswers, PathChooser, conversion
from joinlib.plan.explain.texts import renaming
from joinlib.plan.feed import fed, feeds_of
from joinlib.plan.fold import folded
from joinlib.plan.options import JoinOptions
from joinlib.plan.order import Decide, as_written
from joinlib.plan.share import shared
from joinlib.plan.source import Inflow, SourceInput
from joinlib.plan.stages import joins
from joinlib.sql import Query, Scan, analyse_stages
from joinlib.sql.aggregate import check_append
from joinlib.sql.blocks import Block, blocks, of_several
from joinlib.sql.hints import hints
from joinlib.sql.maps import map_of
from joinlib.sql.mistakes import each, renamed
from joinlib.sql.notes import notes
from joinlib.sql.over import over_of
from joinlib.sql.parse import place


def pipeline(
    sql: str,
    inputs: Mapping[str, SourceInput],
    options: JoinOptions,
    *,
    mode: Mode = "append",
    key: Sequence[str] = (),
    views: Mapping[str, str] | None = None,
    decide: Decide = as_written,
) -> Pipeline:
    """Plan the stages that answer the query.

    `mode`: what the output may take. With append, results are final; otherwise groups and rows of outer joins
    come at once, and are taken back. `key`: the columns of which each value has one row in the
    result; all changes of one value come out of one unit. `views`: SELECTs that the query may name. `decide`: in which
    order inner joins by several keys become stages.

    Raises:
        SqlError: if the query cannot be answered.
        SpecError: if an option does not fit the query.
    """
    parts = blocks(sql, Request(inputs, options).tables, views or {}, options.stored)
    request = Request(inputs, options, decide=decide, chooser=PathChooser(options.strategy, hints(sql)))
    outputs = {"": OutputMode(mode, tuple(key))}
    stages, _, orders = _results(sql, parts, request, outputs)
    found = replace(_told(sql, parts, request, shared(stages)[0]), orders=orders)
    return _checked(found, inputs, outputs)


def pipeline_of_several(
    sql: str,
    outputs: Mapping[str, OutputMode],
    inputs: Mapping[str, SourceInput],
    options: JoinOptions,
    decide: Decide = as_written,
) -> Pipeline:
    """Plan the stages that answer the queries of several outputs; what several of them name is computed once.

    `sql`: their text (`sql.text.program`). Each output has a stage of its own, which makes its result.

    Raises:
        SqlError, SpecError: As `pipeline` does; the error has the name of the output.
    """
    parts = of_several(sql, Request(inputs, options).tables, options.stored)
    request = Request(inputs, options, decide=decide, chooser=PathChooser(options.strategy, hints(sql)))
    made, results, orders = _results(sql, parts, request, outputs)
    stages, places = shared(made, {result.stage for result in results})
    named = tuple(replace(result, stage=places[result.stage]) for result in results)
    found = replace(_told(sql, parts, request, stages), named=named, orders=orders)
    return _checked(found, inputs, outputs)


def _told(sql: str, parts: Sequence[Block], request: Request, stages: Sequence[AnyStage]) -> Pipeline:
    """Return the stages with what is to be said of them."""
    return Pipeline(
        with_clocks(stages, upserted(request.inputs)),
        notes=(*notes(sql), *request.chooser.notes()),
        called=tuple(called for part in parts for called in part.called),
        joined=conversion(parts, request.chooser.decisions),
    )


def _results(
    sql: str,
    parts: Sequence[Block],
    asked: Request,
    outputs: Mapping[str, OutputMode],
) -> tuple[list[AnyStage], tuple[NamedResult, ...], tuple[StageOrder, ...]]:
    """Plan the results one after the other; return all stages, which of them make the results, and what was decided.

    Outputs that wait until rows are final and those that do not have planners of their own, since joins and groups
    differ: each plans a part once.
    """
    stages, results, aliases = list[AnyStage](), list[NamedResult](), set[str]()
    planners = dict[tuple[bool, bool], _Planner]()
    needed = {part.output: _needed(part, parts) for part in parts if part.output is not None}
    uses = Counter(below.name for parts in needed.values() for below in parts)

    def planned(output: str) -> None:
        below = needed[output]
        with of_output(output):
            mode = outputs[output].mode
            named = {t.name.lower() for part in below for t in part.query.find_all(exp.Table)}
            changing = any(i.changes or i.upsert for n, i in asked.inputs.items() if n.lower() in named)
            request = replace(asked, inputs=upserted(asked.inputs), eager=changing or mode != "append")
            kind = mode == "append", request.eager
            planner = planners.setdefault(kind, _Planner(sql, request, mode, stages, aliases))
            for part in below[:-1]:
                planner.know(part, shared=uses[part.name] > 1)
            planner.result(below[-1])
        results.append(NamedResult(output, len(stages) - 1))

    with _in_text(called for part in parts for called in part.called):
        each(planned, needed)
    orders = (order for planner in planners.values() for order in planner.orders)
    return stages, tuple(results), tuple(orders)


@contextmanager
def _in_text(every: Iterable[Called]) -> Iterator[None]:
    """Tell mistakes in the block by the names that inputs have in the text, of which the plan makes different ones."""
    try:
        yield
    except SqlError as error:
        names = {one.alias: one.name.removeprefix("$") for one in every if one.name}
        raise renamed(error, renaming(names)) from error


def _needed(part: Block, parts: Sequence[Block]) -> list[Block]:
    """Return a part behind all those that it reads, in their order."""
    named = {part.name}
    for other in reversed(parts):
        if other.name in named:
            named |= {table.name for table in other.query.find_all(exp.Table)}
    return [other for other in parts if other.name in named]


def _checked(
    plan: Pipeline, inputs: Mapping[str, SourceInput], outputs: Mapping[str, OutputMode]
) -> Pipeline:
    """Return the plan with what its inputs and outputs need, if it can be done."""
    for result in plan.results:
        with of_output(result.name):
            check_changes(plan.below(result), inputs, outputs[result.name].mode)
    plan = with_upserts(static(plan), inputs)
    for result in plan.results:
        asked = outputs[result.name]
        with of_output(result.name):
            plan = with_key(plan, result, asked.key, asked.mode)
    return plan


@dataclass
class _Planner:
    """The stages so far, and the parts that later ones may name."""

    sql: str
    request: Request
    mode: Mode
    stages: list[AnyStage]
    aliases: set[str]  # of all inputs so far
    known: dict[str, SourceInput] = field(default_factory=dict)
    shared: set[int] = field(default_factory=set)  # stages that several outputs read
    orders: list[StageOrder] = field(default_factory=list)

    def know(self, part: Block, *, shared: bool) -> None:
        """Plan a part that others read, once. shared: by several outputs."""
        if part.name not in self.known:
            before = len(self.stages)
            self.known[part.name] = self.part(part)
            self.shared |= set(range(before, len(self.stages))) if shared else set()

    def result(self, part: Block) -> None:
        """Plan the last part: its rows come out of a stage."""
        before = len(self.stages)
        found = self.part(part, last=True)
        alone = bool(self.stages) and len(self.stages) - 1 not in self.shared
        if alone and (last := folded(self.stages, found)) is not None:
            self.stages[-1] = last
        elif len(self.stages) == before or found.feeds[0].maps:
            self._unite(found)

    def part(self, part: Block, last: bool = False) -> SourceInput:
        """Plan one part; return it as later ones read it."""
        found = _KINDS[part.kind](self, part, last)
        return replace(found, title=part.title)

    def _tables(self) -> Request:
        return replace(self.request, inputs={**self.request.inputs, **self.known})

    def _named(self, table: exp.Table) -> tuple[str, SourceInput]:
        """Return an input or a part by its name in any case."""
        every = self._tables().inputs
        name = next((n for n in every if n == table.name), None)
        name = name or next(n for n in every if n.lower() == table.name.lower())
        if every[name].role == "table":
            raise SqlError(
                f"{name} is a table, whose rows are only looked up for rows of a stream; begin with a stream, and"
                f" write JOIN or LEFT JOIN {name}",
                *place(self.sql, table),
            )
        return name, every[name]

    # --- maps and unions ---------------------------------------------------------------------

    def _map(self, part: Block, last: bool) -> SourceInput:
        assert isinstance(part.query, exp.Select)
        name, below = self._named(part.query.args["from_"].this)
        table = replace(self._tables().tables[name], schema=below.schema)
        return _mapped(map_of(self.sql, part.query, table), name, below)

    def _union(self, part: Block, last: bool) -> SourceInput:
        sides = [self._map(replace(part, query=side), False) for side in _sides(part.query)]
        names = sides[0].schema.names
        kinds = []
        for at, name in enumerate(names):
            kind = sides[0].schema.field(at).type
            for side in sides[1:]:
                if (both := t.common(kind, side.schema.field(at).type)) is None:
                    raise SqlError(
                        f"column {name} of this UNION is {t.name(kind)} in one part and"
                        f" {t.name(side.schema.field(at).type)} in another; write CAST",
                        *place(self.sql, part.query),
                    )
                kind = both
            kinds.append(kind)
        schema = pa.schema([pa.field(n, kind) for n, kind in zip(names, kinds, strict=True)])
        fitted = [_mapped(_fit(side.schema, schema), "", side) for side in sides]
        times = {side.time for side in fitted}
        united = SourceInput(
            schema,
            time=fitted[0].time if len(times) == 1 else None,
            changes=any(side.changes for side in fitted),
            behind_us=max(side.behind_us for side in fitted),
            rising=rising.of_union(fitted),
            feeds=tuple(feed for side in fitted for feed in side.feeds),
            statistics=known.of_union([side.statistics for side in fitted]),
        )
        return rising.timed(united)

    def _unite(self, given: SourceInput) -> SourceInput:
        """Plan a stage that emits the rows of all feeds."""
        alias = f"${len(self.stages)}"
        columns = tuple(
            StoredColumn(f"{alias}.{f.name}", ref(f"{alias}.{f.name}", f.type)) for f in given.schema
        )
        plans = self._plans(given, alias, columns, None)
        select = tuple(OutputColumn(f.name, ref(f"{alias}.{f.name}", f.type)) for f in given.schema)
        self.stages.append(
            Stage(
                plans,
                Leaf(0),
                Leaf(0),
                select,
                timed=False,
                final_close=False,
                units=self.request.options.units,
                changes=given.changes,
            )
        )
        return self._rows(tuple(given.times.values()), given.time, settled=True, united=True)

    def _plans(
        self,
        given: SourceInput,
        alias: str,
        columns: tuple[StoredColumn, ...],
        filter: Expr | None,
        *,
        keys: tuple[str, ...] = (),
        timed: bool = True,
        null_is_value: bool = False,
    ) -> tuple[InputPlan, ...]:
        """Return the plans of a stage's inputs that read the feeds of one part."""
        values = [c.value for c in columns] + ([filter] if filter else [])
        used = {name.removeprefix(f"{alias}.") for value in values for name in value.columns}
        time = f"{alias}.{given.time}" if given.time and timed else None
        stored = {c.name for c in columns}
        own = InputPlan(
            number=0,
            alias=alias,
            source="",
            read=tuple(n for n in given.schema.names if n in used),
            filter=filter,
            columns=columns,
            keys=keys,
            time=time if time in stored else None,
            delay_us=0,
            idle_us=None,
            keep_null_keys=True,
            changes=given.changes,
            skip_unknown=given.skip_unknown,
            null_is_value=null_is_value,
        )
        return tuple(replace(fed(own, feed, clocked=timed), number=n) for n, feed in enumerate(given.feeds))

    def _rows(
        self,
        times: tuple[Rising, ...] = (),
        time: str | None = None,
        *,
        settled: bool = False,
        united: bool = False,
    ) -> SourceInput:
        """Return the rows of the last stage as a part of the query.

        times: the columns that follow an event time; time: the one that is to be its event time, if that is known.
        settled: the stage drops no late rows; united: it only passes on what sources have.
        """
        last, number = self.stages[-1], len(self.stages) - 1
        feed = Inflow(
            f"$stage{number}", last.schema, number, changes=last.changes, settled=settled, united=united
        )
        own = () if last.changes else tuple(replace(r, family=f"s{number} {r.family}") for r in times)
        told = known.of_stage(self.stages, number, self.request.inputs)
        found = SourceInput(last.schema, changes=last.changes, rising=own, feeds=(feed,), statistics=told)
        return rising.with_time(found, time) if time is not None and own else rising.timed(found)

    # --- joins and groups --------------------------------------------------------------------

    def _select(self, part: Block, last: bool) -> SourceInput:
        assert isinstance(part.query, exp.Select)
        request = self._tables()
        tables = request.tables
        changelog = self.mode != "append"
        asked = JoinAnswers(request.chooser, request.decide, request.inputs)
        stored = request.options.stored
        if not last:  # what conditions leave of its rows is stored
            stored = replace(stored, conditions=None)
        queries = analyse_stages(self.sql, part.query, tables, changelog, self.aliases, asked.anew, stored)
        for group, order in asked.answers:
            self.orders.append(order)
            request.chooser.decided(group, order)
        request.chooser.planned(queries)
        query = queries[-1]
        if isinstance(query.tree, Scan) and not query.lookups:
            return (
                self._map(part, last)
                if query.grouping is None
                else self._alone(part, query, query.tree, last)
            )
        for scan in {
            s.table.name: s for q in queries for s in q.scans if s.table.name in self.known
        }.values():
            if len(self.known[scan.table.name].feeds) > 1:
                self.known[scan.table.name] = self._unite(self.known[scan.table.name])
        found = joins(queries, self._tables(), len(self.stages))
        self.stages += found.stages
        if found.grouping is None:
            return self._rows(found.rising(), settled=_alone(found.stages[-1]))
        rows = self._rows()
        grouping = self._settled(part, found.grouping, last, rows.changes)
        return self._groups(
            grouping, rows, "", None, times=rising.of_groups(grouping, query.select, found.times)
        )

    def _alone(self, part: Block, query: Query, scan: Scan, last: bool) -> SourceInput:
        """Plan what reads one stream: groups, or only a map."""
        given = self._tables().inputs[scan.table.name]
        given = replace(given, feeds=feeds_of(scan.table.name, given))
        filter = all_of([c.value for c in scan.filter])
        found = joins((query,), self._tables(), len(self.stages), alone=True)
        assert found.grouping is not None
        grouping = self._settled(part, found.grouping, last, given.changes)
        columns = tuple(StoredColumn(name, value) for name, value in query.select)
        times = rising.of_groups(grouping, query.select, found.times)
        return self._groups(grouping, given, scan.alias, filter, columns, times)

    def _settled(self, part: Block, grouping: Grouping, last: bool, changes: bool) -> Grouping:
        """Let groups that other parts read come at once and be taken back, unless they are final at some time."""
        grouping = replace(grouping, changes=changes)
        if grouping.changelog and changes:  # what is deleted may come at any time
            grouping = replace(grouping, release=None)
        if last and self.mode == "append":
            assert isinstance(part.query, exp.Select)
            check_append(grouping, self.sql, part.query)
        if last or grouping.release is not None or (grouping.eager and not changes):
            return grouping
        return replace(grouping, changelog=True)

    def _groups(
        self,
        grouping: Grouping,
        given: SourceInput,
        alias: str,
        filter: Expr | None,
        columns: tuple[StoredColumn, ...] = (),
        times: tuple[Rising, ...] = (),
    ) -> SourceInput:
        """Plan a stage of groups. `columns`: what it reads; none: all columns, which are computed already.

        times: the columns of the groups that follow an event time.
        """
        columns = columns or tuple(StoredColumn(f.name, ref(f.name, f.type)) for f in given.schema)
        alias = alias or f"${len(self.stages)}"
        plans = self._plans(given, alias, columns, filter, timed=grouping.release is not None)
        self.stages.append(GroupStage(plans, grouping, self.request.options.units))
        return self._rows(times, settled=grouping.eager)

    # --- window functions --------------------------------------------------------------------

    def _over(self, part: Block, last: bool) -> SourceInput:
        assert isinstance(part.query, exp.Select)
        name, below = self._named(part.query.args["from_"].this)
        given = replace(below, feeds=feeds_of(name, below))
        table = self._tables().tables[name]
        alias = part.query.args["from_"].this.alias_or_name
        asked = over_of(self.sql, part.query, table)
        for column in rising.choices(given):
            choice = rising.with_time(given, column)
            found = over_of(self.sql, part.query, replace(table, time=column, behind_us=choice.behind_us))
            if found.time is not None:
                asked, given = found, choice
                break
        final = self.mode == "append" and asked.time is not None and not given.changes
        over = replace(
            asked,
            changes=given.changes,
            changelog=not final,
            time=asked.time if final else None,
            behind_us=given.behind_us,
        )
        told = all(
            feed.clock if feed.upstream is None else clocked(self.stages, feed.upstream, self.request.inputs)
            for feed in given.feeds
        )
        if over.present is not None and not told:
            raise SqlError(
                "now() is how far the stream has been read in time, and this one has no event time; write eventTime in"
                " its input",
                *place(self.sql, part.query),
            )
        columns = tuple(StoredColumn(n, ref(n, kind)) for n, kind in over.columns)
        timed = over.time is not None or over.present is not None
        plans = self._plans(given, alias, columns, None, keys=over.partition, timed=timed, null_is_value=True)
        self.stages.append(OverStage(plans, over, self.request.options.units))
        return self._rows(rising.of_over(over, alias, given.times))


_KINDS = {"map": _Planner._map, "union": _Planner._union, "select": _Planner._select, "over": _Planner._over}


def _alone(stage: AnyStage) -> bool:
    """Whether a stage has one input, whose rows it drops none of."""
    return isinstance(stage, Stage) and isinstance(stage.root, Leaf)


def _sides(query: exp.Expr) -> list[exp.Select]:
    """Return the SELECTs of a UNION ALL, from left to right."""
    if isinstance(query, exp.Union):
        return [*_sides(query.this), *_sides(query.expression)]
    assert isinstance(query, exp.Select)
    return [query]


def _mapped(step: Map, name: str, below: SourceInput) -> SourceInput:
    """Return a part that computes columns of the one below."""
    time = next(
        (n for n, value in step.columns if value.column is not None and value.column == below.time), None
    )
    feeds = feeds_of(name, below)
    found = SourceInput(
        step.schema,
        time=time,
        delay_us=below.delay_us,
        idle_us=below.idle_us,
        changes=below.changes,
        skip_unknown=below.skip_unknown,
        behind_us=below.behind_us,
        rising=rising.of_map(step, replace(below, feeds=feeds)),
        feeds=tuple(replace(feed, maps=(*feed.maps, step)) for feed in feeds),
        statistics=known.of_map(step, below.statistics),
    )
    return rising.timed(found)


def _fit(have: pa.Schema, want: pa.Schema) -> Map:
    """Return the map that renames columns, and casts them where types differ."""
    pairs = zip(have, want, strict=True)
    columns = tuple((new.name, cast(ref(old.name, old.type), new.type)) for old, new in pairs)
    return Map(None, (), columns)
