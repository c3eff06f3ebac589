"""Decides whether a condition can be true where some columns are NULL.

Law: the answer "rejects" is given only if it is certain.
"""

from collections.abc import Callable

from joinlib.expr import Expr, Node, Ref
from joinlib.expr.compare import Comparison
from joinlib.expr.logic import Junction
from joinlib.expr.nodes import Call, compute

Null = Callable[[str], bool]  # is the column of this name NULL?


def rejects_null(value: Expr, null: Null) -> bool:
    """Whether the condition is certainly false or NULL wherever those columns are NULL."""
    node = value.node
    if isinstance(node, Junction):
        parts = (rejects_null(part, null) for part in node.parts)
        return any(parts) if node.all else all(parts)
    if isinstance(node, Call) and node.kernel is compute and node.parameters == ("invert",):
        return _is_not_null(node.arguments[0], null) or _strict(node.arguments[0], null)
    return _strict(node, null)


def _is_not_null(node: Node, null: Null) -> bool:
    is_null = isinstance(node, Call) and node.parameters == ("is_null",)
    return is_null and _strict(node.arguments[0], null)  # type: ignore[attr-defined]


def _strict(node: Node, null: Null) -> bool:
    """Whether a node is NULL whenever the columns are: all kernels but IS NULL are; choices count as not."""
    if isinstance(node, Ref):
        return null(node.name)
    if isinstance(node, Comparison):
        return node.sign != "<=>" and any(_strict(operand, null) for operand in node.operands)
    if isinstance(node, Call) and node.parameters != ("is_null",):
        return any(_strict(argument, null) for argument in node.arguments)
    return False
