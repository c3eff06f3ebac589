"""Reads the select list. Law: every output column has one name, written or taken from the column."""

from sqlglot import exp

from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.sql.compile import compile
from joinlib.sql.graph import Scan
from joinlib.sql.mistakes import each
from joinlib.sql.scope import Scope, nearest
from joinlib.sql.supported import written

Named = tuple[str, Expr]
RESULT = "result"  # marks the query whose rows are the result


def select_list(select: exp.Select, scope: Scope) -> tuple[Named, ...]:
    """Return names and values of the output columns, with stars expanded.

    NULLs in the result that have no type are texts; within a query they would change the type of what they meet.

    Raises:
        SqlError: if a column has no name or no type, or two have the same name.
    """
    found: list[Named] = []
    seen: dict[str, str] = {}
    result, items = bool(select.meta.get(RESULT)), select.expressions
    for item, columns in zip(
        items, each(lambda item: _named(item, scope, result=result), items), strict=True
    ):
        for name, value in columns:
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


def _named(item: exp.Expr, scope: Scope, *, result: bool) -> list[Named]:
    if (columns := starred(item, scope)) is not None:
        return columns
    value = compile(item.unalias(), scope)
    of_union = value.column is not None or item.unalias().meta.get("void")  # which gives it its type
    if value.type == t.NULL and result:
        value = cast(value, t.STRING)
    if value.type == t.NULL and not of_union:
        raise scope.error("an output column has no type; write CAST(NULL AS ...)", item)
    if not (t.is_nested(value.type) or t.name(value.type) in t.NAMES or t.is_decimal(value.type)):
        raise scope.error(
            f"{value.excerpt} cannot be selected: {t.name(value.type)} is not the type of a column", item
        )
    name = item.alias or (item.name if isinstance(item, exp.Column) else "")
    if not name:
        raise scope.error(f"the column {value.excerpt} has no name; write {written(item)} AS name", item)
    return [(name, value)]


def starred(item: exp.Expr, scope: Scope) -> list[Named] | None:
    """The columns that * or input.* stands for; None for any other item."""
    if isinstance(item, exp.Star):
        return _everything(item, scope)
    if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        return _all_of(item, scope)
    return None


def _columns(scan: Scan) -> list[Named]:
    return [(f.name, scan.column(f)) for f in scan.table.schema]


def _all_of(item: exp.Column, scope: Scope) -> list[Named]:
    """Expand a.*: all columns of one input."""
    scan = scope.visible.get(item.table.lower())
    if scan is None:
        why = scope.hidden.get(item.table.lower())
        raise scope.error(
            why or f"{item.table} is not an input of this query{nearest(item.table, scope.names())}", item
        )
    return _but(item.this, _columns(scan), Scope(scope.sql, {item.table.lower(): scan}))


def _everything(item: exp.Star, scope: Scope) -> list[Named]:
    """Expand *: USING columns first and once, then the columns of every input in the order of FROM."""
    merged = [(_spelled(name, scope), value) for name, value in scope.merged.items()]
    plain = [c for scan in scope.visible.values() for c in _columns(scan) if c[0].lower() not in scope.merged]
    return _but(item, merged + plain, scope)


def _but(star: exp.Expr, columns: list[Named], scope: Scope) -> list[Named]:
    """Return the columns of a star without those of its EXCEPT, each of which must exist."""
    less = set()
    for name in star.args.get("except_") or []:
        value = compile(name, scope)
        if value.sql not in [v.sql for _, v in columns]:
            raise scope.error(f"EXCEPT takes names of columns, not {value.sql}", name)
        less.add(value.sql)
    found = [(name, value) for name, value in columns if value.sql not in less]
    if not found:
        raise scope.error("EXCEPT leaves no column", star)
    return found


def _spelled(name: str, scope: Scope) -> str:
    every = (f.name for s in scope.visible.values() for f in s.table.schema)
    return str(next(n for n in every if n.lower() == name))
