"""Writes the table functions of windows as derived tables.

    FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(at), INTERVAL 10 MINUTES))
    FROM (SELECT bids.*, $tumble(at, ...) AS window_start, ... AS window_end, ... AS window_time FROM bids
          WHERE at IS NOT NULL) bids

Law: Flink's. A row is in every window that holds its time, window_time is the last millisecond of the window. HOP and
CUMULATE expand a row to its windows, SESSION is a window function. Rows without a time are in no window.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from joinlib.sql.grammar import PARTITIONED
from joinlib.sql.rewrite.lengths import WindowText, micros, moved
from joinlib.sql.supported import written

_ARGUMENTS = {
    "TUMBLE": ("SIZE", "OFFSET"), "HOP": ("SLIDE", "SIZE", "OFFSET"), "CUMULATE": ("STEP", "SIZE", "OFFSET"),
    "SESSION": ("GAP",),
}  # fmt: skip
_LAST = 1_000  # window_time is so many µs before the end


@dataclass(frozen=True)
class _Asked:
    """A call, with its arguments by name."""

    source: exp.Expr
    alias: str
    time: exp.Column
    by: tuple[exp.Expr, ...]
    lengths: dict[str, int]


def window_table(node: exp.Expr, text: WindowText) -> exp.Subquery | None:
    """Return the derived table that a table function stands for; None for anything else in FROM.

    Raises:
        SqlError: if its arguments are not those of the function.
    """
    call = node.this if isinstance(node, exp.Table) else None
    if call is not None and _is(call, "TABLE") and len(call.expressions) == 1:
        call = call.expressions[0]
    if not isinstance(call, exp.Anonymous) or str(call.name).upper() not in _ARGUMENTS:
        return None
    name = str(call.name).upper()
    asked = _asked(name, call, text)
    select = _WRITE[name](asked)
    if select.args.get("where") is None:
        is_null = exp.Is(this=asked.time.copy(), expression=exp.Null())
        select.set("where", exp.Where(this=exp.Not(this=is_null)))
    given = node.args.get("alias")
    alias = given.copy() if given is not None else exp.TableAlias(this=exp.to_identifier(asked.alias))
    found = exp.Subquery(this=select, alias=alias)
    if (start := _start(call)) is not None:
        found.meta["start"] = start
    return found


def _asked(name: str, call: exp.Anonymous, text: WindowText) -> _Asked:
    order = ("DATA", "TIMECOL", *_ARGUMENTS[name])
    given: dict[str, exp.Expr] = {}
    for at, one in enumerate(call.expressions):
        named = isinstance(one, exp.Kwarg)
        word = str(one.this.name).upper() if named else order[at] if at < len(order) else ""
        if word not in order:
            text.refuse(f"{name} takes {_usage(name)}", one)
        given[word] = one.expression if named else one
    if missing := [w for w in order if w not in given and w != "OFFSET"]:
        text.refuse(f"{name} takes {_usage(name)}; {missing[0]} is missing", call)
    source, by = given["DATA"], tuple[exp.Expr, ...]()
    if _is(source, PARTITIONED):
        source, key = source.expressions
        by = tuple(key.expressions) if isinstance(key, exp.Tuple) else (key.unnest(),)
    lengths = {w: text.length(given[w]) for w in order[2:] if w in given and w != "OFFSET"}
    lengths["OFFSET"] = text.length(given["OFFSET"], least=-(1 << 62)) if "OFFSET" in given else 0
    if name == "CUMULATE" and lengths["SIZE"] % lengths["STEP"]:
        text.refuse("the SIZE of CUMULATE is a multiple of its STEP", call)
    if by and name != "SESSION":
        text.refuse(f"{name} has no PARTITION BY: windows do not depend on keys; leave it out", by[0])
    table, alias = _source(source, text)
    return _Asked(table, alias, _time(given["TIMECOL"], alias, text), by, lengths)


def _usage(name: str) -> str:
    return f"({', '.join(('TABLE t', 'DESCRIPTOR(time)', *_ARGUMENTS[name][:-1], 'GAP' if name == 'SESSION' else '[OFFSET]'))})"


def _source(node: exp.Expr, text: WindowText) -> tuple[exp.Expr, str]:
    """Return what a window function reads, as it stands in FROM, and its alias."""
    node = node.unnest() if isinstance(node, exp.Paren) else node
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier) and len(node.parts) == 1:
        return exp.Table(this=node.this.copy()), node.name
    if isinstance(node, exp.Subquery | exp.Select):
        inner = node.this if isinstance(node, exp.Subquery) else node
        return exp.Subquery(this=inner.copy(), alias=exp.TableAlias(this=exp.to_identifier("data"))), "data"
    return text.refuse(
        f"a window is over a table, a view or a query in parentheses, not {written(node)}", node
    )


def _time(node: exp.Expr, alias: str, text: WindowText) -> exp.Column:
    column = node.expressions[0] if _is(node, "DESCRIPTOR") and len(node.expressions) == 1 else node
    if not isinstance(column, exp.Column):
        text.refuse(f"the time of a window is a column, as in DESCRIPTOR(at), not {written(node)}", node)
    return exp.Column(this=column.this.copy(), table=exp.to_identifier(alias, quoted=True))


def _select(asked: _Asked, start: exp.Expr, end: exp.Expr, last: exp.Expr) -> exp.Select:
    star = exp.Column(this=exp.Star(), table=exp.to_identifier(asked.alias, quoted=True))
    named = zip((start, end, last), ("window_start", "window_end", "window_time"), strict=True)
    items = [exp.alias_(value, name) for value, name in named]
    return exp.Select(expressions=[star, *items], from_=exp.From(this=asked.source))


def _tumble(asked: _Asked) -> exp.Select:
    size = asked.lengths["SIZE"]
    starts = [called("$tumble", asked.time.copy(), size, asked.lengths["OFFSET"]) for _ in range(3)]
    return _select(asked, starts[0], moved(starts[1], size), moved(starts[2], size - _LAST))


def _hop(asked: _Asked) -> exp.Select:
    size, slide, offset = (asked.lengths[w] for w in ("SIZE", "SLIDE", "OFFSET"))
    start = exp.column("start", "$window", quoted=True)
    select = _select(asked, start, moved(start.copy(), size), moved(start.copy(), size - _LAST))
    return expanded(select, called("$hop", asked.time.copy(), size, slide, offset), "$window", "start")


def _cumulate(asked: _Asked) -> exp.Select:
    size, step, offset = (asked.lengths[w] for w in ("SIZE", "STEP", "OFFSET"))
    end = exp.column("end", "$window", quoted=True)
    start = called("$tumble", asked.time.copy(), size, offset)
    select = _select(asked, start, end, moved(end.copy(), -_LAST))
    return expanded(select, called("$cumulate", asked.time.copy(), size, step, offset), "$window", "end")


def _session(asked: _Asked) -> exp.Select:
    gap = asked.lengths["GAP"]
    start, end, last = (
        session(f"$session_{which}", asked.time, gap, asked.by) for which in ("start", "end", "end")
    )
    return _select(asked, start, end, moved(last, -_LAST))


_WRITE: dict[str, Callable[[_Asked], exp.Select]] = {
    "TUMBLE": _tumble, "HOP": _hop, "CUMULATE": _cumulate, "SESSION": _session,
}  # fmt: skip


def called(name: str, time: exp.Expr, *lengths: int) -> exp.Anonymous:
    """Write a call over a time and lengths in µs."""
    numbers = [exp.Literal.number(n) if n >= 0 else exp.Neg(this=exp.Literal.number(-n)) for n in lengths]
    return exp.Anonymous(this=name, expressions=[time, *numbers])


def session(name: str, time: exp.Expr, gap: int, by: tuple[exp.Expr, ...]) -> exp.Window:
    """Write the start or the end of the session of a row: times at most `gap` µs apart are in one session."""
    order = exp.Order(expressions=[exp.Ordered(this=time.copy(), desc=False, nulls_first=True)])
    call = exp.Anonymous(this=name, expressions=[time.copy(), micros(gap)])
    return exp.Window(this=call, partition_by=[b.copy() for b in by], order=order, over="OVER")


def expanded(
    select: exp.Select, value: exp.Expr, alias: str, *columns: str, outer: bool = False
) -> exp.Select:
    """Add LATERAL VIEW [OUTER] explode(value) alias AS columns; return the query."""
    explode = exp.Anonymous(this="explode", expressions=[value])
    names = exp.TableAlias(
        this=exp.to_identifier(alias, quoted=True),
        columns=[exp.to_identifier(c, quoted=True) for c in columns],
    )
    select.append("laterals", exp.Lateral(this=explode, view=True, outer=outer, alias=names))
    return select


def _is(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.name).upper() == name.upper()


def _start(node: exp.Expr) -> int | None:
    starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
    return min(starts, default=None)
