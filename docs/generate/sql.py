"""docs/reference/sql.md: what a query may hold.

Results and refusals on the page are those of the code: each example is computed, each query that is refused
is planned, and the page shows what came of it.
"""

from collections.abc import Iterator
from pathlib import Path

from sqlglot import exp

from docs.generate.markdown import code, page, table
from docs.generate.sql_calls import CALLS
from docs.generate.sql_examples import AGGREGATED, HIGHER, OPERATORS, REFUSED
from joinlib.errors import SpecError, SqlError
from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.cast import cast, castable
from joinlib.expr.functions import AGGREGATES, FUNCTIONS, VOLATILE
from joinlib.plan import Pipeline, pipeline_of
from joinlib.spec import parse
from joinlib.spec.ddl import SIMPLE, SYNONYMS
from joinlib.sql.calls import SUPPORTED
from joinlib.sql.compile import compile
from joinlib.sql.parse import parse as syntax_of
from joinlib.sql.scope import Scope
from joinlib.sql.supported import refusals

_SPEC = """\
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: example}
spec:
  sql: SELECT o.order_id, p.amount FROM orders o JOIN payments p ON o.order_id = p.order_id
  inputs:
    orders:
      schema: order_id BIGINT NOT NULL, customer_id BIGINT, price DECIMAL(10, 2), city STRING, at TIMESTAMP
      eventTime: {column: at, delay: 10s}
      files: {path: data/orders}
    payments:
      schema: order_id BIGINT NOT NULL, amount DECIMAL(10, 2), method STRING, at TIMESTAMP
      eventTime: {column: at, delay: 10s}
      files: {path: data/payments}
    shipments:
      schema: order_id BIGINT NOT NULL, carrier STRING, at TIMESTAMP
      eventTime: {column: at, delay: 10s}
      files: {path: data/shipments}
    customers:
      schema: id BIGINT, name STRING, since TIMESTAMP
      role: table
      files: {path: data/customers}
  output:
    files: {path: out}
  checkpoint: {path: checkpoint}
"""
_CHANGING = _SPEC.replace(
    "  output:\n    files: {path: out}\n", "  output: {mode: changelog, files: {path: out}}\n"
)
_HEAD = Path(__file__).with_name("sql.md.in")


def made() -> str:
    """The page."""
    given = _HEAD.read_text(encoding="utf-8").replace("SPEC\n", _SPEC).replace("CHANGING\n", _CHANGING)
    parts = [given, *_types(), *_operators(), *_functions(), *_aggregates(), *_casts(), *_refusals()]
    return page(line for part in parts for line in part.split("\n"))


def planned(sql: str) -> Pipeline:
    """How the query is run over the inputs of the page. Raises SqlError."""
    head, _, rest = _SPEC.partition("  sql: ")
    text = f"{head}  sql: |\n    " + sql.replace("\n", "\n    ") + "\n" + rest.partition("\n")[2]
    return pipeline_of(parse(text, "example", Path()))


def expression(text: str) -> Expr:
    """The expression of a text that names no column."""
    sql = f"SELECT {text} AS r FROM o"
    node: exp.Expr = syntax_of(sql).expressions[0].unalias()
    return compile(node, Scope(sql, {}))


def _computed(text: str) -> tuple[str, str, str]:
    """The text, its value as text, and its type."""
    found = expression(text)
    (value,) = cast(found, t.STRING).evaluate(_no_column, 1).to_pylist()
    shown = "NULL" if value is None else value
    return code(text), code(shown) if shown else "(empty)", t.name(found.type)


def _no_column(name: str) -> object:
    raise KeyError(name)


def _types() -> Iterator[str]:
    yield "## Types\n\nColumns of inputs have these types, written as in Spark's DDL."
    names = [*SIMPLE, "DECIMAL(p, s)", "CHAR(n), VARCHAR(n)", "ARRAY<T>", "MAP<K, V>", "STRUCT<name: T, ...>"]
    also = {
        name: [word for word, means in SYNONYMS.items() if name.partition("(")[0] == means.partition("(")[0]]
        for name in names
    }
    yield from table(
        ("Type", "Also written", "Meaning"),
        [(code(n), ", ".join(map(code, also[n])), _TYPES[n]) for n in names],
    )
    yield (
        "A column may be `NOT NULL`. Nested columns can be read, tested by `IS NULL`, and come out; a field"
        " of a struct"
    )
    yield "is written `input.column.field`."
    yield ""
    yield (
        "A NULL of the result that nothing gives a type, as in `NULL AS x` or `max(NULL)`, is a STRING. Where another"
        " query"
    )
    yield "reads it from groups, a join or window functions, it needs a `CAST`."


