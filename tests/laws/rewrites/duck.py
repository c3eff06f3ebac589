"""Says in DuckDB's words what rewrites of time and lists write: $tumble, $hop, $session_start, LATERAL VIEW."""

from bisect import bisect_right
from collections import Counter

import duckdb
import pyarrow as pa
from sqlglot import exp

from joinlib.sql import Table
from joinlib.sql.blocks import as_text, blocks
from joinlib.sql.rewrite.block import Block

Bag = Counter[tuple[object, ...]]


def answer(sql: str, tables: dict[str, pa.Table]) -> Bag:
    """The rows of a text in DuckDB's dialect."""
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    for name, kind in (("session_start", 0), ("session_end", 1)):
        con.create_function(
            name, _session(kind), ["BIGINT[]", "BIGINT", "BIGINT"], "BIGINT", null_handling="special"
        )
    for name, table in tables.items():
        con.register(name, table)
    return Counter(tuple(map(_hashable, row)) for row in con.execute(sql).fetchall())


def _hashable(value: object) -> object:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def rewritten(sql: str, tables: dict[str, pa.Table], time: str = "ts") -> str:
    """The blocks of a text as one text in DuckDB's dialect."""
    known = {n: Table(n, t.schema, time if time in t.schema.names else None) for n, t in tables.items()}
    return as_duckdb(blocks(sql, known))


def as_duckdb(parts: tuple[Block, ...]) -> str:
    """The blocks as one text in DuckDB's dialect."""
    for part in parts:
        for node in list(part.query.find_all(exp.Window)):
            if isinstance(node.this, exp.Filter) and node.this.this.name == "last_value":
                node.this.this.set("this", "list")
                node.replace(exp.Anonymous(this="list_last", expressions=[node.copy()]))
            elif node.this.name in ("$session_start", "$session_end"):
                node.replace(_session_of(node))
        for node in list(part.query.find_all(exp.Anonymous)):
            if node.name in _CALLS:
                node.replace(
                    exp.maybe_parse(
                        _CALLS[node.name](*(_text(e) for e in node.expressions)), dialect="duckdb"
                    )
                )
        for select in part.query.find_all(exp.Select):
            _laterals(select)
    return as_text(parts, "duckdb")


def _text(node: exp.Expr) -> str:
    return node.sql(dialect="duckdb")


def _floor(at: str, size: str, offset: str) -> str:
    micros = f"epoch_us({at})"
    return f"({micros} - ((({micros} - ({offset})) % {size}) + {size}) % {size})"


def _tumble(at: str, size: str, offset: str) -> str:
    return f"make_timestamp({_floor(at, size, offset)})"


def _hop(at: str, size: str, slide: str, offset: str) -> str:
    last = _floor(at, slide, offset)
    every = f"list_transform(range(0, {size} + {slide}, {slide}), i -> {last} - i)"
    return f"list_transform(list_filter({every}, s -> s + {size} > epoch_us({at})), s -> make_timestamp(s))"


def _cumulate(at: str, size: str, step: str, offset: str) -> str:
    start = _floor(at, size, offset)
    every = f"list_transform(range({step}, {size} + 1, {step}), i -> {start} + i)"
    return f"list_transform(list_filter({every}, e -> e > epoch_us({at})), e -> make_timestamp(e))"


_CALLS = {"$tumble": _tumble, "$hop": _hop, "$cumulate": _cumulate}


def _laterals(select: exp.Select) -> None:
    for lateral in select.args.get("laterals") or []:
        value, alias = _text(lateral.this.expressions[0]), lateral.args["alias"]
        names = [c.name for c in alias.columns]
        made = {"posexplode": f"generate_subscripts({value}, 1) - 1, unnest({value})"}.get(
            lateral.this.name, f"unnest({value})"
        )
        side = "LEFT" if lateral.args.get("outer") else "INNER"
        columns = ", ".join(f'"{n}"' for n in names)
        text = f'SELECT 1 FROM t {side} JOIN LATERAL (SELECT {made}) AS "{alias.name}"({columns}) ON TRUE'
        select.append("joins", exp.maybe_parse(text, dialect="duckdb").args["joins"][0])
    select.set("laterals", None)


def _session_of(window: exp.Window) -> exp.Expr:
    at, gap = window.this.expressions
    assert gap.unit.name == "MICROSECOND"
    by = ", ".join(map(_text, window.args.get("partition_by") or []))
    over = f"OVER (PARTITION BY {by})" if by else "OVER ()"
    name = window.this.name.removeprefix("$")
    text = (
        f"make_timestamp({name}(list(epoch_us({_text(at)})) {over}, epoch_us({_text(at)}), {gap.this.name}))"
    )
    return exp.maybe_parse(text, dialect="duckdb")


def _session(end: int):
    def found(times: list[int | None], at: int | None, gap: int) -> int | None:
        if at is None:
            return None
        known = sorted(t for t in times if t is not None)
        first = last = bisect_right(known, at) - 1
        while first and known[first] - known[first - 1] <= gap:
            first -= 1
        while last + 1 < len(known) and known[last + 1] - known[last] <= gap:
            last += 1
        return known[last] + gap if end else known[first]

    return found
