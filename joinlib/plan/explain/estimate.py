"""Estimates which share of all pairs of rows will match.

It is the textbook's guess, since a stream has not been seen when it is planned: `<` and its like match a
third of all pairs; `<>` nine tenths; a band, and each other condition, a hundredth. The purpose is to
distinguish a join whose result grows with the product of its inputs from one that finds a few partners.
"""

from joinlib.expr.compare import Comparison
from joinlib.expr.logic import conjuncts
from joinlib.model.operator import Operator

LARGE = 0.05  # share of all pairs above which the plan warns
_SHARES = {"<>": 0.9, "<": 1 / 3, "<=": 1 / 3, ">": 1 / 3, ">=": 1 / 3, "=": 0.001, "<=>": 0.001}
_OTHER = 0.01


def share(join: Operator) -> float:
    """Estimate which share of the pairs of rows that are kept at the same time match: between 0 and 1."""
    clauses = conjuncts(join.predicate) if join.predicate is not None else []
    found = 0.001 ** len(join.sides[0].keys)
    for clause in clauses:
        node = clause.node
        both = isinstance(node, Comparison) and bool(node.left.columns) and bool(node.right.columns)
        found *= _SHARES[node.sign] if both else _OTHER  # type: ignore[attr-defined]
    return found


def share_text(join: Operator) -> str:
    """Put the estimate into words."""
    found = share(join)
    return f"about {format(found, '.2g' if found < 0.01 else '.0%')} of all pairs"
