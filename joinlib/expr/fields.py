"""Reads fields of STRUCT values. Law: a field of NULL is NULL."""

import pyarrow.compute as pc

from joinlib.expr import Expr
from joinlib.expr.nodes import Value, call


def field_of(value: Expr, name: str) -> Expr:
    """Read the field of that name, which must exist."""
    kind = value.type.field(name).type
    return call(struct_field, (value,), kind, f"{value.sql}.`{name}`", name)


def struct_field(value: Value, name: str) -> Value:
    return pc.struct_field(value, [name])
