"""Which expressions have a value for every row, or NULL? None of them fails, whatever rows come."""

from joinlib.expr import Node, Ref
from joinlib.expr.compare import Comparison, is_one_of
from joinlib.expr.logic import Case, Junction
from joinlib.expr.nodes import Call, Literal, compute

_TESTS = ("is_null", "invert")  # of `compute`


def total(node: Node) -> bool:
    """Return whether an expression is known to fail for no row: it compares columns and constants as they are."""
    match node:
        case Ref() | Literal():
            return True
        case Comparison():
            return all(map(total, node.operands))
        case Junction():
            return all(total(part.node) for part in node.parts)
        case Case():
            return all(map(total, (*node.conditions, *node.values)))
        case Call():
            test = node.kernel is is_one_of or (node.kernel is compute and node.parameters[-1] in _TESTS)
            return test and all(map(total, node.arguments))
        case _:
            return False
