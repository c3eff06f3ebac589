"""Compiles calls whose arguments are more than values: functions, units of time, fields with names.

transform(values, x -> x + 1)    timestampdiff(MINUTE, a, b)    struct(o.a AS b)    position('a' IN o.s)
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from joinlib.expr import Expr, lambdas, units
from joinlib.expr.functions import function
from joinlib.expr.nested import struct_of
from joinlib.sql.scope import Scope

Compile = Callable[[exp.Expr, Scope], Expr]


@dataclass
class Within(Scope):
    """The scope of a function's body: its parameters, and all that can be named around it."""

    around: Scope = field(default_factory=lambda: Scope(""))
    parameters: dict[str, Expr] = field(default_factory=dict)  # by lower-case name

    @property
    def depth(self) -> int:
        """How many parameters can be named."""
        return len(self.parameters) + (self.around.depth if isinstance(self.around, Within) else 0)

    def given(self, node: exp.Expr) -> Expr | None:
        plain = isinstance(node, exp.Identifier) or (isinstance(node, exp.Column) and not node.table)
        if plain and node.name.lower() in self.parameters:
            return self.parameters[node.name.lower()]
        return self.around.given(node)

    def resolve(self, column: exp.Column) -> Expr:
        return self.around.resolve(column)


def _body(node: exp.Expr, scope: Scope, compiled: Compile, name: str) -> lambdas.Body:
    """Return what compiles a function, once the types of its parameters are known."""
    if not isinstance(node, exp.Lambda):
        raise scope.error(f"{name} takes a function such as x -> x + 1", node)
    names = [parameter.name.lower() for parameter in node.expressions]

    def body(*types: pa.DataType) -> lambdas.Lambda:
        if len(names) > len(types):
            raise scope.error(f"{name}: its function has {len(types)} parameters at most", node)
        depth = scope.depth if isinstance(scope, Within) else 0
        given = lambdas.named(types[: max(len(names), _least(name, types))], depth)
        inner = Within(scope.sql, around=scope, parameters=dict(zip(names, given)))
        return lambdas.Lambda(tuple(g.sql for g in given[: len(names)]), compiled(node.this, inner))

    return body


def _least(name: str, types: tuple[pa.DataType, ...]) -> int:
    return 1 if name in ("transform", "filter") else len(types)


HIGHER: dict[
    str, tuple[Callable[..., Expr], int, int]
] = {  # what builds it; values before the functions; functions
    "transform": (lambdas.transform, 1, 1),
    "filter": (lambdas.keep, 1, 1),
    "exists": (lambdas.exists, 1, 1),
    "forall": (lambdas.forall, 1, 1),
    "aggregate": (lambdas.fold, 2, 2),
    "reduce": (lambdas.fold, 2, 2),
    "zip_with": (lambdas.zip_with, 2, 1),
    "map_filter": (lambda m, f: lambdas.of_map("map_filter", m, f), 1, 1),
    "transform_keys": (lambda m, f: lambdas.of_map("transform_keys", m, f), 1, 1),
    "transform_values": (lambda m, f: lambdas.of_map("transform_values", m, f), 1, 1),
    "map_zip_with": (lambdas.map_zip_with, 2, 1),
}


def takes_functions(name: str, arguments: list[exp.Expr]) -> bool:
    """Whether the function of this name takes functions."""
    return name in HIGHER or (name == "array_sort" and len(arguments) == 2)


def higher(name: str, arguments: list[exp.Expr], scope: Scope, compiled: Compile, at: exp.Expr) -> Expr:
    """Compile the call of a function that takes functions."""
    if name == "array_sort":
        raise scope.error(
            "array_sort with a function is not supported; sort structs whose first field is what counts, and"
            " transform them",
            at,
        )
    build, values, functions = HIGHER[name]
    if not values + 1 <= len(arguments) <= values + functions:
        raise scope.error(f"{name} takes {values + 1} arguments, not {len(arguments)}", at)
    bodies = [_body(node, scope, compiled, name) for node in arguments[values:]]
    return build(*[compiled(node, scope) for node in arguments[:values]], *bodies)


def _struct(node: exp.Expr, scope: Scope, compiled: Compile) -> Expr:
    values = []
    for number, item in enumerate(node.expressions, 1):
        value = compiled(item.unalias(), scope)
        plain = item.name if isinstance(item, exp.Column | exp.Dot) else ""
        values.append((item.alias or plain or f"col{number}", value))
    return struct_of(values)


def _position(node: exp.Expr, scope: Scope, compiled: Compile) -> Expr:
    first = node.expressions[0] if node.expressions else None
    if len(node.expressions) == 1 and isinstance(first, exp.In) and first.args.get("field") is not None:
        return function("locate", [compiled(first.this, scope), compiled(first.args["field"], scope)])
    return function("position", [compiled(e, scope) for e in node.expressions])


def _unit(node: exp.Expr, scope: Scope) -> str:
    name = node.name.upper() if isinstance(node, exp.Column | exp.Var | exp.Literal) else ""
    if name not in units.UNITS:
        raise scope.error(f"the unit of time is one of {', '.join(units.UNITS)}", node)
    return name


def _difference(node: exp.Expr, scope: Scope, compiled: Compile) -> Expr:
    unit, *rest = node.expressions
    return units.difference(_unit(unit, scope), *(compiled(e, scope) for e in rest))


def _addition(node: exp.Expr, scope: Scope, compiled: Compile) -> Expr:
    unit, *rest = node.expressions
    return units.addition(_unit(unit, scope), *(compiled(e, scope) for e in rest))


_SPECIAL: dict[tuple[str, int], Callable[[exp.Expr, Scope, Compile], Expr]] = {
    ("position", 1): _position,
    **{(name, 3): _difference for name in ("timestampdiff", "datediff", "date_diff")},
    **{(name, 3): _addition for name in ("timestampadd", "dateadd", "date_add")},
}


def special(node: exp.Expr, scope: Scope, compiled: Compile) -> Expr | None:
    """Compile a call whose arguments are not all values; None if it is like others."""
    name = str(node.name).lower()
    if takes_functions(name, node.expressions):
        return higher(name, node.expressions, scope, compiled, node)
    if name == "struct" and node.expressions:
        return _struct(node, scope, compiled)
    build = _SPECIAL.get((name, len(node.expressions)))
    return None if build is None else build(node, scope, compiled)
