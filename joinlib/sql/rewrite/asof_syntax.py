"""Writes as-of and temporal joins as plain joins with a mark, whose ON has all of their conditions.

    a ASOF JOIN b MATCH_CONDITION (a.at >= b.at) ON a.k = b.k     a JOIN b ON a.k = b.k AND a.at >= b.at, marked
    a JOIN b FOR SYSTEM_TIME AS OF a.at ON a.k = b.k              the same, with the event time of b

Tables that are only looked up have no versions: AS OF is left out there. `asof` gives the marked joins their meaning.
"""

from collections.abc import Collection, Mapping

from sqlglot import exp

from joinlib.sql.rewrite.lengths import WindowText

MARK = "asof"
LAST_OF_USING = "using"  # the last column of USING is the inequality >=
MATCH = "match"  # ON ends with the inequality
NOW = frozenset(("proctime", "now", "current_timestamp", "processing_time"))


def asof_syntax(
    select: exp.Select, text: WindowText, times: Mapping[str, str | None], lookups: Collection[str]
) -> exp.Select:
    """Rewrite the joins of one SELECT in place; return it.

    times: the event-time column of each input; lookups: names of inputs that are tables.

    Raises:
        SqlError: if it is no join that can be read so.
    """
    start = select.args.get("from_")
    if (
        start is not None
        and isinstance(start.this, exp.Table)
        and (version := start.this.args.get("version"))
    ):
        text.refuse(
            "AS OF follows the input of a JOIN, as of a time of the rows before (JOIN rates FOR SYSTEM_TIME AS OF o.at r ON"
            " ...): a stream is read from its beginning, and has no versions",
            version,
        )
    for join in select.args.get("joins") or []:
        if str(join.args.get("method") or "").upper() == "ASOF":
            _asof(join, text)
        elif isinstance(join.this, exp.Table) and join.this.args.get("version"):
            _versioned(join, text, times, {name.lower() for name in lookups})
    return select


def _asof(join: exp.Join, text: WindowText) -> None:
    if join.side.upper() not in ("", "LEFT") or join.kind.upper() not in ("", "INNER", "OUTER"):
        text.refuse(
            f"ASOF {join.side or join.kind} JOIN is not supported; write ASOF JOIN or ASOF LEFT JOIN",
            join.this,
        )
    join.set("method", None)
    match = join.args.get("match_condition")
    join.set("match_condition", None)
    join.meta[MARK] = MATCH if match is not None else "on"
    if match is not None:
        join.set("on", _and(join.args.get("on"), match.unnest()))
    elif join.args.get("using"):
        join.meta[MARK] = LAST_OF_USING
    elif not join.args.get("on"):
        text.refuse(
            "ASOF JOIN needs an inequality of times: write ON a.key = b.key AND a.at >= b.at", join.this
        )


def _versioned(join: exp.Join, text: WindowText, times: Mapping[str, str | None], lookups: set[str]) -> None:
    table, version = join.this, join.this.args["version"]
    table.set("version", None)
    if table.name.lower() in lookups:
        return
    moment = version.expression
    name = moment.name.lower() if isinstance(moment, exp.Column | exp.Anonymous) else ""
    alias = table.alias or table.name
    if version.args.get("kind") != "AS OF" or str(version.this).upper() not in ("TIMESTAMP", "SYSTEM_TIME"):
        text.refuse("write FOR SYSTEM_TIME AS OF and a time of the rows before", table)
    if isinstance(moment, exp.Anonymous) and name in NOW:
        text.refuse(
            f"a stream has no version as of the time of processing, which no run could repeat: give {table.name}"
            " role: table, or write AS OF an event time",
            table,
        )
    column = {n.lower(): c for n, c in times.items()}.get(table.name.lower())
    if column is None:
        text.refuse(
            f"{table.name} has no event time, which would say when a version begins; write ASOF JOIN", table
        )
    begins = exp.column(column, alias, quoted=True)
    join.meta[MARK] = MATCH
    join.set("on", _and(join.args.get("on"), exp.GTE(this=moment.copy(), expression=begins)))


def _and(on: exp.Expr | None, more: exp.Expr) -> exp.Expr:
    if on is None:
        return more
    return exp.And(this=exp.Paren(this=on) if isinstance(on, exp.Or) else on, expression=more)