_TYPES = {
    "BOOLEAN": "",
    "TINYINT": "8 bits",
    "SMALLINT": "16 bits",
    "INT": "32 bits",
    "BIGINT": "64 bits",
    "FLOAT": "32 bits",
    "DOUBLE": "64 bits",
    "DATE": "a day",
    "TIMESTAMP": "a moment, in microseconds",
    "TIMESTAMP_NTZ": "a date and a time of day without a zone",
    "STRING": "text in UTF-8, compared by its bytes",
    "BINARY": "bytes",
    "DECIMAL(p, s)": "p digits, at most 38, of which s are behind the point",
    "CHAR(n), VARCHAR(n)": "as STRING; the length is not checked",
    "ARRAY<T>": "",
    "MAP<K, V>": "",
    "STRUCT<name: T, ...>": "",
}


def _operators() -> Iterator[str]:
    yield "\n## Operators\n\nResults are computed by the engine when this page is made."
    yield from table(("Expression", "Result", "Type"), [_computed(text) for text in OPERATORS])


def _functions() -> Iterator[str]:
    known = {name for name in FUNCTIONS if not name.startswith("$")}  # others are those of rewrites
    missing, unknown = known - set(CALLS), set(CALLS) - known
    assert not missing and not unknown, f"docs/generate/sql_calls.py: add {missing}, remove {unknown}"
    yield "\n## Functions\n\nNames are not sensitive to case."
    rows = [(code(name), _arguments(name), *_computed(CALLS[name])) for name in sorted(known)]
    yield from table(("Function", "Arguments", "Example", "Result", "Type"), rows)
    yield "\nWith functions of their own, or with a unit of time:\n"
    yield from table(("Expression", "Result", "Type"), [_computed(text) for text in HIGHER])


def _arguments(name: str) -> str:
    least, most = FUNCTIONS[name].least, FUNCTIONS[name].most
    if least == most:
        return str(least)
    return f"{least} or more" if most > 10 else f"{least} to {most}"


def _aggregates() -> Iterator[str]:
    yield "\n## Aggregates\n\nThey stand in the select list and in `HAVING`. NULL is left out, except by `count(*)`."
    rows = []
    for text, meaning in AGGREGATED.items():
        column = planned(_grouped(text)).schema.field("r")
        rows.append((code(text), t.name(column.type), meaning))
    yield from table(("Aggregate", "Type here", "Meaning"), rows)
    yield (
        f"Only with an order, as in `first(x ORDER BY t)`: {', '.join(map(code, sorted(set(AGGREGATES) - set(SUPPORTED))))}."
        " Not supported: `DISTINCT` in those that order values, such as `median`."
    )


def _grouped(text: str) -> str:
    source = "orders o JOIN payments p ON o.order_id = p.order_id"
    return f"SELECT o.city, {text} AS r FROM {source} GROUP BY o.city"


def _casts() -> Iterator[str]:
    kinds = {name: kind for name, kind in SIMPLE.items() if name != "BINARY"} | {
        "DECIMAL": t.as_decimal(t.BIGINT)
    }
    yield (
        "\n## Casts\n\n`CAST(x AS T)` raises an error where the value has no place in `T`; `TRY_CAST` gives"
        " NULL."
    )
    yield "Rows are sources, columns are targets."
    rows = [
        (code(name), *("yes" if source == kind or castable(source, kind) else "" for kind in kinds.values()))
        for name, source in kinds.items()
    ]
    yield from table(("From", *kinds), rows)


def refusal(sql: str) -> str:
    """What is said of a query that cannot be run."""
    try:
        planned(sql)
    except SqlError as e:
        return e.message
    except SpecError as e:
        return str(e)
    raise AssertionError(f"is not refused: {sql}")


def _refusals() -> Iterator[str]:
    yield "\n## What is not supported\n"
    yield (
        "A query is refused at the line and column of the part that cannot be run; nothing is ignored. The"
        " messages"
    )
    yield "say why and what to write instead."
    shown: set[str] = set()
    for title, texts in REFUSED.items():
        shown.update(map(refusal, texts))
        yield f"\n### {title}\n"
        yield from table(
            ("Query", "Message"), [(code(" ".join(sql.split())), _escaped(refusal(sql))) for sql in texts]
        )
    yield "\n### Also refused\n"
    yield from (f"- {_escaped(text)}" for text in refusals() if not any(text in other for other in shown))
    yield "\n### Functions whose value changes\n"
    yield "A batch that is run again after a failure must give the same rows, so these functions are refused (`now()` and"
    yield "`current_timestamp` stand only in [comparisons](#rows-of-the-last-hour) of `WHERE`): "
    yield ", ".join(code(name) for name in sorted(VOLATILE)) + "."


def _escaped(text: str) -> str:
    return text.replace("*", r"\*").replace("<", "&lt;").replace("_", r"\_")
