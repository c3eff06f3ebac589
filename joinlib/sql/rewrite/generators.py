"""Writes everything that makes rows of a list as one form, LATERAL VIEW or a lateral join of explode.

    SELECT id, explode(tags) AS tag FROM t        SELECT id, `$g0`.tag AS tag FROM t LATERAL VIEW explode(tags) `$g0` AS tag
    FROM t, UNNEST(t.tags) AS u (tag)             FROM t JOIN LATERAL explode(t.tags) u AS tag ON TRUE

Names: explode, posexplode, inline, and each with _outer; with more than one column explode takes structs apart.
WITH ORDINALITY is `posexplode` whose position the marker `ordinal` makes count from 1. Law: the same rows.
"""

from collections.abc import Mapping

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.lengths import WindowText
from joinlib.sql.supported import written

GENERATORS = ("explode", "posexplode", "inline")
NAMES = frozenset((*GENERATORS, *(f"{name}_outer" for name in GENERATORS)))
OTHER = {"unnest": "explode", "flatten": "explode"}  # names of other dialects, in FROM
_SELECTED = {"unnest": "explode"}  # and in a select list, where Spark's flatten is a function of lists
_DEFAULT = {"explode": ["col"], "posexplode": ["pos", "col"]}


def generators(select: exp.Select, text: WindowText) -> exp.Select:
    """Rewrite the generators of one SELECT, without its subqueries, in place; return it."""
    for join in select.args.get("joins") or []:
        _joined(join, text)
    for number, lateral in enumerate(select.args.get("laterals") or []):
        _view(lateral, number, text)
    _selected(select, text)
    return select


def _name(node: exp.Expr, other: Mapping[str, str] = OTHER) -> str:
    name = str(node.name).lower() if isinstance(node, exp.Anonymous) else ""
    return other.get(name, name)


def _makes_rows(node: exp.Expr) -> bool:
    """Whether an expression outside FROM is a generator."""
    return _name(node, _SELECTED) in NAMES


def _joined(join: exp.Join, text: WindowText) -> None:
    """Write UNNEST and LATERAL of a join as Lateral(explode(...))."""
    node = join.this
    outer = join.side.upper() == "LEFT"
    if isinstance(node, exp.Unnest):
        if len(node.expressions) != 1:
            text.refuse("UNNEST takes one list; write one UNNEST for each", node)
        value, offset = node.expressions[0], node.args.get("offset")
        ordinal = isinstance(offset, exp.Identifier) or bool(offset)
        name, columns = _called(node.args.get("alias"), "unnest")
        if isinstance(offset, exp.Identifier):
            columns.append(offset.name)
    elif isinstance(node, exp.Lateral) and is_or_unnest(node.this):
        inner = node.this
        if isinstance(inner, exp.Unnest):
            value, ordinal = inner.expressions[0], bool(inner.args.get("offset"))
        else:
            value, ordinal = _only(inner, text), bool(node.args.get("ordinality"))
            outer = outer or _name(inner).endswith("_outer")
        name, columns = _called(node.args.get("alias"), "unnest")
        if not isinstance(inner, exp.Unnest) and not ordinal and _name(inner).startswith("pos"):
            join.set("this", _lateral("posexplode", value, name, columns or ["pos", "col"], outer, node))
            _on_true(join, text)
            return
    else:
        return
    if ordinal:
        if len(columns) < 2:
            text.refuse("WITH ORDINALITY has two columns: write AS u (value, number)", node)
        lateral = _lateral("posexplode", value, name, [columns[-1], *columns[:-1]], outer, node)
        lateral.meta["ordinal"] = True
    else:
        lateral = _lateral("explode", value, name, columns or [name], outer, node)
    join.set("this", lateral)
    _on_true(join, text)


def is_or_unnest(node: exp.Expr) -> bool:
    return isinstance(node, exp.Unnest) or _name(node) in NAMES


def _on_true(join: exp.Join, text: WindowText) -> None:
    """Let the join be INNER ON TRUE: whether a row without elements stays, the lateral says."""
    on = join.args.get("on")
    if join.side.upper() in ("RIGHT", "FULL") or join.kind.upper() in ("SEMI", "ANTI"):
        text.refuse(
            f"{join.side or join.kind} JOIN of a list is not supported; write CROSS JOIN or LEFT JOIN",
            on or join.this,
        )
    if join.side and on is not None and not (isinstance(on, exp.Boolean) and on.this):
        text.refuse("LEFT JOIN of a list with a condition is not supported; write ON TRUE", on)
    join.set("side", None)
    join.set("kind", None)
    if on is None:
        join.set("on", exp.Boolean(this=True))


