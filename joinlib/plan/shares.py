"""Guesses which share of rows, or of pairs of rows, passes a condition.

It is the textbook's guess, since a stream has not been seen when it is planned: `<` and its like match a third;
`<>` nine tenths; `=` a tenth of the rows that it compares with a constant and a thousandth of the pairs.
"""

from joinlib.expr import Expr
from joinlib.expr.compare import Comparison

_SHARES = {"<>": 0.9, "<": 1 / 3, "<=": 1 / 3, ">": 1 / 3, ">=": 1 / 3}
_EQUAL_PAIRS, _OTHER_PAIRS = 0.001, 0.01
_EQUAL, _OTHER = 0.1, 0.25


def of_pairs(condition: Expr) -> float:
    """Return the share of all pairs of rows that pass a condition; a band, and any other, takes a hundredth."""
    node = condition.node
    if isinstance(node, Comparison) and node.left.columns and node.right.columns:
        return _SHARES.get(node.sign, _EQUAL_PAIRS)
    return _OTHER_PAIRS


def of_rows(condition: Expr) -> float:
    """Return the share of an input's rows that pass a condition."""
    node = condition.node
    return _SHARES.get(node.sign, _EQUAL) if isinstance(node, Comparison) else _OTHER
