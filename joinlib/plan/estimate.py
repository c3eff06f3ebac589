"""How large a share of all pairs will match? A guess by the textbook, since a stream has not been seen when it is planned.

`<` and its like: a third; `<>`: nine tenths; a band, and each other condition: a hundredth. What is told apart is a join whose
result grows with the product of its inputs from one that finds a few partners.
"""

from joinlib.expr.compare import Comparison
from joinlib.expr.logic import conjuncts
from joinlib.join.config import Join

LARGE = 0.05  # of all pairs: more is warned of
_SHARES = {"<>": 0.9, "<": 1 / 3, "<=": 1 / 3, ">": 1 / 3, ">=": 1 / 3, "=": 0.001, "<=>": 0.001}
_OTHER = 0.01


def share(join: Join) -> float:
    """The share of pairs of rows that are kept at the same time which match: between 0 and 1."""
    clauses = conjuncts(join.predicate) if join.predicate is not None else []
    found = 0.001 ** len(join.keys[0])
    for clause in clauses:
        node = clause.node
        both = isinstance(node, Comparison) and bool(node.left.columns) and bool(node.right.columns)
        found *= _SHARES[node.sign] if both else _OTHER  # type: ignore[attr-defined]
    return found


def said(join: Join) -> str:
    """The estimate in words."""
    found = share(join)
    return f"about {format(found, '.2g' if found < 0.01 else '.0%')} of all pairs"
