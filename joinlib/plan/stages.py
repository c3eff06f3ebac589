"""Plans a query as stages, each with its own key class.

Law: they emit the rows that one join of everything would emit.

Every condition and time bound is decided in the first stage that sees its inputs, and a stage emits just the
columns that later ones read. State of a later stage must also wait for what an earlier stage's rows wait for.
`forward` says how long that is where all joins are inner or semi; otherwise the layout of the operators says
it, since it knows how long an outer join keeps a row back.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from joinlib.errors import SpecError
from joinlib.expr import ref
from joinlib.expr.behind import Rising, risen
from joinlib.model.grouping import Grouping
from joinlib.model.inputs import InputPlan
from joinlib.model.joins import Leaf
from joinlib.model.stage import AnyStage, Stage, selected
from joinlib.plan.build import Request, bounded, bounds, changes, stage, timed
from joinlib.plan.feed import fed
from joinlib.plan.forward import forward
from joinlib.plan.grouping import grouping_of
from joinlib.plan.layout import lateness, layout
from joinlib.plan.paths import path_stages
from joinlib.plan.rising import of_scans
from joinlib.sql import JoinNode, Query, Result, Scan
from joinlib.sql.graph import inputs as inputs_below
from joinlib.sql.graph import scans


@dataclass(frozen=True)
class Joins:
    """The stages that join what one SELECT names, and what is known of their rows."""

    stages: tuple[AnyStage, ...]
    grouping: Grouping | None  # of the rows of the last one
    times: Mapping[str, Rising]  # columns of its rows that follow event times

    def rising(self) -> tuple[Rising, ...]:
        """Return the columns of the result that follow an event time."""
        last = self.stages[-1]
        if last.changes or any(operator.eager for operator in last.operators):  # rows go at any later time
            return ()
        return risen(selected(last), self.times, "j:")


def joins(queries: Sequence[Query], request: Request, first: int, *, alone: bool = False) -> Joins:
    """Plan the stages of one SELECT; `first` is the number of the first one.

    alone: its rows are grouped without a stage before, because they are those of one input.

    Raises:
        SpecError: if an option does not fit the query.
    """
    if len(queries) > 1:
        _check(request)
    trees = [timed(query, request) for query in queries]
    numbered = request.options.window_rows is not None  # the stage's time is then its row numbers
    below = [s for scan in scans(trees[-1]) for s in inputs_below(scan)]
    times = {} if numbered else of_scans(below, _of_result(trees), isinstance(trees[-1], Scan))
    grouping = grouping_of(queries, times)
    if alone:
        return Joins((), grouping, times)
    single = isinstance(trees[-1], Scan) and grouping and grouping.release
    # Rows behind the watermark are then late, although no row is stored.
    more = frozenset([single.column]) if single else frozenset()
    stages = _with_lateness(_stages(queries, trees, request, more), queries, trees, request)
    _check_chain(stages)
    waits = any(q.waits for q in queries)
    times = of_scans(below, _held_back(stages[-1]), alone=False) if waits else times
    return Joins(tuple(_placed(queries, stages, request, first)), grouping, times)


def _placed(
    queries: Sequence[Query], stages: Sequence[Stage], request: Request, first: int
) -> Iterator[AnyStage]:
    """Yield all stages as they are numbered in the whole query; one that joins by paths becomes several."""
    last: list[int] = []  # for each stage, the number of the one that emits its rows
    for query, bare in zip(queries, stages, strict=True):
        at = last[-1] + 1 if last else first
        own = _fed(bare, request, last)
        made = path_stages(own, query, at) if query.paths is not None else (own,)
        last.append(at + len(made) - 1)
        yield from made


def _fed(stage: Stage, request: Request, numbers: Sequence[int]) -> Stage:
    """Number the stages below a stage among all stages of the query, and let it read what feeds its inputs."""

    def moved(plan: InputPlan) -> InputPlan:
        if plan.upstream is not None:
            return plan.of_stage(numbers[plan.upstream])
        given = request.inputs[plan.source]
        return fed(plan, given.feeds[0]) if given.feeds else plan

    return replace(stage, inputs=tuple(map(moved, stage.inputs)))


def _stages(
    queries: Sequence[Query],
    trees: Sequence[JoinNode | Scan],
    request: Request,
    more: frozenset[str],
) -> list[Stage]:
    """Plan the stages from last to first: a stage emits only what later ones read.

    `more`: further event times needed.
    """
    types = {f"{s.alias}.{f.name}": f.type for q in queries for s in q.scans for f in s.table.schema}
    read: dict[int, tuple[str, ...]] = {}
    found: list[Stage] = []
    for number in reversed(range(len(queries))):
        query, tree = queries[number], trees[number]
        own = frozenset().union(*(scan.aliases for scan in query.scans))
        times = frozenset(c for c in bounded(trees[number:]) | more if c.partition(".")[0] in own)
        if number in read:
            query = replace(query, select=tuple((name, ref(name, types[name])) for name in read[number]))
        found.insert(0, stage(query, tree, times, request, types))
        read |= {plan.upstream: plan.read for plan in found[0].inputs if plan.upstream is not None}
    return found


def _with_lateness(
    stages: Sequence[Stage], queries: Sequence[Query], trees: Sequence[JoinNode | Scan], request: Request
) -> list[Stage]:
    """Complete each stage with how far behind the watermark the event times
    that it reads of earlier stages may be.
    """
    late: list[Mapping[str, int]] = []
    done: list[Stage] = []
    for bare, query, tree in zip(stages, queries, trees, strict=True):
        known = tuple(_known(plan, late, done) for plan in bare.inputs)
        stored = request.options.stored.joined
        root = layout(bare.tree, known, bare.above, bare.index, request.eager, stored)
        complete = replace(bare, inputs=known, root=root, changes=changes(root, known))
        late.append(_forwarded(tree, late) if query.waits is None else _held_back(complete))
        done.append(complete)
    return done


def _known(plan: InputPlan, late: Sequence[Mapping[str, int]], done: Sequence[Stage]) -> InputPlan:
    """Complete an input with what the stage that makes its rows has decided."""
    if plan.upstream is None:
        return plan
    known = replace(plan, changes=done[plan.upstream].changes)
    if plan.time is None:  # its rows' times do not decide what is kept
        return known
    return replace(known, behind=_named(late[plan.upstream], {c.name for c in plan.columns}))


def _named(late: Mapping[str, int], columns: Collection[str]) -> tuple[tuple[str, int], ...]:
    return tuple((time, us) for time, us in late.items() if time in columns)


def _forwarded(tree: JoinNode | Scan, late: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """How many µs the event times of a stage's rows may be behind its watermark, for inner and semi joins."""
    return forward([_times([s]) for s in scans(tree)], bounds(tree), _arriving(tree, late))


