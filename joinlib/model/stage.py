"""The stages of a query, a graph: each reads sources and earlier stages; frozen and picklable.

    Stage        joins, and lookups of tables, with a select list
    GroupStage   groups and their aggregates
    OverStage    window functions over partitions
    PathStage    the inputs of a path join (`model.paths`), each stored by every key that a path asks for
    HopStage     further probes of the PathStage below it; the last one has the select list

The rows of a stage may be read by several later ones; those of the last are the result, or those of several
stages that nobody reads, one for each output.
"""

import pickle
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from typing import ClassVar

import pyarrow as pa

from joinlib.expr import Expr
from joinlib.model.called import Called
from joinlib.model.decided import Conversion
from joinlib.model.grouping import Grouping
from joinlib.model.inputs import WEIGHT, Biclique, InputPlan
from joinlib.model.joins import Index, Join, Leaf, Lookup
from joinlib.model.operator import Operator
from joinlib.model.order import StageOrder
from joinlib.model.over import Over
from joinlib.model.paths import Leg
from joinlib.model.side import SideConfig
from joinlib.path.graph import Arrangement, JoinGraph, Path


@dataclass(frozen=True)
class OutputColumn:
    """One column of the result: its name in the select list and its value over the stored columns."""

    name: str
    value: Expr


def above(select: tuple[OutputColumn, ...], lookups: tuple[Lookup, ...]) -> tuple[Expr, ...]:
    """Return all expressions evaluated on the rows emitted by a tree of joins."""
    return (*(c.value for c in select), *(e for lookup in lookups for e in lookup.reads))


class _Selecting:
    """What stages have that make rows of a select list, behind lookups of tables."""

    select: tuple[OutputColumn, ...]
    lookups: tuple[Lookup, ...]
    changes: bool

    @property
    def above(self) -> tuple[Expr, ...]:
        """All expressions evaluated on joined rows."""
        return above(self.select, self.lookups)

    @cached_property
    def reads(self) -> frozenset[str]:
        """All columns read by lookups and the select list; computed once per process."""
        return frozenset(c for e in self.above for c in e.columns)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the result, without weights."""
        return pa.schema([pa.field(c.name, c.value.type) for c in self.select])

    @property
    def emitted(self) -> pa.Schema:
        """The schema of the rows that units emit: changes end with their weights."""
        return weighted(self.schema) if self.changes else self.schema


@dataclass(frozen=True)
class Stage(_Selecting):
    """Joins by one key, and lookups of tables for their rows."""

    inputs: tuple[InputPlan, ...]
    tree: Join | Leaf  # as in the query; a leaf is one stream, for which tables are looked up
    root: Operator | Leaf  # as it is executed (`plan.layout`)
    select: tuple[OutputColumn, ...]
    timed: bool  # state or outer rows depend on the watermark: rows behind it are late
    final_close: bool  # an outer or anti join is in the tree: closing the inputs is final
    units: int  # power of two
    lookups: tuple[Lookup, ...] = ()  # run after the tree, in this order
    route: Biclique | None = None  # None: by the top bits of the key's hash, stored and probed in one unit
    index: Index = "hash"  # how stored rows are found
    changes: bool = False  # the rows that it emits end with their weights
    asks: bool = False  # it has no state, and only looks up tables (`plan.asking`)

    @property
    def skip_bits(self) -> int:
        """Top bits of a key's hash that are equal in all rows of a unit."""
        return self.units.bit_length() - 1 if self.route is None else self.route.skip_bits

    @property
    def operators(self) -> tuple[Operator, ...]:
        """All joins, children first."""
        return () if isinstance(self.root, Leaf) else tuple(self.root.operators())

    @property
    def sides(self) -> tuple[SideConfig, ...]:
        """The sides of all joins, by their numbers."""
        return tuple(side for operator in self.operators for side in operator.sides)


class _Routed:
    """What stages have that are no tree of joins: their rows are routed by hash."""

    operators: ClassVar[tuple[Operator, ...]] = ()
    route: ClassVar[Biclique | None] = None
    index: ClassVar[Index] = "hash"


class _Stateful(_Routed):
    """What stages have that join nothing: they have no tables."""

    sides: ClassVar[tuple[SideConfig, ...]] = ()
    lookups: ClassVar[tuple[Lookup, ...]] = ()


