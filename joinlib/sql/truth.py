"""Compiles a condition. Law: it is BOOLEAN, and NULL without a type is the condition that is never TRUE."""

from sqlglot import exp

from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.sql.compile import compile
from joinlib.sql.scope import Scope


def condition(node: exp.Expr, scope: Scope, wanted: str = "a condition is BOOLEAN") -> Expr:
    """Return the compiled condition; `wanted` is how an error message begins.

    Raises:
        SqlError: if it has values that are neither TRUE nor FALSE.
    """
    return checked(compile(node, scope), node, scope, wanted)


def checked(value: Expr, node: exp.Expr, scope: Scope, wanted: str = "a condition is BOOLEAN") -> Expr:
    """Return a value that was compiled as a condition; see `condition`."""
    if value.type not in (t.BOOLEAN, t.NULL):
        raise scope.error(f"{wanted}, {value.excerpt} is {t.name(value.type)}", node)
    return cast(value, t.BOOLEAN)  # what filters rows takes no VOID
