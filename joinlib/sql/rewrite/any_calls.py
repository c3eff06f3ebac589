"""Reads any(x) where no comparison with a subquery is meant.

    any(ok)     bool_or(ok)

Law: the same value.
"""

from sqlglot import exp

from joinlib.sql.rewrite import trees


def any_calls(statement: exp.Expr) -> None:
    """Rewrite a statement in place."""
    for found in list(statement.find_all(exp.Any)):
        if found.arg_key != "expression" and isinstance(found.this, exp.Paren):
            found.replace(trees.placed(trees.call("bool_or", found.this.this), found))
