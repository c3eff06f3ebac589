"""Finds keys for joins in which NULL equals NULL.

    a.k <=> b.k      coalesce(a.k, 0) = coalesce(b.k, 0) AND a.k <=> b.k

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
        if _relates(clause, "="):
            apart = _joined(apart, clause)
    alone = (c for c in tree.on if _relates(c, "<=>") and len(_joined(apart, c)) < len(apart))
    return replace(tree, on=(*tree.on, *(key for clause in alone if (key := _key(clause)) is not None)))


def _relates(clause: Clause, sign: str) -> bool:
    """Return whether a clause compares a value of one input with one of another."""
    node = clause.value.node
    if not isinstance(node, Comparison) or node.sign != sign:
        return False
    left, right = aliases(node.left), aliases(node.right)
    return len(left) == len(right) == 1 and left != right


def _joined(related: Related, clause: Clause) -> Related:
    met = [one for one in related if one & clause.aliases]
    return [*(one for one in related if one not in met), frozenset().union(*met)]


def _key(clause: Clause) -> Clause | None:
    """Return the equality of both values, in which NULL is a constant; None where their type has none."""
    node = clause.value.node
    assert isinstance(node, Comparison)
    kind = t.common(node.left.type, node.right.type)
    instead = None if kind is None else _constant(kind)
    if kind is None or instead is None:
        return None
    sides = (coalesce(cast(side, kind), instead) for side in (node.left, node.right))
    return Clause(compare("=", *sides), clause.place)


def _constant(kind: pa.DataType) -> Expr | None:
    """Return some value of a type."""
    if t.is_number(kind):
        return constant(pa.scalar(Decimal(0) if t.is_decimal(kind) else 0, kind), "0")
    if t.is_text(kind):
        return constant(pa.scalar("" if t.is_string(kind) else b"", kind), "''")
    if kind == t.BOOLEAN:
        return constant(pa.scalar(False), "FALSE")
    return constant(pa.scalar(0, kind), f"{t.name(kind)} '1970-01-01'") if t.is_time(kind) else None
