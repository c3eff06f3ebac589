"""The stages of a query, each with inputs, a tree of joins and a select list; frozen and picklable."""

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from joinlib.expr import Expr
from joinlib.model.grouping import Grouping
from joinlib.model.inputs import WEIGHT, Biclique, InputPlan
from joinlib.model.joins import Index, Join, Leaf, Lookup
from joinlib.model.operator import Operator
from joinlib.model.side import SideConfig


@dataclass(frozen=True)
class OutputColumn:
    """One column of the result: its name in the select list and its value over the stored columns."""

    name: str
    value: Expr


def above(select: tuple[OutputColumn, ...], lookups: tuple[Lookup, ...]) -> tuple[Expr, ...]:
    """Return all expressions evaluated on the rows emitted by a tree of joins."""
    return (*(c.value for c in select), *(e for lookup in lookups for e in lookup.reads))


@dataclass(frozen=True)
class Stage:
    """One stateful operator."""

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

    @property
    def above(self) -> tuple[Expr, ...]:
        """All expressions evaluated on the rows emitted by the tree."""
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
        return self.schema.append(pa.field(WEIGHT, pa.int64())) if self.changes else self.schema


@dataclass(frozen=True)
class Budget:
    """The memory that state may take on each executor, in bytes."""

    bytes: int
    head: int  # for each unit and input: the newest rows and their index
    executors: int = 1  # the least number known to the plan; units are spread over them


@dataclass(frozen=True)
class Pipeline:
    """The stages of a query, in order: the rows of each but the last are an input of one later stage.

    Each stage has its own key classes, so rows are exchanged between two stages. The last stage's select
    list is the query's, and only this stage has lookups. A stage's watermark is the least of its inputs';
    that of an upstream input is its stage's. With groups, the last stage's rows become partials, which go
    to units of groups.
    """

    stages: tuple[Stage, ...]
    grouping: Grouping | None = None  # groups of the last stage's rows
    budget: Budget | None = None  # None: no limit

    @property
    def last(self) -> Stage:
        """The stage that makes the result."""
        return self.stages[-1]

    @property
    def final_close(self) -> bool:
        """Whether closing the inputs is final in some stage."""
        grouped = self.grouping is not None and self.grouping.final_close
        return grouped or any(stage.final_close for stage in self.stages)

    @property
    def changes(self) -> bool:
        """Whether the result is changes, so that rows end with their weights; otherwise rows are final."""
        return self.last.changes if self.grouping is None else self.grouping.changelog

    @property
    def emitted(self) -> pa.Schema:
        """The schema of the rows that a sink takes: changes end with their weights."""
        return self.schema.append(pa.field(WEIGHT, pa.int64())) if self.changes else self.schema

    @property
    def schema(self) -> pa.Schema:
        """The schema of the result, without weights."""
        return self.last.schema if self.grouping is None else self.grouping.schema

    @property
    def operators(self) -> int:
        """The number of consecutive stateful operators: the stages, and the units of groups."""
        return len(self.stages) + (self.grouping is not None)

    @property
    def inputs(self) -> tuple[InputPlan, ...]:
        """The inputs that the spec describes, over all stages."""
        return tuple(plan for stage in self.stages for plan in stage.inputs if plan.upstream is None)

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """The tables that are looked up: in one stage, which is the last or routes to it by the result's key."""
        return next((stage.lookups for stage in self.stages if stage.lookups), ())

    @property
    def units(self) -> int:
        """The number of units of each stage."""
        return self.last.units

    @cached_property
    def numbered_inputs(self) -> tuple[tuple[int, InputPlan], ...]:
        """All `inputs`, each with the number of its stage."""
        return tuple((n, i) for n, s in enumerate(self.stages) for i in s.inputs if i.upstream is None)

    @property
    def hashed(self) -> frozenset[str]:
        """The sources whose rows are routed by the hashes of their keys.

        Each key goes to one unit, unless a rule spreads it.
        """
        return frozenset(p.source for n, p in self.numbered_inputs if p.keys and self.stages[n].route is None)

    def route(self, number: int) -> Biclique | None:
        """Return how rows reach the units of an operator; None is by hash, as for units of groups."""
        return self.stages[number].route if number < len(self.stages) else None

    def reader(self, number: int) -> tuple[int, InputPlan]:
        """Return the stage that reads the rows of stage `number`, and the input as which it reads them."""
        found = [(n, i) for n, s in enumerate(self.stages) for i in s.inputs if i.upstream == number]
        assert len(found) == 1, "each stage but the last has one reader"
        return found[0]
