"""Writes the windows that are called as functions by their starts and ends.

    SELECT window.start, count(*) FROM t GROUP BY window(at, '10 minutes')                 Spark
    SELECT TUMBLE_START(at, INTERVAL 10 MINUTES), count(*) FROM t GROUP BY TUMBLE(at, INTERVAL 10 MINUTES)    Flink
    SELECT $tumble(at, ...) AS start, count(*) FROM t WHERE at IS NOT NULL GROUP BY $tumble(at, ...)

Windows that overlap expand each row by LATERAL VIEW. Sessions become the calls $session_start and $session_end, which
`sessions` makes window functions of. Law: Spark's and Flink's; rows without a time are in no window.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from joinlib.sql.rewrite.lengths import WindowText, micros, moved
from joinlib.sql.rewrite.window_tables import called, expanded
from joinlib.sql.supported import written

_SPARK = ("window", "session_window")
_FLINK = ("tumble", "hop", "session")
_PARTS = ("", "_start", "_end", "_rowtime")
NAMES = {*_SPARK, *(name + part for name in _FLINK for part in _PARTS)}


@dataclass(frozen=True)
class _CalledWindow:
    """The window that a call asks for; its start and end are columns or computed of them."""

    time: exp.Expr
    start: exp.Expr
    end: exp.Expr
    expand: exp.Anonymous | None = None  # the starts of all windows, which LATERAL VIEW `alias` gives
    alias: str = ""

    @property
    def both(self) -> exp.Expr:
        pairs = [exp.Literal.string("start"), self.start.copy(), exp.Literal.string("end"), self.end.copy()]
        return exp.Anonymous(this="named_struct", expressions=pairs)


def window_calls(select: exp.Select, text: WindowText) -> exp.Select:
    """Rewrite the calls of one SELECT, without its subqueries, in place; return it."""
    calls = [n for n in _own(select) if _name(n) in NAMES]
    if not calls:
        return select
    made: dict[str, _CalledWindow] = {}
    for call in calls:
        made.setdefault(_key(call), _window(call, text, len(made)))
    default = {_name(c): made[_key(c)] for c in calls if _name(c) in _SPARK}
    for column in [n for n in _own(select) if isinstance(n, exp.Column) and _is_default(n, default, select)]:
        _replace(column, default[column.parts[0].name.lower()], [p.name for p in column.parts[1:]], text)
    for call in calls:
        dot = call.parent if isinstance(call.parent, exp.Dot) else None
        part = _name(call).rpartition("_")[2] if _name(call) not in (*_SPARK, *_FLINK) else ""
        fields = [dot.expression.name] if dot is not None else [part] if part else []
        _replace(dot or call, made[_key(call)], fields, text)
    for window in made.values():
        if window.expand is not None:
            expanded(select, window.expand, window.alias, "start")
        else:
            _with_time(select, window.time)
    return select


def _own(select: exp.Select) -> Iterator[exp.Expr]:
    """The nodes of a SELECT outside its subqueries."""
    todo: list[exp.Expr] = list(select.iter_expressions())
    while todo:
        node = todo.pop(0)
        yield node
        if not isinstance(node, exp.Select | exp.SetOperation):
            todo = list(node.iter_expressions()) + todo


def _name(node: exp.Expr) -> str:
    return str(node.name).lower() if isinstance(node, exp.Anonymous) else ""


def _key(call: exp.Expr) -> str:
    """What is equal for calls that mean the same window."""
    name = _name(call)
    kind = name if name in _SPARK else name.partition("_")[0]
    return f"{kind} {[e.sql(dialect='spark') for e in call.expressions]}"


def _window(call: exp.Expr, text: WindowText, number: int) -> _CalledWindow:
    name, arguments = _name(call), call.expressions
    kind = name if name in _SPARK else name.partition("_")[0]
    least, most = {"window": (2, 4), "hop": (3, 4), "tumble": (2, 3)}.get(kind, (2, 2))
    if not least <= len(arguments) <= most:
        text.refuse(
            f"{name} takes a time and lengths, {least} to {most} arguments, not {len(arguments)}", call
        )
    time, *rest = arguments
    if kind in ("session_window", "session"):
        return _session(time, text.length(rest[0]))
    lengths = [text.length(r) if at < 2 else text.length(r, -(1 << 62)) for at, r in enumerate(rest)]
    if kind == "tumble":
        size = slide = lengths[0]
        offset = text.length(rest[1], -(1 << 62)) if len(rest) > 1 else 0
    else:
        size, slide = lengths[0], lengths[1] if len(lengths) > 1 else lengths[0]
        offset = lengths[2] if len(lengths) > 2 else 0
    if kind == "hop":
        size, slide = slide, size
    if kind == "window" and slide > size:
        text.refuse(
            "the slide of a window is at most its length: times between two windows would be in none", call
        )
    if size == slide:
        start: exp.Expr = called("$tumble", time.copy(), size, offset)
        return _CalledWindow(time, start, moved(start.copy(), size))
    alias = f"$window{number}"
    start = exp.column("start", alias, quoted=True)
    starts = called("$hop", time.copy(), size, slide, offset)
    return _CalledWindow(time, start, moved(start.copy(), size), starts, alias)


def _session(time: exp.Expr, gap: int) -> _CalledWindow:
    """Return a session's window. Times exactly one gap apart are in one session, in Flink as in Spark."""
    start, end = (
        exp.Anonymous(this=f"$session_{which}", expressions=[time.copy(), micros(gap)])
        for which in ("start", "end")
    )
    return _CalledWindow(time, start, end)


