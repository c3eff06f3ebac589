"""Which expressions have a value for every row, or NULL? None of them fails, whatever rows come."""

from joinlib.expr import Node, Ref
from joinlib.expr import types as t
from joinlib.expr.attempts import Tried
from joinlib.expr.cast import convert
from joinlib.expr.compare import Comparison, is_one_of
from joinlib.expr.logic import Case, Junction
from joinlib.expr.nodes import Call, Literal, compute
from joinlib.expr.text import cased, join_text, match_text, replace_text, slice_text, trim_spaces

_TESTS = ("is_null", "invert", "utf8_length")  # of `compute`
_KERNELS = (is_one_of, cased, join_text, match_text, replace_text, slice_text, trim_spaces)


def total(node: Node) -> bool:
    """Return whether an expression is known to fail for no row: it compares, or it has NULL where others fail."""
    match node:
        case Ref() | Literal():
            return True
        case Comparison():
            return all(map(total, node.operands)) or _of_numbers(node)
        case Junction():
            return all(total(part.node) for part in node.parts)
        case Case():
            return all(map(total, (*node.conditions, *node.values)))
        case Call():
            return _lasting(node) and all(map(total, node.arguments))
        case Tried():
            return all(map(total, node.arguments))
        case _:
            return False


def _lasting(node: Call) -> bool:
    """Return whether a call has a value for all values of its arguments."""
    if node.kernel is compute:
        return node.parameters[-1] in _TESTS
    if node.kernel is convert:
        return node.parameters[-1] is True  # TRY_CAST
    return node.kernel in _KERNELS


def _of_numbers(node: Comparison) -> bool:
    """Return whether it compares whole numbers or doubles, each of which fits the type of both."""
    sides = node.left, node.right
    return all(total(one.node) and (t.is_integer(one.type) or t.is_float(one.type)) for one in sides)
