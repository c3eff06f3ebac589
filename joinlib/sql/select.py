"""The select list. Law: every output column has one name, written or taken from the column."""

from sqlglot import exp

from joinlib.expr import Expr, ref
from joinlib.expr import types as t
from joinlib.sql.compile import compile
from joinlib.sql.graph import Scan
from joinlib.sql.scope import Scope, nearest

Named = tuple[str, Expr]


def select_list(select: exp.Select, scope: Scope) -> tuple[Named, ...]:
    """Names and values of the output, stars written out."""
    found: list[Named] = []
    seen: dict[str, str] = {}
    for item in select.expressions:
        for name, value in _named(item, scope):
            if name.lower() in seen:
                both = f"{seen[name.lower()]} and {value.sql}"
                raise scope.error(f"two output columns are named {name}: {both}; {_fix(item, value)}", item)
            seen[name.lower()] = value.sql
            found.append((name, value))
    return tuple(found)


def _fix(item: exp.Expr, value: Expr) -> str:
    if item.is_star:
        return f"write the columns instead of *, one of them as {value.sql} AS {value.sql.replace('.', '_')}"
    return f"write {value.sql} AS another_name"


def _named(item: exp.Expr, scope: Scope) -> list[Named]:
    if isinstance(item, exp.Star):
        return _everything(item, scope)
    if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        return _all_of(item, scope)
    value = compile(item.unalias(), scope)
    if value.type == t.NULL:
        raise scope.error("an output column has no type; write CAST(NULL AS ...)", item)
    if not (t.is_nested(value.type) or t.name(value.type) in t.NAMES or t.is_decimal(value.type)):
        raise scope.error(f"{value.sql} cannot come out: {t.name(value.type)} is no type of a column", item)
    name = item.alias or (item.name if isinstance(item, exp.Column) else "")
    if not name:
        raise scope.error(
            f"the column {value.sql} has no name; write {item.sql(dialect='spark')} AS name", item
        )
    return [(name, value)]


def _columns(scan: Scan) -> list[Named]:
    return [(f.name, ref(f"{scan.alias}.{f.name}", f.type)) for f in scan.table.schema]


def _all_of(item: exp.Column, scope: Scope) -> list[Named]:
    scan = scope.visible.get(item.table.lower())
    if scan is None:
        why = scope.hidden.get(item.table.lower())
        raise scope.error(
            why or f"{item.table} is no input of this query{nearest(item.table, scope.names())}", item
        )
    return _columns(scan)


def _everything(item: exp.Star, scope: Scope) -> list[Named]:
    """USING columns first and once, then the columns of every input in the order of FROM."""
    for part in ("except_", "except", "replace", "rename"):
        if item.args.get(part):
            raise scope.error("* EXCEPT is not supported; name the columns", item)
    merged = [(_spelled(name, scope), value) for name, value in scope.merged.items()]
    plain = [c for scan in scope.visible.values() for c in _columns(scan) if c[0].lower() not in scope.merged]
    return merged + plain


def _spelled(name: str, scope: Scope) -> str:
    every = (f.name for s in scope.visible.values() for f in s.table.schema)
    return str(next(n for n in every if n.lower() == name))
