"""The join graph: what SQL says, before anything is decided about running it. Frozen values."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from joinlib.aggregate.config import Grouping
from joinlib.expr import Expr
from joinlib.expr.bound import Bound

Kind = Literal["inner", "left", "full", "semi", "anti"]
LookupKind = Literal["inner", "left", "semi", "anti"]
Place = tuple[int, int]  # line, column


@dataclass(frozen=True)
class Table:
    """An input as the text may name it."""

    name: str
    schema: pa.Schema
    time: str | None  # its event-time column
    stream: bool = True


@dataclass(frozen=True)
class Clause:
    """A condition that must be true, and where it was written."""

    value: Expr
    place: Place

    @property
    def aliases(self) -> frozenset[str]:
        """The inputs it speaks of."""
        return aliases(self.value)


@dataclass(frozen=True)
class Scan:
    """Rows of one input that pass all of `filter`."""

    alias: str  # unique in the query
    table: Table
    filter: tuple[Clause, ...] = ()

    @property
    def aliases(self) -> frozenset[str]:
        return frozenset((self.alias,))


At = Callable[[Scan], Place]  # where the text names an input


@dataclass(frozen=True)
class Joined:
    """A join as written: `on` decides what matches, `where` what comes out."""

    kind: Kind
    children: tuple["Joined | Scan", ...]
    on: tuple[Clause, ...]
    where: tuple[Clause, ...]
    place: Place

    @property
    def aliases(self) -> frozenset[str]:
        return frozenset().union(*(c.aliases for c in self.children))


Tree = Joined | Scan


@dataclass(frozen=True, kw_only=True)
class Result(Scan):
    """The rows of an earlier stage, which joins what is `below`. Columns keep their names, so it goes by all its aliases."""

    below: Joined
    stage: int

    @property
    def aliases(self) -> frozenset[str]:
        return self.below.aliases | {self.alias}


@dataclass(frozen=True)
class KeyClass:
    """Equal expressions, one for each input: rows match only if these are equal. All are of one type."""

    members: dict[str, Expr]  # by alias
    type: pa.DataType


@dataclass(frozen=True)
class Node:
    """A join with its clauses told apart.

    `holders[i][k]`: the input whose member of class k is the key of every row of child i.
    """

    kind: Kind
    children: tuple["Node | Scan", ...]
    holders: tuple[tuple[str, ...], ...]
    bounds: tuple[Bound, ...]
    predicate: tuple[Clause, ...]
    where: tuple[Clause, ...]

    @property
    def aliases(self) -> frozenset[str]:
        return frozenset().union(*(c.aliases for c in self.children))


@dataclass(frozen=True)
class RangeEnd:
    """`table` (its lower or upper end of a range) is compared with `point`, of what is known so far, in `type`."""

    table: Expr
    point: Expr
    type: pa.DataType


@dataclass(frozen=True)
class Lookup:
    """A table that is looked up: `probe` of what is known so far equals `keys` of the table, in `types`.

    `low` and `high`: clauses among `predicate` say low <= point, and point <= high.
    """

    kind: LookupKind
    scan: Scan
    probe: tuple[Expr, ...]
    keys: tuple[Expr, ...]
    types: tuple[pa.DataType, ...]
    predicate: tuple[Clause, ...]  # decides what matches
    where: tuple[Clause, ...]  # decides what comes out
    low: RangeEnd | None = None
    high: RangeEnd | None = None


@dataclass(frozen=True)
class Query:
    """All of it, or one stage. `scans`: the streams, in the order of the text; one alone is a tree, if it looks tables up."""

    scans: tuple[Scan, ...]
    tree: Node | Scan
    classes: tuple[KeyClass, ...]
    select: tuple[tuple[str, Expr], ...]
    lookups: tuple[Lookup, ...] = ()
    grouping: Grouping | None = None  # of the rows of `select`
    waits: Place | None = (
        None  # of the first join some of whose rows come out only when no partner can come any more
    )


def aliases(value: Expr) -> frozenset[str]:
    """The inputs an expression reads; an alias has no dot."""
    return frozenset(c.partition(".")[0] for c in value.columns)


def passing(tree: Tree, clauses: Iterable[Clause]) -> Tree:
    """The rows of a tree that pass these clauses too."""
    if isinstance(tree, Scan):
        return replace(tree, filter=(*tree.filter, *clauses))
    return replace(tree, where=(*tree.where, *clauses))


def kept(tree: "Tree | Node") -> frozenset[str]:
    """Inputs whose columns a join never fills with NULL."""
    if isinstance(tree, Result):
        return kept(tree.below) | {tree.alias}
    if isinstance(tree, Scan):
        return tree.aliases
    if tree.kind == "full":
        return frozenset()
    if tree.kind == "inner":
        return frozenset().union(*(kept(c) for c in tree.children))
    return kept(tree.children[0])


def certain(tree: Tree) -> list[Clause]:
    """Clauses that are true of every row of a tree."""
    if isinstance(tree, Scan):
        return list(tree.filter)
    on = tree.on if tree.kind in ("inner", "semi") else ()
    below = tree.children if tree.kind == "inner" else () if tree.kind == "full" else tree.children[:1]
    return [*on, *tree.where, *(c for child in below for c in certain(child))]


def scans(tree: "Tree | Node") -> list[Scan]:
    """The leaves, left to right."""
    return [tree] if isinstance(tree, Scan) else [s for c in tree.children for s in scans(c)]


def inputs(tree: "Tree | Node") -> list[Scan]:
    """The leaves, left to right, those below earlier stages too."""
    if isinstance(tree, Result):
        return inputs(tree.below)
    return [tree] if isinstance(tree, Scan) else [s for c in tree.children for s in inputs(c)]
