"""What a stage does (inputs, a tree of joins, a select list), and what stages make a query. Frozen and picklable."""

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from joinlib.aggregate.config import Grouping
from joinlib.expr import Expr
from joinlib.join.config import Index, Join, Leaf, Lookup
from joinlib.route.config import Biclique, InputPlan


@dataclass(frozen=True)
class OutputColumn:
    """One column of the result: its name in the select list and its value over the stored columns."""

    name: str
    value: Expr


@dataclass(frozen=True)
class Stage:
    """What one stateful operator does."""

    inputs: tuple[InputPlan, ...]
    tree: Join | Leaf  # a leaf: one stream, for which tables are looked up
    select: tuple[OutputColumn, ...]
    timed: bool  # state or outer rows depend on the watermark: rows behind it are late
    final_close: bool  # an outer or anti join is in the tree: closing the inputs is final
    units: int  # power of two
    lookups: tuple[Lookup, ...] = ()  # after the tree, one after the other
    route: Biclique | None = None  # None: by the top bits of the key's hash, stored and probed in one unit
    index: Index = "hash"  # how stored rows are found

    @property
    def skip_bits(self) -> int:
        """Top bits of a key's hash that are equal in all rows of a unit."""
        return self.units.bit_length() - 1 if self.route is None else self.route.skip_bits

    @property
    def above(self) -> tuple[Expr, ...]:
        """All that is evaluated on the rows that the tree gives."""
        return (*(c.value for c in self.select), *(e for lookup in self.lookups for e in lookup.reads))

    @cached_property
    def reads(self) -> frozenset[str]:
        """All columns that lookups and select list read; known once for all units and batches of a process."""
        return frozenset(c for e in self.above for c in e.columns)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the result."""
        return pa.schema([pa.field(c.name, c.value.type) for c in self.select])


@dataclass(frozen=True)
class Budget:
    """What state may take in the memory of one executor, bytes, and of how many the plan knows."""

    bytes: int
    head: int  # of each unit and input: the newest rows and their index
    executors: int = 1  # at least; units are spread over them


@dataclass(frozen=True)
class Pipeline:
    """The stages of a query, in order: the rows of each but the last are an input of one later stage.

    Each stage has key classes of its own, so there is an exchange between two. The last one's select list is the query's, and
    lookups are there only. A stage's watermark is the least of its inputs', an upstream input's that of its stage.
    Where there are groups, the last one's rows become partials, and units of groups come behind it.
    """

    stages: tuple[Stage, ...]
    grouping: Grouping | None = None  # of the rows of the last stage
    budget: Budget | None = None  # None: state takes what there is

    @property
    def last(self) -> Stage:
        """The stage that gives the result."""
        return self.stages[-1]

    @property
    def final_close(self) -> bool:
        """Closing the inputs is final in some stage."""
        grouped = self.grouping is not None and self.grouping.final_close
        return grouped or any(stage.final_close for stage in self.stages)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the result."""
        return self.last.schema if self.grouping is None else self.grouping.schema

    @property
    def operators(self) -> int:
        """How many stateful operators follow each other: the stages, and the units of groups."""
        return len(self.stages) + (self.grouping is not None)

    @property
    def inputs(self) -> tuple[InputPlan, ...]:
        """The inputs that the spec describes, over all stages."""
        return tuple(plan for stage in self.stages for plan in stage.inputs if plan.upstream is None)

    @property
    def units(self) -> int:
        """Of each stage."""
        return self.last.units

    @cached_property
    def heard(self) -> tuple[tuple[int, InputPlan], ...]:
        """`inputs`, each behind the number of its stage."""
        return tuple((n, i) for n, s in enumerate(self.stages) for i in s.inputs if i.upstream is None)

    @property
    def hashed(self) -> frozenset[str]:
        """The sources whose rows go by the hashes of their keys: as long as no rule spreads them, each key to one unit."""
        return frozenset(p.source for n, p in self.heard if p.keys and self.stages[n].route is None)

    def route(self, number: int) -> Biclique | None:
        """How rows reach the units of an operator; those of groups by the hash of the group."""
        return self.stages[number].route if number < len(self.stages) else None

    def reader(self, number: int) -> tuple[int, InputPlan]:
        """The stage that reads the rows of stage `number`, and as which of its inputs."""
        found = [(n, i) for n, s in enumerate(self.stages) for i in s.inputs if i.upstream == number]
        assert len(found) == 1, "each stage but the last has one reader"
        return found[0]