def _held_back(stage: Stage) -> Mapping[str, int]:
    """How many µs the event times of a stage's rows may be behind its watermark, for joins of any kind."""
    return lateness(stage.tree, stage.inputs, stage.above)


def _of_result(trees: Sequence[JoinNode | Scan]) -> dict[str, int]:
    """How many µs the event times of the result may be behind, for inner
    and semi joins, where all bounds hold.
    """
    late: list[Mapping[str, int]] = []
    for tree in trees[:-1]:
        late.append(_forwarded(tree, late))
    every = [bound for tree in trees for bound in bounds(tree)]
    return forward([_times([s]) for s in scans(trees[-1])], every, _arriving(trees[-1], late))


def _arriving(tree: JoinNode | Scan, found: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """How many µs event times may be behind the watermark as their rows arrive."""
    late: dict[str, int] = {}
    for scan in scans(tree):
        own = dict.fromkeys(_times([scan]), scan.table.behind_us)
        late |= found[scan.stage] if isinstance(scan, Result) else own
    return late


def _times(leaves: Sequence[Scan]) -> frozenset[str]:
    """The event-time columns of the rows of these leaves."""
    return frozenset(
        f"{s.alias}.{s.table.time}" for leaf in leaves for s in inputs_below(leaf) if s.table.time
    )


def _check(request: Request) -> None:
    """Raise SpecError for options that several stages do not support."""
    if request.options.strategy in ("biclique", "inequality") or request.options.subgroups is not None:
        raise SpecError(
            "join.strategy biclique and inequality, and join.subgroups, are for the INNER join of two"
            " inputs, and this query joins by several keys in turn; write auto, and leave subgroups out"
        )
    if request.options.window_rows is not None:
        raise SpecError(
            "join.window.rows is for joins by one key: rows of a stage have no numbers; bound the time"
            " instead"
        )


def _check_chain(stages: Sequence[Stage]) -> None:
    """Refuse what several stages cannot do: a join without an equality, or a window of rows."""
    for each in stages if len(stages) > 1 else ():
        if each.route is not None or (isinstance(each.tree, Leaf) and each is not stages[-1]):
            raise SpecError(
                "this query needs several stages, each of which joins by equality; one of its joins has none"
                " (or join.strategy asks for another way)"
            )
        assert not any(plan.numbered for plan in each.inputs), "windows of rows are for one stage"
        assert all(plan.time or not plan.behind for plan in each.inputs), (
            "an input that lags behind has an event time"
        )