@dataclass(frozen=True)
class GroupStage(_Stateful):
    """Groups of the rows of its inputs, all of which have the columns $g (keys) and $x (arguments of aggregates).

    Whoever makes the rows sends partials: one row for each group of a task and batch.
    """

    inputs: tuple[InputPlan, ...]
    grouping: Grouping
    units: int

    @property
    def timed(self) -> bool:
        """Whether groups that the watermark has passed take no more rows."""
        return self.grouping.release is not None

    @property
    def final_close(self) -> bool:
        return self.grouping.final_close

    @property
    def changes(self) -> bool:
        """Whether the rows that it emits end with their weights."""
        return self.grouping.changelog

    @property
    def schema(self) -> pa.Schema:
        """The schema of its rows, without weights."""
        return self.grouping.schema

    @property
    def emitted(self) -> pa.Schema:
        """The schema of the rows that units emit: changes end with their weights."""
        return weighted(self.schema) if self.changes else self.schema


@dataclass(frozen=True)
class OverStage(_Stateful):
    """Window functions over partitions of the rows of its inputs, which all have the same columns."""

    inputs: tuple[InputPlan, ...]
    over: Over
    units: int

    @property
    def changes(self) -> bool:
        """Whether the rows that it emits end with their weights; otherwise they are final."""
        return self.over.changelog

    @property
    def timed(self) -> bool:
        """Whether rows behind the watermark are late, because those before it are final."""
        return self.over.time is not None

    @property
    def final_close(self) -> bool:
        return self.over.final_close

    @property
    def schema(self) -> pa.Schema:
        """The schema of its rows, without weights."""
        return self.over.schema

    @property
    def emitted(self) -> pa.Schema:
        """The schema of the rows that units emit: changes end with their weights."""
        return weighted(self.schema) if self.changes else self.schema


@dataclass(frozen=True)
class PathStage(_Routed):
    """The state of a path join, and what is done where its rows come in: late ones out, the rest stored and probed.

    Input and side n are arrangement n; inputs behind the arrangements are not stored. Rows of one input of the
    graph come as several inputs of the stage, one for each key. A unit has its slice of every key.

    Routes are numbered through all inputs of the graph: `paths` and `legs` are by route. Each ends in the last
    HopStage. A route with fewer legs than others waits: its leg here has no hop.
    """

    inputs: tuple[InputPlan, ...]
    tree: Join  # as if one operator joined the graph's inputs: all their keys, bounds and conditions
    graph: JoinGraph
    arrangements: tuple[Arrangement, ...]
    homes: tuple[int, ...]  # for each input of the graph, that of the stage with which its routes begin
    sides: tuple[SideConfig, ...]
    paths: tuple[Path, ...]
    legs: tuple[Leg, ...]
    orders: tuple[int, ...]  # for each input of the graph, the route that it takes at first
    timed: bool  # rows behind the watermark are late
    units: int
    changes: bool = False  # some rows may be deleted: tuples end with their weights

    lookups: ClassVar[tuple[Lookup, ...]] = ()
    final_close: ClassVar[bool] = False

    @property
    def skip_bits(self) -> int:
        """Top bits of a key's hash that are equal in all rows of a unit."""
        return self.units.bit_length() - 1

    def routes(self, one: int) -> tuple[int, ...]:
        """Return the routes that the new rows of an input of the graph can take."""
        return tuple(number for number, path in enumerate(self.paths) if path.start == one)

    @property
    def schema(self) -> pa.Schema:
        """Of nothing: tuples leave by routes, each with its own columns (`Leg.schema`)."""
        return pa.schema([])

    @property
    def emitted(self) -> pa.Schema:
        """Return the same: of nothing."""
        return self.schema


@dataclass(frozen=True)
class HopStage(_Selecting, _Routed):
    """Probes of tuples that have come through one more exchange: one input for each route that has a leg here.

    It stores nothing. It asks the state of the PathStage below (`Pipeline.store_of`) in the unit of the same
    number, as it is after the batch. Its watermark is that of the state.
    """

    inputs: tuple[InputPlan, ...]
    legs: tuple[Leg, ...]  # of each input
    units: int
    changes: bool = False  # the rows that it emits end with their weights
    last: bool = False  # tuples are whole and become rows of the result; False: they go on to the next stage
    select: tuple[OutputColumn, ...] = ()  # of the last one
    lookups: tuple[Lookup, ...] = ()  # of the last one

    sides: ClassVar[tuple[SideConfig, ...]] = ()
    timed: ClassVar[bool] = False
    final_close: ClassVar[bool] = False


AnyStage = Stage | GroupStage | OverStage | PathStage | HopStage


def selected(stage: AnyStage) -> tuple[tuple[str, Expr], ...]:
    """Return names and values of the columns of a stage's rows."""
    if isinstance(stage, PathStage):
        return ()
    if isinstance(stage, Stage | HopStage):
        return tuple((c.name, c.value) for c in stage.select)
    return stage.grouping.select if isinstance(stage, GroupStage) else stage.over.select


