"""Plans a join by paths: what its stages store, and the probes of every route.

    one stage, as if one operator joined all inputs   +   PathPlan   ─►   PathStage, HopStage, …

How long rows are kept, which columns they have, and what is decided comes from the one operator; where that
happens, from the paths. Rows with NULL in a class or in a bounded time match nothing: they are filtered out.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import pyarrow as pa

from joinlib.expr import Expr, ref
from joinlib.expr.bound import Bound
from joinlib.expr.logic import Junction, all_of, is_null, negate
from joinlib.expr.total import total
from joinlib.model.inputs import HASH, WEIGHT, InputPlan, StoredColumn
from joinlib.model.joins import Join, Leaf
from joinlib.model.keys import hash_is_key
from joinlib.model.operator import Operator
from joinlib.model.paths import Hop, Leg
from joinlib.model.side import SideConfig
from joinlib.model.stage import AnyStage, HopStage, PathStage, Stage
from joinlib.path.choice import PathPlan
from joinlib.path.graph import Arrangement, JoinGraph, Key, Path
from joinlib.path.route import JoinColumns, JoinCondition, Route, RouteHop, member_of, route
from joinlib.path.search import cheapest_few
from joinlib.plan.columns import key_column
from joinlib.sql import JoinNode, Query

CANDIDATES = 8  # paths of an input that units choose from


def path_stages(stage: Stage, query: Query, number: int) -> tuple[AnyStage, ...]:
    """Return the stages of a join by paths. `stage`: as one operator; `number`: of the first of them."""
    assert isinstance(query.tree, JoinNode)
    assert query.paths is not None
    assert isinstance(stage.root, Operator)
    assert isinstance(stage.tree, Join)
    clauses = (*query.tree.predicate, *query.tree.where)
    conditions: tuple[Bound | Expr, ...] = (*stage.tree.bounds, *(clause.value for clause in clauses))
    made = _Made(stage, query.paths, _members(query), conditions)
    hops = (made.hops(level, number) for level in range(1, made.levels))
    return (made.stored(), *hops)


def _members(query: Query) -> tuple[tuple[str | None, ...], ...]:
    """Return by input and class the column that is its member."""
    classes = list(enumerate(query.classes))
    return tuple(
        tuple(key_column(s.alias, n, c).name if s.alias in c.members else None for n, c in classes)
        for s in query.scans
    )


def _null_tests(plan: InputPlan, never: Collection[str | None]) -> list[Expr]:
    """Return tests that some columns of an input are not NULL."""
    return [negate(is_null(c.value)) for c in plan.columns if c.name in never]


def as_asked(stage: PathStage) -> PathStage:
    """Return the stage with the filters of the query alone, for people: without the tests for NULL behind them."""
    never = {column for keys in stage.tree.keys for column in keys}
    never |= {column for bound in stage.tree.bounds for column in (bound.left, bound.right)}

    def asked(plan: InputPlan) -> InputPlan:
        tests = _null_tests(plan, never)
        if plan.filter is None or not tests:
            return plan
        parts = plan.filter.node.parts if isinstance(plan.filter.node, Junction) else (plan.filter,)
        own = parts[: -len(tests)]
        return replace(plan, filter=all_of(own))

    return replace(stage, inputs=tuple(map(asked, stage.inputs)))


@dataclass(frozen=True)
class _Made:
    """The stages as they are made."""

    whole: Stage  # as one operator
    plan: PathPlan
    members: tuple[tuple[str | None, ...], ...]
    conditions: tuple[Bound | Expr, ...]

    # --- what is stored ----------------------------------------------------------------------

    @cached_property
    def graph(self) -> JoinGraph:
        classes = zip(*self.members, strict=True)
        return JoinGraph(
            len(self.members), tuple(frozenset(i for i, m in enumerate(c) if m is not None) for c in classes)
        )

    @cached_property
    def _begins(self) -> tuple[Arrangement, ...]:
        """How the rows of each input come in: by the key of their path's first probe."""
        keys = (self.plan.arrangements[path.probes[0].arrangement].key for path in self.plan.paths)
        return tuple(Arrangement(one, key) for one, key in enumerate(keys))

    @cached_property
    def arrangements(self) -> tuple[Arrangement, ...]:
        """What is stored: also where rows come in that may be deleted, since only there it is known which are new."""
        stored = self.plan.arrangements
        more = [a for a in self._begins if a not in stored and self.whole.inputs[a.input].changes]
        return (*stored, *more)

    @cached_property
    def _come(self) -> tuple[Arrangement, ...]:
        """How rows come: as they are stored, and otherwise."""
        return (*self.arrangements, *(a for a in self._begins if a not in self.arrangements))

    @cached_property
    def inputs(self) -> tuple[InputPlan, ...]:
        first = {a.input: number for number, a in reversed([*enumerate(self._come)])}
        return tuple(
            replace(
                self.whole.inputs[a.input],
                number=number,
                keys=self._columns(a.input, a.key),
                filter=self._filter(self.whole.inputs[a.input]),
                again=None if first[a.input] == number else first[a.input],
                stored=number < len(self.arrangements),
            )
            for number, a in enumerate(self._come)
        )

    def _filter(self, plan: InputPlan) -> Expr | None:
        """Return the filter of an input, with tests for NULL."""
        never = {m for own in self.members for m in own}
        never |= {c for b in self.conditions if isinstance(b, Bound) for c in (b.left, b.right)}
        return all_of([*([plan.filter] if plan.filter is not None else []), *_null_tests(plan, never)])

    def _columns(self, one: int, key: Key) -> tuple[str, ...]:
        found = (self.members[one][number] for number in key)
        return tuple(name for name in found if name is not None)

    @cached_property
    def sides(self) -> tuple[SideConfig, ...]:
        assert isinstance(self.whole.root, Operator)
        own = self.whole.root.sides
        return tuple(
            replace(own[a.input], number=number, keys=self._columns(a.input, a.key), versioned=True)
            for number, a in enumerate(self.arrangements)
        )

    def stored(self) -> PathStage:
        """Return the stage that stores the rows, and makes the first probes."""
        assert isinstance(self.whole.tree, Join)
        return PathStage(
            inputs=self.inputs,
            tree=self.whole.tree,
            graph=self.graph,
            arrangements=self.arrangements,
            homes=tuple(map(self._come.index, self._begins)),
            sides=self.sides,
            paths=self.paths,
            legs=tuple(next(self._legs(number)) for number in range(len(self.paths))),
            orders=tuple(range(len(self.plan.paths))),
            timed=self.whole.timed,
            units=self.whole.units,
            changes=self.whole.changes,
        )

    # --- routes ------------------------------------------------------------------------------

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The paths of all routes: the one of each input that the planner takes, then those that units may take later.

        These begin at the same home, and have no more legs than there are levels.
        """
        plan, homes = self.plan, [a.key for a in self._begins]
        few = (
            cheapest_few(self.graph, plan.arrangements, plan.costs, one, CANDIDATES, self.levels, homes)
            for one in range(self.graph.inputs)
        )
        return tuple(dict.fromkeys([*plan.paths, *chain.from_iterable(few)]))

    @cached_property
    def levels(self) -> int:
        """The most legs of a path."""
        return max(len(path.legs(self.arrangements)) for path in self.plan.paths)

    @cached_property
    def _read(self) -> JoinColumns:
        whole = self.whole
        owner = {c.name: plan.number for plan in whole.inputs for c in plan.columns}

        def condition(value: Bound | Expr) -> JoinCondition:
            columns = (value.left, value.right) if isinstance(value, Bound) else value.columns
            fails = isinstance(value, Expr) and not total(value.node)
            return JoinCondition(frozenset(owner[c] for c in columns), frozenset(columns), fails)

        return JoinColumns(
            inputs=tuple(frozenset(c.name for c in plan.columns) for plan in whole.inputs),
            members=self.members,
            selected=whole.reads,
            conditions=tuple(map(condition, self.conditions)),
        )

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        return tuple(
            route(self.graph, self.arrangements, path, self._begins[path.start].key, self._read, self.levels)
            for path in self.paths
        )

    def _legs(self, number: int) -> Iterator[Leg]:
        """Yield the legs of a route."""
        path, found = self.paths[number], self.routes[number]
        known, bound = [c.name for c in self.whole.inputs[path.start].columns], [path.start]
        for leg in found.legs:
            hops = []
            for hop in leg.hops:
                hops.append(self._hop(hop, known, bound))
                aim = self.arrangements[hop.probe.arrangement].input
                known, bound = [*known, *(c.name for c in self.whole.inputs[aim].columns)], [*bound, aim]
            yield Leg(number, tuple(hops), self._schema(leg.carried, WEIGHT))
            known = list(leg.carried)

    def _hop(self, hop: RouteHop, known: Sequence[str], bound: Sequence[int]) -> Hop:
        at = hop.probe.arrangement
        aim = self.arrangements[at]
        compared = (*aim.key, *hop.equal)
        mine = tuple(member_of(self.graph, number, bound, self._read) for number in compared)
        side = replace(self.sides[at], keys=self._columns(aim.input, compared))
        decided = [self.conditions[number] for number in hop.decided]
        predicate = all_of([c for c in decided if isinstance(c, Expr)])
        unique = not hop.equal and hash_is_key([side.schema.field(name).type for name in side.keys])
        tuples = self._schema(known, HASH)
        operator = Operator(
            kind="inner",
            children=(Leaf(0), Leaf(1)),
            sides=(SideConfig(0, tuples, mine, None, None, marked=False), side),
            hash_is_key=unique,
            bounds=tuple(c for c in decided if isinstance(c, Bound)),
            predicate=predicate,
            where=None,
            schema=pa.schema([*tuples, *(f for f in side.schema if f.name != HASH)]),
            residual=predicate,
            changes=self.whole.changes,
        )
        return Hop(operator, at, hop.after, hop.probe.asker)

    def _schema(self, names: Sequence[str], more: str) -> pa.Schema:
        """Return the schema of tuples with these columns, behind their hash, or before their weight."""
        fields = [pa.field(name, self._types[name]) for name in names]
        if more == HASH:
            return pa.schema([pa.field(HASH, pa.uint64()), *fields])
        return pa.schema([*fields, *([pa.field(WEIGHT, pa.int64())] if self.whole.changes else [])])

    @cached_property
    def _types(self) -> dict[str, pa.DataType]:
        return {c.name: c.value.type for plan in self.whole.inputs for c in plan.columns}

    # --- later legs --------------------------------------------------------------------------

    def hops(self, level: int, number: int) -> HopStage:
        """Return the stage of the legs at a level. `number`: of the stage that stores the rows."""
        inputs, legs = list[InputPlan](), list[Leg]()
        for way, found in enumerate(self.routes):
            at = level - self.levels + len(found.legs)  # all routes end at the last level
            if at < 1:
                continue
            below = number if at == 1 else number + level - 1
            inputs.append(self._tuples(len(inputs), way, at).of_stage(below))
            legs.append(list(self._legs(way))[at])
        last = level == self.levels - 1
        return HopStage(
            inputs=tuple(inputs),
            legs=tuple(legs),
            units=self.whole.units,
            changes=self.whole.changes,
            last=last,
            select=self.whole.select if last else (),
            lookups=self.whole.lookups if last else (),
        )

    def _tuples(self, number: int, way: int, at: int) -> InputPlan:
        """Return the plan of the tuples that a leg of a route takes."""
        found = self.routes[way]
        carried, before = found.legs[at - 1].carried, sum(len(leg.hops) for leg in found.legs[:at])
        bound = self.paths[way].visits(self.arrangements)[: before + 1]
        key = tuple(member_of(self.graph, c, bound, self._read) for c in found.legs[at].key)
        return InputPlan(
            number=number,
            alias=f"${way}",
            source="",
            read=carried,
            filter=None,
            columns=tuple(StoredColumn(name, ref(name, self._types[name])) for name in carried),
            keys=key,
            time=None,
            delay_us=0,
            idle_us=None,
            keep_null_keys=False,
            changes=self.whole.changes,
        )
