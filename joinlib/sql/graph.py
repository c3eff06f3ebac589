"""The join graph: the meaning of the SQL before any decision about how to run it. All values are frozen."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from joinlib.expr import Expr, ref
from joinlib.expr.behind import Rising
from joinlib.expr.bound import Bound
from joinlib.model.grouping import Grouping
from joinlib.path.choice import PathPlan

Kind = Literal["inner", "left", "full", "semi", "anti"]
LookupKind = Literal["inner", "left", "semi", "anti"]
Place = tuple[int, int]  # line, column
Right = Literal["keyed", "everywhere", "apart"]
"""Where the second input of an anti join goes: by its key; to every unit; to the first's `apart` rows."""


@dataclass(frozen=True)
class Table:
    """An input as the SQL text may name it."""

    name: str
    schema: pa.Schema
    time: str | None  # its event-time column
    stream: bool = True
    behind_us: int = (
        0  # how far behind the watermark its event time may be: it is made by a part of the query
    )
    rising: tuple[Rising, ...] = ()  # columns that follow an event time, its own among them
    keeps_failed: bool = False  # rows for which an expression over them alone fails become dead letters

    @property
    def times(self) -> dict[str, Rising]:
        """The columns that are or follow an event time, by name."""
        if not self.rising and self.time is not None:
            return {self.time: Rising(self.time, self.behind_us, "")}
        return {rising.column: rising for rising in self.rising}


@dataclass(frozen=True)
class Clause:
    """A condition that must be true, and the place where it was written."""

    value: Expr
    place: Place
    late: bool = False  # decided after the last join: rows are neither stored by it nor found by it

    @property
    def aliases(self) -> frozenset[str]:
        """The inputs whose columns the clause reads."""
        return aliases(self.value)


@dataclass(frozen=True)
class Scan:
    """The rows of one input that pass all clauses of `filter`."""

    alias: str  # unique in the query
    table: Table
    filter: tuple[Clause, ...] = ()
    prefix: str | None = None  # of the names of its columns in expressions; None: the alias and a dot

    def column(self, field: pa.Field) -> Expr:
        """Return the expression that reads one of its columns."""
        prefix = f"{self.alias}." if self.prefix is None else self.prefix
        return ref(f"{prefix}{field.name}", field.type)

    @property
    def aliases(self) -> frozenset[str]:
        return frozenset((self.alias,))


At = Callable[[Scan], Place]  # where the text names an input


@dataclass(frozen=True)
class Joined:
    """A join as written: `on` decides which rows match, `where` which results are emitted."""

    kind: Kind
    children: tuple["Joined | Scan", ...]
    on: tuple[Clause, ...]
    where: tuple[Clause, ...]
    place: Place
    right: Right = "keyed"
    apart: Expr | None = None  # selects rows of the first input that all go to one unit, whatever their key
    single: bool = False  # no equality relates its inputs: all rows meet in one unit
    paths: PathPlan | None = (
        None  # of an inner join of inputs that share no key: how their rows find each other
    )

    @property
    def aliases(self) -> frozenset[str]:
        return frozenset().union(*(c.aliases for c in self.children))


Tree = Joined | Scan


@dataclass(frozen=True, kw_only=True)
class Result(Scan):
    """The rows of an earlier stage, which computes the join `below`.

    Its columns keep their names, so it answers to all aliases of that join.
    """

    below: Joined
    stage: int

    @property
    def aliases(self) -> frozenset[str]:
        return self.below.aliases | {self.alias}


@dataclass(frozen=True)
class KeyClass:
    """One expression for each input, all of one type: rows match only if all of these are equal.

    In a join by paths only some inputs have one.
    """

    members: dict[str, Expr]  # by alias
    type: pa.DataType