def read_once(stage: AnyStage) -> tuple[InputPlan, ...]:
    """Return the inputs of a stage, one for each source or stage that it reads.

    A HopStage reads the one below by every route: who went down a plan by all inputs would go all ways through it.
    """
    return tuple({(plan.source, plan.upstream): plan for plan in stage.inputs}.values())


def weighted(schema: pa.Schema) -> pa.Schema:
    """Return the schema of rows that end with their weight."""
    return schema.append(pa.field(WEIGHT, pa.int64()))


@dataclass(frozen=True)
class Budget:
    """The memory that state may take on each executor, in bytes."""

    bytes: int
    head: int  # for each unit and input: the newest rows and their index
    executors: int = 1  # the least number known to the plan; units are spread over them


@dataclass(frozen=True)
class NamedResult:
    """The rows that an output takes."""

    name: str  # of the output; empty where there is one without a name
    stage: int  # whose rows they are


@dataclass(frozen=True)
class Pipeline:
    """The stages of a query: each reads only sources and earlier stages, and all but those of results are read by
    others.

    Each stage has its own distribution, so rows are exchanged between two stages. A stage's watermark is the
    least of its inputs'; that of an upstream input is its stage's.
    """

    stages: tuple[AnyStage, ...]
    budget: Budget | None = None  # None: no limit
    notes: tuple[str, ...] = ()  # what is to be said of the text
    called: tuple[Called, ...] = field(default=(), compare=False)  # for people: nothing is decided by it
    joined: Conversion = field(default=Conversion(), compare=False)  # for people
    named: tuple[
        NamedResult, ...
    ] = ()  # the results of several outputs; none: the last stage makes the only one
    orders: tuple[StageOrder, ...] = ()  # of inner joins by several keys, as it was decided
    by_key: bool = False  # all changes of one value of the result's key come out of one unit

    def __reduce__(self) -> tuple[Callable[[bytes], "Pipeline"], tuple[bytes]]:
        """Pickle as few bytes, which a process opens once: every task of every batch brings the same plan."""
        packed = self.__dict__.get("_packed")
        if packed is None:
            values = [getattr(self, f.name) for f in fields(self)]
            packed = self.__dict__["_packed"] = zlib.compress(pickle.dumps(values), 1)
        return _opened, (packed,)

    @property
    def results(self) -> tuple[NamedResult, ...]:
        """What outputs take: each is made by a stage that nobody reads."""
        return self.named or (NamedResult("", len(self.stages) - 1),)

    def only(self, result: NamedResult) -> "Pipeline":
        """Return the same stages with one of the results as the only one."""
        return replace(self, named=(result,))

    def looking_up(self, tables: Iterable[Lookup]) -> "Pipeline":
        """Return the same stages with other lookups of the same tables."""
        known = {lookup.table.alias: lookup for lookup in tables}

        def moved(stage: AnyStage) -> AnyStage:
            if not isinstance(stage, Stage | HopStage):
                return stage
            return replace(stage, lookups=tuple(known[lookup.table.alias] for lookup in stage.lookups))

        return replace(self, stages=tuple(map(moved, self.stages)))

    def below(self, result: NamedResult) -> "Pipeline":
        """Return the stages that one result needs, and no others."""
        needed = {result.stage}
        for number in reversed(range(result.stage + 1)):
            if number in needed:
                needed |= {i.upstream for i in self.stages[number].inputs if i.upstream is not None}
        places = {number: place for place, number in enumerate(sorted(needed))}

        def moved(plan: InputPlan) -> InputPlan:
            return plan if plan.upstream is None else plan.of_stage(places[plan.upstream])

        stages = (self.stages[number] for number in places)
        kept = tuple(replace(stage, inputs=tuple(map(moved, stage.inputs))) for stage in stages)
        return replace(self, stages=kept, named=(NamedResult(result.name, len(kept) - 1),))

    @property
    def last(self) -> AnyStage:
        """The stage that makes the only result."""
        return self.stages[self.results[0].stage]

    @property
    def grouping(self) -> Grouping | None:
        """The groups that are the result; None if it is something else."""
        return self.last.grouping if isinstance(self.last, GroupStage) else None

    @property
    def final_close(self) -> bool:
        """Whether closing the inputs is final in some stage."""
        return any(stage.final_close for stage in self.stages)

    @property
    def changes(self) -> bool:
        """Whether the result is changes, so that rows end with their weights; otherwise rows are final."""
        return self.last.changes

    @property
    def emitted(self) -> pa.Schema:
        """The schema of the rows that a sink takes: changes end with their weights."""
        return self.last.emitted

    @property
    def schema(self) -> pa.Schema:
        """The schema of the result, without weights."""
        return self.last.schema

    @property
    def stateful(self) -> tuple[AnyStage, ...]:
        """The stages that have state: all but the last ones, where these only ask tables."""
        return tuple(stage for stage in self.stages if not (isinstance(stage, Stage) and stage.asks))

    @cached_property
    def ruled(self) -> frozenset[int]:
        """The stages whose rows may go to any unit, and hot keys to several, because none of them is stored.

        A task that runs again must send the same rows: those that a database was asked for may be others.
        """
        asking = {n for n, lookup in self.lookups if lookup.caching.mode != "full"}
        return frozenset(
            n
            for n, stage in enumerate(self.stages)
            if isinstance(stage, Stage)
            and isinstance(stage.tree, Leaf)
            and stage.inputs[0].keys
            and stage.lookups
            and stage.units > 1
            and (n == 0 or (len(stage.inputs) == 1 and not stage.changes))
            and stage.inputs[0].upstream not in asking
        )

    @property
    def inputs(self) -> tuple[InputPlan, ...]:
        """The inputs that the spec describes, over all stages; each once, by however many keys it comes."""
        return tuple(plan for _, plan in self.counted_inputs)

    @property
    def lookups(self) -> tuple[tuple[int, Lookup], ...]:
        """All tables that are looked up, each with the number of its stage."""
        return tuple((n, lookup) for n, stage in enumerate(self.stages) for lookup in stage.lookups)

    @property
    def units(self) -> int:
        """The number of units of each stage."""
        return self.last.units

    @cached_property
    def numbered_inputs(self) -> tuple[tuple[int, InputPlan], ...]:
        """Everything that stages read of sources, each with the number of its stage."""
        return tuple((n, i) for n, s in enumerate(self.stages) for i in s.inputs if i.upstream is None)

    @property
    def counted_inputs(self) -> tuple[tuple[int, InputPlan], ...]:
        """Those of `numbered_inputs` that figures count: of inputs that have the same rows, one."""
        return tuple((n, plan) for n, plan in self.numbered_inputs if plan.again is None)

    def late_of(self, plan: InputPlan) -> tuple[str, ...]:
        """Return the sources of which rows can be late at an input of a stage.

        They are several if the rows were united before, where nobody can tell one's rows from another's.
        """
        if plan.upstream is None:
            return (plan.source,)
        below = self.stages[plan.upstream].inputs if plan.settled else ()
        return tuple(dict.fromkeys(source for one in below for source in self.late_of(one)))

    def store_of(self, number: int) -> int:
        """Return the stage whose state stage `number` asks: for a HopStage the PathStage below, else itself."""
        while isinstance(stage := self.stages[number], HopStage):
            assert stage.inputs[0].upstream is not None
            number = stage.inputs[0].upstream
        return number

    def next_leg(self, number: int, route: int) -> tuple[int, InputPlan] | None:
        """Return the stage and the input to which the tuples of a route go from stage `number`; None: they are whole."""
        for reader, plan in self.readers(number):
            stage = self.stages[reader]
            if isinstance(stage, HopStage) and stage.legs[plan.number].route == route:
                return reader, plan
        return None

    @property
    def hashed(self) -> frozenset[str]:
        """The sources whose rows are routed by the hashes of their keys.

        Each key goes to one unit, unless a rule spreads it.
        """
        return frozenset(p.source for n, p in self.numbered_inputs if p.keys and self.stages[n].route is None)

    def readers(self, number: int) -> tuple[tuple[int, InputPlan], ...]:
        """Return the stages that read the rows of stage `number`, and the inputs as which they read them."""
        return tuple((n, i) for n, s in enumerate(self.stages) for i in s.inputs if i.upstream == number)

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """The stages that run at the same time: one exchange brings rows to all stages of a level.

        Those that make results are the last level: it alone has sinks.
        """
        level: list[int] = []
        for stage in self.stages:
            below = [level[i.upstream] for i in stage.inputs if i.upstream is not None]
            level.append(max(below, default=-1) + 1)
        for result in self.results:
            level[result.stage] = max(level)
        return tuple(tuple(n for n, own in enumerate(level) if own == at) for at in range(max(level) + 1))


@lru_cache(4)
def _opened(packed: bytes) -> Pipeline:
    return Pipeline(*pickle.loads(zlib.decompress(packed)))