def _is_default(column: exp.Column, default: dict[str, _CalledWindow], select: exp.Select) -> bool:
    """Whether a name is that of the column that window(...) makes."""
    first = column.parts[0]
    if not isinstance(first, exp.Identifier) or first.name.lower() not in default or len(column.parts) > 2:
        return False
    sources = [select.args["from_"].this] if select.args.get("from_") else []
    sources += [j.this for j in select.args.get("joins") or []]
    return all(s.alias_or_name.lower() != first.name.lower() for s in sources)


def _replace(node: exp.Expr, window: _CalledWindow, fields: list[str], text: WindowText) -> None:
    part = fields[0].lower() if fields else ""
    values = {"start": window.start, "end": window.end, "rowtime": moved(window.end.copy(), -1_000)}
    grouped = isinstance(node.parent, exp.Group | exp.Tuple | exp.Ordered | exp.Rollup | exp.Cube)
    is_item = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star) and is_item:
        items = [exp.alias_(values[p].copy(), p) for p in ("start", "end")]
        select = node.parent
        assert select is not None
        at = next(i for i, item in enumerate(select.expressions) if item is node)
        select.set("expressions", [*select.expressions[:at], *items, *select.expressions[at + 1 :]])
        return
    if part and part not in values:
        text.refuse(f"{written(node)}: a window has the fields start and end", node)
    new = values[part] if part else window.start if grouped else window.both
    new = new.copy()
    if (start := min((n.meta["start"] for n in node.walk() if "start" in n.meta), default=None)) is not None:
        new.meta["start"] = start
    if not part and isinstance(node.parent, exp.Group) and _ends_apart(window):
        node.parent.append("expressions", window.end.copy())
    name = part or (_name(node) if isinstance(node, exp.Anonymous) else node.name)
    node.replace(exp.alias_(new, name) if is_item else new)


def _ends_apart(window: _CalledWindow) -> bool:
    """Whether the end of a window does not follow from its start: that of a session."""
    return not {n.sql() for n in window.start.find_all(exp.Column)} or _name(window.start) == "$session_start"


def _with_time(select: exp.Select, time: exp.Expr) -> None:
    known = exp.Not(this=exp.Is(this=time.copy(), expression=exp.Null()))
    where = select.args.get("where")
    guarded = (
        exp.Paren(this=where.this)
        if where is not None and isinstance(where.this, exp.Or)
        else where and where.this
    )
    select.set(
        "where", exp.Where(this=exp.And(this=guarded, expression=known) if guarded is not None else known)
    )
