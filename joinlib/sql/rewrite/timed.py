"""The rewrites of time and lists that need names resolved: of one SELECT, whose sources have been rewritten."""

from sqlglot import exp

from joinlib.sql.rewrite.asof import asof
from joinlib.sql.rewrite.asof_syntax import MARK
from joinlib.sql.rewrite.expansions import expansions, is_expansion
from joinlib.sql.rewrite.names import Names
from joinlib.sql.rewrite.sessions import sessions
from joinlib.sql.rewrite.temporal import temporal


def timed(select: exp.Select, names: Names) -> exp.Select:
    """Rewrite a resolved SELECT in place; return it.

    After it LATERAL VIEW is in maps only: over one source, without joins, groups and windows.

    Raises:
        SqlError: at what cannot be run.
    """
    marked = [MARK in join.meta for join in select.args.get("joins") or []]
    expanding = [is_expansion(join.this) for join in select.args.get("joins") or []]
    if any(marked) and any(expanding) and marked.index(True) < expanding.index(True):
        asof(select, names)
        expansions(select, names)
    else:
        expansions(select, names)
        asof(select, names)
    return sessions(temporal(select, names), names)
