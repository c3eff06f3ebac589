"""Windows that have a name: WINDOW w AS (PARTITION BY k), v AS (w ORDER BY x).

Law: the same rows: what is not written at a window is that of the one it names.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.scope import nearest

if TYPE_CHECKING:
    from joinlib.sql.rewrite.names import Names


def name_windows(select: exp.Select, names: "Names") -> None:
    """Write the windows of a WINDOW clause where they are used: not in subqueries, which have their own."""
    found = {w.name.lower(): w for w in select.args.get("windows") or []}
    select.set("windows", None)
    for window in list(select.find_all(exp.Window)):
        if window.find_ancestor(exp.Select) is select:
            _write_window(window, found, names)


def _write_window(
    window: exp.Window, known: Mapping[str, exp.Window], names: "Names", path: tuple[str, ...] = ()
) -> None:
    name = window.args.get("alias")
    if name is None:
        return
    if name.name.lower() not in known:
        raise names.error(f"there is no WINDOW {name.name}{nearest(name.name, known)}", window)
    if name.name.lower() in path:
        raise names.error(
            f"the WINDOW {name.name} is written by itself: {' by '.join((*path, name.name))}", window
        )
    base = known[name.name.lower()].copy()
    _write_window(base, known, names, (*path, name.name.lower()))
    window.set("alias", None)
    for part in ("partition_by", "order", "spec"):
        if window.args.get(part) or not base.args.get(part):
            continue
        given = base.args[part]
        window.set(part, [g.copy() for g in given] if isinstance(given, list) else given.copy())


def no_nested(select: exp.Select, names: "Names") -> None:
    """Refuse aggregates of window functions, which SQL computes after them."""
    for part in trees.parts_of(select):
        for call in trees.aggregates(part):
            if trees.windows(call):
                message = (
                    "an aggregate of a window function: write it around a derived table that computes that"
                )
                raise names.error(message, call)
