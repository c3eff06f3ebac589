"""Reads ORDER BY within the call of an aggregate.

    first(x ORDER BY t)       min_by(x, t)             the first of an order is the value of its least
    last(x ORDER BY t)        max_by(x, t)
    listagg(x ORDER BY x)     listagg(x)               lists are in the order of their values anyway

Law: one of the values that the call may return; of rows that tie, the least.
"""

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.lengths import WindowText

_FIRST, _LAST = ("first", "first_value"), ("last", "last_value")
_LISTS = ("collect_list", "array_agg", "listagg", "string_agg")


def ordered_calls(statement: exp.Expr, text: WindowText) -> None:
    """Rewrite a statement in place.

    Raises:
        SqlError: if a call asks for an order that its value cannot have.
    """
    for order in list(statement.find_all(exp.Order)):
        call = order.parent
        if order.this is None or not isinstance(call, exp.Anonymous):
            continue
        name, keys = str(call.name).lower(), order.expressions
        if name in _LISTS:
            value = order.this.expressions[0] if isinstance(order.this, exp.Distinct) else order.this
            if len(keys) > 1 or keys[0].args.get("desc") or keys[0].this != value:
                text.refuse(f"{name} is in the order of its values: leave ORDER BY out", order)
            order.replace(order.this)
        elif name in (*_FIRST, *_LAST) and len(call.expressions) == 1:
            if len(keys) > 1:
                text.refuse(f"{name} takes one key of its order; write {_by(name, False)}(value, key)", order)
            down = bool(keys[0].args.get("desc"))
            made = exp.Anonymous(this=_by(name, down), expressions=[order.this, keys[0].this])
            call.replace(trees.placed(made, call))
        else:
            text.refuse(f"{name} does not depend on an order: leave ORDER BY out", order)


def _by(name: str, down: bool) -> str:
    return "min_by" if (name in _FIRST) != down else "max_by"