@dataclass(frozen=True)
class JoinNode:
    """A join whose clauses are classified as keys, time bounds and the rest.

    `holders[i][k]`: the input whose member of class k is the key of every row of child i; empty if it has none.
    """

    kind: Kind
    children: tuple["JoinNode | Scan", ...]
    holders: tuple[tuple[str, ...], ...]
    bounds: tuple[Bound, ...]
    predicate: tuple[Clause, ...]
    where: tuple[Clause, ...]
    right: Right = "keyed"
    apart: Expr | None = None

    @property
    def aliases(self) -> frozenset[str]:
        return frozenset().union(*(c.aliases for c in self.children))


@dataclass(frozen=True)
class RangeEnd:
    """One end of a lookup's range.

    `table`, the lower or upper end by the table's columns, is compared with `point`, an expression over what
    is already joined, in the common type `type`.
    """

    table: Expr
    point: Expr
    type: pa.DataType


@dataclass(frozen=True)
class LookupJoin:
    """A lookup: `probe`, over what is already joined, equals `keys` of the table, compared in `types`.

    `low` and `high`: clauses among `predicate` mean low <= point, and point <= high.
    """

    kind: LookupKind
    scan: Scan
    probe: tuple[Expr, ...]
    keys: tuple[Expr, ...]
    types: tuple[pa.DataType, ...]
    predicate: tuple[Clause, ...]  # decides which rows match
    where: tuple[Clause, ...]  # decides which results are emitted
    low: RangeEnd | None = None
    high: RangeEnd | None = None


@dataclass(frozen=True)
class Query:
    """A whole query, or one stage of it.

    `scans`: the streams, in the order of the text. A single stream is a tree of its own if it has lookups.
    """

    scans: tuple[Scan, ...]
    tree: JoinNode | Scan
    classes: tuple[KeyClass, ...]
    select: tuple[tuple[str, Expr], ...]
    lookups: tuple[LookupJoin, ...] = ()
    grouping: Grouping | None = None  # of the rows of `select`
    # The place of the first join that emits some rows only when no partner can arrive any more.
    waits: Place | None = None
    paths: PathPlan | None = None  # over the scans and the classes, both in their order


def aliases(value: Expr) -> frozenset[str]:
    """The inputs that an expression reads; an alias has no dot."""
    return frozenset(c.partition(".")[0] for c in value.columns)


def passing(tree: Tree, clauses: Iterable[Clause]) -> Tree:
    """Filter the rows of a tree by further clauses."""
    if isinstance(tree, Scan):
        return replace(tree, filter=(*tree.filter, *clauses))
    return replace(tree, where=(*tree.where, *clauses))


def clauses_of(tree: Tree) -> Iterator[Clause]:
    """Yield the clauses of all joins of a tree, those above first."""
    if isinstance(tree, Joined):
        yield from (*tree.on, *tree.where)
        for child in tree.children:
            yield from clauses_of(child)


def preserved(tree: "Tree | JoinNode") -> frozenset[str]:
    """The inputs whose columns a join never fills with NULL."""
    if isinstance(tree, Result):
        return preserved(tree.below) | {tree.alias}
    if isinstance(tree, Scan):
        return tree.aliases
    if tree.kind == "full":
        return frozenset()
    if tree.kind == "inner":
        return frozenset().union(*(preserved(c) for c in tree.children))
    return preserved(tree.children[0])


def certain(tree: Tree) -> list[Clause]:
    """The clauses that are true for every output row of a tree."""
    if isinstance(tree, Scan):
        return list(tree.filter)
    on = tree.on if tree.kind in ("inner", "semi") else ()
    below = tree.children if tree.kind == "inner" else () if tree.kind == "full" else tree.children[:1]
    return [*on, *tree.where, *(c for child in below for c in certain(child))]


def scans(tree: "Tree | JoinNode") -> list[Scan]:
    """The leaves from left to right; an earlier stage's result counts as one leaf."""
    return [tree] if isinstance(tree, Scan) else [s for c in tree.children for s in scans(c)]


def inputs(tree: "Tree | JoinNode") -> list[Scan]:
    """The leaves from left to right, including those below the results of earlier stages."""
    if isinstance(tree, Result):
        return inputs(tree.below)
    return [tree] if isinstance(tree, Scan) else [s for c in tree.children for s in inputs(c)]
