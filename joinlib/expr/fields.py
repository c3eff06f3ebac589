"""Fields of STRUCT values. Law: the field of a NULL is NULL."""

import pyarrow.compute as pc

from joinlib.expr import Expr
from joinlib.expr.nodes import Value, call


def field_of(value: Expr, name: str) -> Expr:
    """The field of that name, which must be there."""
    kind = value.type.field(name).type
    return call(struct_field, (value,), kind, f"{value.sql}.`{name}`", name)


def struct_field(value: Value, name: str) -> Value:
    return pc.struct_field(value, [name])
