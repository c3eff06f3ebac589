"""Finds keys for joins in which NULL equals NULL.

    a.k <=> b.k                                   coalesce(a.k, 0) = coalesce(b.k, 0) AND a.k <=> b.k
    a.k = b.k OR a.k IS NULL AND b.k IS NULL      the same

The equality follows from the other condition, so it changes no result: rows are found by it, and the few of NULL and of
the constant are told apart. It is added where no other equality relates the inputs, which would all meet in one unit,
each row compared with every other.
"""

from dataclasses import replace
from decimal import Decimal

import pyarrow as pa

from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.compare import Comparison, compare
from joinlib.expr.forms import coalesce
from joinlib.expr.logic import Junction, conjuncts, is_null
from joinlib.expr.nodes import constant
from joinlib.sql.graph import Clause, Scan, Tree, aliases

Related = list[frozenset[str]]  # the aliases that are related, of each such set


def with_keys(tree: Tree) -> Tree:
    """Return the tree with an equality for each null-safe one that alone relates some inputs."""
    if isinstance(tree, Scan):
        return tree
    tree = replace(tree, children=tuple(map(with_keys, tree.children)))
    if tree.apart is not None or tree.right != "keyed" or tree.single:
        return tree
    apart: Related = [child.aliases for child in tree.children]
    for clause in tree.on:
        node = clause.value.node
        if isinstance(node, Comparison) and node.sign == "=" and _apart(node.left, node.right):
            apart = _joined(apart, clause)
    alone = (clause for clause in tree.on if len(_joined(apart, clause)) < len(apart))
    return replace(tree, on=(*tree.on, *(key for clause in alone if (key := _key(clause)) is not None)))


def _apart(left: Expr, right: Expr) -> bool:
    """Return whether two values are of one input each, and not of the same."""
    of = aliases(left), aliases(right)
    return len(of[0]) == len(of[1]) == 1 and of[0] != of[1]


def _sides(value: Expr) -> tuple[Expr, Expr] | None:
    """Return two values that a condition says are equal, or both NULL."""
    node = value.node
    if isinstance(node, Comparison):
        return (node.left, node.right) if node.sign == "<=>" else None
    if not isinstance(node, Junction) or node.all or len(node.parts) != 2:
        return None
    for part, other in (node.parts, node.parts[::-1]):
        equal = part.node
        if isinstance(equal, Comparison) and equal.sign in ("=", "<=>"):
            sides = equal.left, equal.right
            if {one.sql for one in conjuncts(other)} == {is_null(side).sql for side in sides}:
                return sides
    return None


def _joined(related: Related, clause: Clause) -> Related:
    met = [one for one in related if one & clause.aliases]
    return [*(one for one in related if one not in met), frozenset().union(*met)]


def _key(clause: Clause) -> Clause | None:
    """Return the equality that follows from a null-safe one, in which NULL is a constant; None where there is none."""
    sides = _sides(clause.value)
    if sides is None or not _apart(*sides):
        return None
    kind = t.common(*(side.type for side in sides))
    instead = None if kind is None else _constant(kind)
    if kind is None or instead is None:
        return None
    return Clause(compare("=", *(coalesce(cast(side, kind), instead) for side in sides)), clause.place)


def _constant(kind: pa.DataType) -> Expr | None:
    """Return some value of a type."""
    if t.is_number(kind):
        return constant(pa.scalar(Decimal(0) if t.is_decimal(kind) else 0, kind), "0")
    if t.is_text(kind):
        return constant(pa.scalar("" if t.is_string(kind) else b"", kind), "''")
    if kind == t.BOOLEAN:
        return constant(pa.scalar(False), "FALSE")
    return constant(pa.scalar(0, kind), f"{t.name(kind)} '1970-01-01'") if t.is_time(kind) else None
