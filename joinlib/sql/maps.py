"""Analyses a part of the query that only computes and filters: SELECT ... FROM one table, with LATERAL VIEWs.

Law: names are those of the table's columns; what a LATERAL VIEW adds is told apart by a prefix of its own.
"""

import pyarrow as pa
from sqlglot import exp

from joinlib.expr import types as t
from joinlib.model.maps import Expand, Map
from joinlib.sql.compile import compile
from joinlib.sql.depth import check_depth, with_room
from joinlib.sql.graph import Scan, Table
from joinlib.sql.scope import Scope
from joinlib.sql.select import select_list
from joinlib.sql.supported import check
from joinlib.sql.truth import condition

_GENERATORS = ("explode", "posexplode", "inline", "explode_outer", "posexplode_outer", "inline_outer")


def map_of(sql: str, select: exp.Select, table: Table) -> Map:
    """Return the map of a SELECT over one table.

    Raises:
        SqlError: if it is not such a SELECT.
    """
    return with_room(lambda: _map_of(sql, select, table))


def _map_of(sql: str, select: exp.Select, table: Table) -> Map:
    check_depth(sql, select)
    plain = select.copy()
    plain.set("laterals", [])
    check(sql, plain)
    scope = Scope(sql)
    alias = select.args["from_"].this.alias_or_name
    scope.visible[alias.lower()] = Scan(alias, table, prefix="")
    expands = [_expand(lateral, scope, n) for n, lateral in enumerate(select.args.get("laterals") or [])]
    where = select.args.get("where")
    return Map(condition(where.this, scope) if where else None, tuple(expands), select_list(select, scope))


def _expand(lateral: exp.Lateral, scope: Scope, number: int) -> Expand:
    """Analyse a LATERAL VIEW, whose columns can be named from here on."""
    call, name = lateral.this, _name(lateral.this)
    if name not in _GENERATORS:
        raise scope.error(
            f"LATERAL VIEW {name}(...) is not supported; use one of {', '.join(_GENERATORS[:3])}", call
        )
    value = compile(_argument(call), scope)
    if not (t.is_nested(value.type) and (pa.types.is_list(value.type) or pa.types.is_map(value.type))):
        raise scope.error(f"{value.excerpt} is {t.name(value.type)}; {name} takes an ARRAY or a MAP", call)
    position, outer = name.startswith("pos"), bool(lateral.args.get("outer")) or name.endswith("outer")
    alias = lateral.args["alias"]
    given = [column.name for column in alias.args.get("columns") or []]
    kinds = _kinds(value.type, name, len(given) - position)
    names = given or [*(["pos"] if position else []), *(n for n, _ in kinds)]
    if len(names) != len(kinds) + position:
        raise scope.error(
            f"{name} makes {len(kinds) + position} columns, and {len(names)} are named", lateral
        )
    prefix = f"$e{number}."
    expand = Expand(value, tuple(prefix + n for n in names), outer, position)
    schema = pa.schema([pa.field(n, kind) for n, (_, kind) in zip(names, expand.added, strict=True)])
    own = alias.name or prefix
    if own.lower() in scope.visible:
        raise scope.error(f"the name {own} is used twice", lateral)
    scope.visible[own.lower()] = Scan(own, Table(own, schema, None), prefix=prefix)
    return expand


def _kinds(kind: pa.DataType, name: str, wanted: int) -> list[tuple[str, pa.DataType]]:
    """Return the default names and the types of what a generator makes.

    wanted: so many columns are named; with several, structs are taken apart, as UNNEST does.
    """
    if pa.types.is_map(kind):
        return [("key", kind.key_type), ("value", kind.item_type)]
    if name.startswith("inline") or (wanted > 1 and t.is_struct(kind.value_type)):
        return [(field.name, field.type) for field in kind.value_type]
    return [("col", kind.value_type)]


def _name(call: exp.Expr) -> str:
    return (call.name if isinstance(call, exp.Anonymous) else call.key).lower()


def _argument(call: exp.Expr) -> exp.Expr:
    return call.expressions[0] if isinstance(call, exp.Anonymous) else call.this
