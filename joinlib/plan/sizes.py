"""Estimates the sizes of what a group of inner joins reads, from what is known of its inputs.

    rows       what `statistics` says, times the share that passes the filters; an input of which nothing is known
               counts as much as the largest of the others
    distinct   of a column: what `statistics` says; else the least that a column of its class can have: as many as
               there are rows, or as there are whole numbers between its ends

The shares are guesses (`plan.shares`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import pyarrow as pa

from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.compare import Comparison
from joinlib.path.estimate import Sizes
from joinlib.plan.shares import of_pairs, of_rows
from joinlib.plan.source import SourceInput
from joinlib.sql.graph import Clause, Result, Scan, Tree, inputs
from joinlib.sql.order import InnerGroup

Inputs = Mapping[str, SourceInput]
TEXT, NESTED = 24, 64  # bytes of a value of any length


def sizes_of(group: InnerGroup, given: Inputs) -> Sizes | None:
    """Return what is known of a group; None if nothing is known of any of its inputs."""
    scans = [scan for part in group.parts for scan in inputs(part)]
    known = [count for scan in scans if (count := given[scan.table.name].statistics.rows) is not None]
    if not known:
        return None
    guess = _Guess(given, max(known))
    rows = tuple(map(guess.rows, group.parts))
    distinct = [
        [min(found, rows[at]) if found else 0.0 for at, found in enumerate(guess.distinct(group, number))]
        for number in range(len(group.known.classes))
    ]
    by_part = tuple(zip(*distinct, strict=True))
    widths = tuple(_width(inputs(part), group.reads) for part in group.parts)
    return Sizes(group.known.graph, rows, widths, by_part, _conditions(group))


@dataclass(frozen=True)
class _Guess:
    given: Inputs
    unknown: float  # rows of an input of which nothing is known

    def rows(self, tree: Tree) -> float:
        """Return how many rows of an input pass its filters, or how many a join has."""
        if isinstance(tree, Result):
            return self.rows(tree.below)
        if isinstance(tree, Scan):
            return max(1.0, self.whole(tree) * prod(self.share(clause.value, tree) for clause in tree.filter))
        left, *right = map(self.rows, tree.children)
        if tree.kind == "inner":
            return max(left, *right)
        return left + sum(right) if tree.kind == "full" else left if tree.kind == "left" else left / 2

    def whole(self, scan: Scan) -> float:
        """Return all rows of an input."""
        rows = self.given[scan.table.name].statistics.rows
        return self.unknown if rows is None else rows

    def share(self, value: Expr, scan: Scan) -> float:
        """Return the share of an input's rows that pass a condition."""
        node = value.node
        if isinstance(node, Comparison) and node.sign == "=":
            columns = [e.column for e in (node.left, node.right) if e.column is not None]
            if len(columns) == 1 and (found := self.values(columns[0], scan)):
                return 1 / found
        return of_rows(value)

    def values(self, column: str, scan: Scan) -> float | None:
        """Return the number of different values of a column, if it is known."""
        return self.given[scan.table.name].statistics.distinct.get(column.partition(".")[2])

    def most(self, value: Expr, scan: Scan) -> float:
        """Return how many different values an expression has at most."""
        said = self.given[scan.table.name].statistics.most
        name = (value.column or "").partition(".")[2]
        return min(self.whole(scan), said.get(name, self.whole(scan)))

    def distinct(self, group: InnerGroup, number: int) -> Sequence[float]:
        """Return the distinct values of a class by part; 0 where it has no member."""
        key, members = group.known.classes[number], sorted(group.known.graph.classes[number])
        values = dict(zip(members, key.members.values(), strict=True))
        found: dict[int, float | None] = {}
        most = []
        for at, value in values.items():
            scan = next(s for s in inputs(group.parts[at]) if s.aliases & _aliases(value))
            found[at] = None if value.column is None else self.values(value.column, scan)
            most.append(found[at] or self.most(value, scan))
        return [found.get(at) or (min(most) if at in values else 0.0) for at in range(len(group.parts))]


def _aliases(value: Expr) -> set[str]:
    return {column.partition(".")[0] for column in value.columns}


def _width(scans: Iterable[Scan], reads: frozenset[str]) -> int:
    """Return the bytes of the columns that are read of a row."""
    fields = (field for scan in scans for field in scan.table.schema if f"{scan.alias}.{field.name}" in reads)
    return sum(_bytes(field.type) for field in fields)


def _bytes(kind: pa.DataType) -> int:
    if t.is_nested(kind):
        return NESTED
    try:
        return max(1, kind.bit_width // 8)
    except ValueError:  # of any length
        return TEXT


def _conditions(group: InnerGroup) -> tuple[tuple[frozenset[int], float], ...]:
    """Return the shares of tuples that further conditions on several parts let through."""
    found = ((_read(group, clause), clause) for clause in group.known.rest)
    return tuple((of, of_pairs(clause.value)) for of, clause in found if len(of) > 1)


def _read(group: InnerGroup, clause: Clause) -> frozenset[int]:
    return frozenset(at for at, part in enumerate(group.parts) if clause.aliases & part.aliases)
