"""What cannot be run? Law: refused at its place, with what to write instead."""

from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.sql.parse import place

_CLAUSES = {
    "with_": "WITH is not supported; name the inputs in FROM",
    "order": "ORDER BY has no meaning for a stream: results come out as they are found; sort the output",
    "limit": "LIMIT has no meaning for a stream; filter the output",
    "offset": "OFFSET has no meaning for a stream",
    "sort": "SORT BY has no meaning for a stream",
    "cluster": "CLUSTER BY has no meaning for a stream",
    "distribute": "DISTRIBUTE BY has no meaning for a stream",
    "windows": "WINDOW is not supported",
    "qualify": "QUALIFY is not supported",
    "laterals": "LATERAL is not supported",
    "into": "SELECT INTO is not supported; outputs are named in the spec",
    "pivots": "PIVOT is not supported",
    "match": "MATCH_RECOGNIZE is not supported",
}
_TABLE = {
    "sample": "TABLESAMPLE is not supported",
    "pivots": "PIVOT is not supported",
    "when": "time travel is not supported",
    "version": "time travel is not supported",
}


def check_select(sql: str, select: exp.Select) -> None:
    """Raise for the first clause that is not supported."""
    for name, message in _CLAUSES.items():
        part = select.args.get(name)
        if part:
            at = part[0] if isinstance(part, list) else part
            raise SqlError(message, *place(sql, at if isinstance(at, exp.Expr) else select))
    for table in select.find_all(exp.Table):
        for name, message in _TABLE.items():
            if table.args.get(name):
                raise SqlError(message, *place(sql, table))


def check_join(sql: str, join: exp.Join) -> None:
    """Raise for a kind of join that is not supported."""
    method, kind = (join.method or "").upper(), join.kind.upper()
    where = place(sql, join.this)
    if method == "NATURAL":
        raise SqlError(
            "NATURAL JOIN is not supported, its keys change with the schema; write USING (...)", *where
        )
    if method:
        raise SqlError(f"{method} JOIN is not supported", *where)
    if kind not in ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI"):
        raise SqlError(f"{kind} JOIN is not supported", *where)
    if kind in ("SEMI", "ANTI") and join.side.upper() not in ("", "LEFT"):
        raise SqlError(f"write LEFT {kind} JOIN, with the inputs exchanged", *where)
    conditioned = join.args.get("on") is not None or join.args.get("using")
    if not conditioned and (join.side or kind in ("SEMI", "ANTI")):
        raise SqlError("this join has no ON: outer, semi and anti joins need an equality", *where)


def check_subquery(sql: str, query: exp.Select) -> None:
    """Raise unless EXISTS or IN holds a plain SELECT."""
    check_select(sql, query)
    for name in ("group", "having"):
        if part := query.args.get(name):
            raise SqlError(f"{name.upper()} in a subquery is not supported", *place(sql, part))
    for join in query.args.get("joins") or []:
        raise SqlError("a subquery reads one input; its joins are not supported", *place(sql, join.this))