def _called(alias: exp.Expr | None, default: str) -> tuple[str, list[str]]:
    if alias is None:
        return default, []
    return (alias.name or default), [c.name for c in alias.args.get("columns") or []]


def _only(call: exp.Expr, text: WindowText) -> exp.Expr:
    if len(call.expressions) != 1:
        text.refuse(f"{call.name} takes one list, not {len(call.expressions)} arguments", call)
    return call.expressions[0]


def _lateral(
    name: str, value: exp.Expr, alias: str, columns: list[str], outer: bool, like: exp.Expr
) -> exp.Lateral:
    names = exp.TableAlias(
        this=exp.to_identifier(alias, quoted=True),
        columns=[exp.to_identifier(c, quoted=True) for c in columns],
    )
    made = exp.Lateral(
        this=exp.Anonymous(this=name, expressions=[value]), view=True, outer=outer, alias=names
    )
    if starts := [n.meta["start"] for n in like.walk() if "start" in n.meta]:
        made.this.meta["start"] = min(starts)
    return made


def _view(lateral: exp.Lateral, number: int, text: WindowText) -> None:
    """Check a LATERAL VIEW; write `_outer` as OUTER, and name its columns."""
    name = _name(lateral.this)
    if name not in NAMES:
        text.refuse(
            f"LATERAL VIEW takes one of {', '.join(sorted(NAMES))}, not {written(lateral.this)}", lateral.this
        )
    _only(lateral.this, text)
    plain = name.removesuffix("_outer")
    lateral.this.set("this", plain)
    if plain != name:
        lateral.set("outer", True)
    alias = lateral.args.get("alias")
    if alias is not None and not alias.name:
        alias.set("this", exp.to_identifier(f"$view{number}", quoted=True))
    if alias is None or not alias.args.get("columns"):
        if plain not in _DEFAULT:
            text.refuse(f"write the names of the columns: LATERAL VIEW {plain}(...) t AS a, b", lateral.this)
        name_ = alias.name if alias is not None else f"$view{number}"
        columns = [exp.to_identifier(c) for c in _DEFAULT[plain]]
        lateral.set("alias", exp.TableAlias(this=exp.to_identifier(name_, quoted=True), columns=columns))


def _selected(select: exp.Select, text: WindowText) -> None:
    """Write generators of the select list as LATERAL VIEW."""
    found = [i for i in select.expressions if _makes_rows(_unnamed(i))]
    for item in found:
        call = _unnamed(item)
        if select.args.get("having") or trees.is_grouped(select):
            text.refuse(
                f"{call.name} stands beside groups; to group the rows that it makes, write LATERAL VIEW"
                f" {call.name}(x) v AS y and group by y; to take lists of groups apart, write it in a query around"
                f" them: SELECT {call.name}(y) FROM (...)",
                call,
            )
        name = _name(call)
        plain = name.removesuffix("_outer")
        if isinstance(item, exp.Aliases):
            columns = [c.name for c in item.expressions]
        elif item.alias and plain != "posexplode":
            columns = [item.alias]
        elif plain in _DEFAULT:
            columns = _DEFAULT[plain]
        else:
            text.refuse(f"write the names of the columns: {plain}(...) AS (a, b)", call)
        alias = f"$g{len(select.args.get('laterals') or [])}"
        value = _only(call, text)
        new = [exp.alias_(exp.column(c, alias, quoted=True), c, quoted=True) for c in columns]
        at = select.expressions.index(item)
        select.set("expressions", [*select.expressions[:at], *new, *select.expressions[at + 1 :]])
        select.append("laterals", _lateral(plain, value, alias, columns, plain != name, call))
    clauses = [p for n in ("where", "group", "having", "qualify", "order") if (p := select.args.get(n))]
    clauses += [on for j in select.args.get("joins") or [] if (on := j.args.get("on"))]
    for part in (*select.expressions, *clauses):
        for node in part.find_all(exp.Anonymous):
            if _makes_rows(node) and node.find_ancestor(exp.Select) is select:
                text.refuse(
                    f"{node.name} makes rows: it stands alone in the select list, or in LATERAL VIEW", node
                )


def _unnamed(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias | exp.Aliases) else item
