"""Can a condition be true where the columns of some inputs are all NULL? Law: "rejects" is said only if certain."""

from joinlib.expr import Expr, Node, Ref
from joinlib.expr.compare import Comparison
from joinlib.expr.logic import Junction
from joinlib.expr.nodes import Call, compute


def rejects_null(value: Expr, inputs: frozenset[str]) -> bool:
    """True: the condition is false or NULL wherever the columns of `inputs` are NULL."""
    node = value.node
    if isinstance(node, Junction):
        sides = [rejects_null(side, inputs) for side in (node.left, node.right)]
        return any(sides) if node.all else all(sides)
    if isinstance(node, Call) and node.kernel is compute and node.parameters == ("invert",):
        return _is_not_null(node.arguments[0], inputs) or _strict(node.arguments[0], inputs)
    return _strict(node, inputs)


def _is_not_null(node: Node, inputs: frozenset[str]) -> bool:
    is_null = isinstance(node, Call) and node.parameters == ("is_null",)
    return is_null and _strict(node.arguments[0], inputs)  # type: ignore[attr-defined]


def _strict(node: Node, inputs: frozenset[str]) -> bool:
    """NULL whenever the columns of inputs are: kernels are, but for IS NULL; choices are not asked."""
    if isinstance(node, Ref):
        return node.name.partition(".")[0] in inputs
    if isinstance(node, Comparison):
        return node.sign != "<=>" and any(_strict(operand, inputs) for operand in node.operands)
    if isinstance(node, Call) and node.parameters != ("is_null",):
        return any(_strict(argument, inputs) for argument in node.arguments)
    return False
