"""Estimates which share of all pairs of rows will match.

The shares are guesses (`plan.shares`). The purpose is to distinguish a join whose result grows with the product
of its inputs from one that finds a few partners.
"""

from math import prod

from joinlib.expr.logic import conjuncts
from joinlib.model.operator import Operator
from joinlib.plan.shares import of_pairs

LARGE = 0.05  # share of all pairs above which the plan warns


def share(join: Operator) -> float:
    """Estimate which share of the pairs of rows that are kept at the same time match: between 0 and 1."""
    clauses = conjuncts(join.predicate) if join.predicate is not None else []
    found = 0.001 ** len(join.sides[0].keys)
    return found * prod(map(of_pairs, clauses))


def share_text(join: Operator) -> str:
    """Put the estimate into words."""
    found = share(join)
    return f"about {format(found, '.2g' if found < 0.01 else '.0%')} of all pairs"
