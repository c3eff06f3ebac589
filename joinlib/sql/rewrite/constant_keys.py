"""Drops constants from GROUP BY.

    SELECT 'a' AS c, k, count(*) FROM t GROUP BY c, k        SELECT 'a' AS c, k, count(*) FROM t GROUP BY k
    SELECT 2 AS c, count(*) FROM t GROUP BY c                SELECT 2 AS c, count(*) FROM t HAVING count(*) > 0

Law: the same rows. A constant tells no groups apart, and a number in GROUP BY would count columns.
"""

from typing import TYPE_CHECKING

from sqlglot import exp

from joinlib.sql.rewrite import trees

if TYPE_CHECKING:
    from joinlib.sql.rewrite.names import Names


def without_constants(select: exp.Select, names: "Names") -> None:
    """Drop constant keys of GROUP BY, which a number would make a position.

    Of constants alone there is one group if there are rows: GROUP BY 'a' is HAVING count(*) > 0.
    """
    group = select.args.get("group")
    if group is None:
        return
    sets = [n for key in ("rollup", "cube", "grouping_sets") for n in group.args.get(key) or []]
    sets += [k for k in group.expressions if isinstance(k, exp.Rollup | exp.Cube | exp.GroupingSets)]
    keys = [k for k in group.expressions if not any(k is n for n in sets)]
    constant = [k for k in keys if is_constant(k)]
    in_sets = [e for n in sets for e in n.find_all(exp.Literal, exp.Null, exp.Boolean) if _is_key(e)]
    if in_sets or (constant and any(not n.expressions for n in sets)):
        raise names.error(
            "a constant is no key of ROLLUP, CUBE or GROUPING SETS; leave it out", [*in_sets, *constant][0]
        )
    if not constant:
        return
    left = [k for k in group.expressions if not any(k is c for c in constant)]
    group.set("expressions", left)
    if left or sets:
        return
    select.set("group", None)
    some = exp.GT(this=trees.call("count", exp.Star()), expression=trees.number(0))
    having = select.args.get("having")
    if having is None:
        select.set("having", exp.Having(this=some))
    else:
        having.set("this", exp.And(this=exp.Paren(this=having.this), expression=some))


def is_constant(node: exp.Expr) -> bool:
    return not isinstance(node, exp.Tuple) and node.find(exp.Column, exp.Select, exp.Anonymous) is None


def _is_key(node: exp.Expr) -> bool:
    """Whether a constant is a key by itself, not a part of one."""
    above = node.parent
    while isinstance(above, exp.Paren | exp.Tuple | exp.Neg):
        above = above.parent
    return isinstance(above, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Group)
