"""One join of a stage, ready to run: what each side stores and for how long, and how partners are found."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from joinlib.expr import Expr
from joinlib.expr.bound import Bound
from joinlib.model.joins import Index, IndexCondition, Kind, Leaf
from joinlib.model.side import SideConfig


@dataclass(frozen=True)
class Operator:
    """One join of the tree, ready to run."""

    kind: Kind
    children: tuple["Operator | Leaf", ...]
    sides: tuple[SideConfig, ...]
    hash_is_key: bool  # equal hashes imply equal keys
    bounds: tuple[Bound, ...]
    predicate: Expr | None
    where: Expr | None
    schema: pa.Schema  # the columns that its parent or the select list reads; "$hash" first
    index: Index = "hash"
    index_conditions: tuple[IndexCondition, ...] = ()
    residual: Expr | None = None  # the part of the predicate to check on the pairs found
    changes: bool = False  # the rows that it emits end with their weights
    partial: tuple[tuple[str, int], ...] = ()  # upsert: columns whose values may be left out, and their bits
    eager: bool = False  # rows without a partner are emitted at once, and taken back when one comes

    def operators(self) -> Iterator["Operator"]:
        """Yield all operators of this tree, children first."""
        for child in self.children:
            if isinstance(child, Operator):
                yield from child.operators()
        yield self
