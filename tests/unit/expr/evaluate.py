"""Text to values, for tests: one expression over the columns of a table named o."""

from typing import Any

import pyarrow as pa
from sqlglot import exp

from joinlib.expr import Expr
from joinlib.sql.compile import compile
from joinlib.sql.graph import Scan, Table
from joinlib.sql.parse import parse
from joinlib.sql.scope import Scope


def expression(text: str, schema: pa.Schema) -> Expr:
    """The expression that a text means."""
    sql = f"SELECT {text} AS r FROM o"
    value: exp.Expr = parse(sql).expressions[0].unalias()
    return compile(value, Scope(sql, {"o": Scan("o", Table("o", schema, None))}))


def values(text: str, table: pa.Table) -> list[Any]:
    """Its value for every row."""
    found = expression(text, table.schema)
    column = found.evaluate(lambda name: table[name.removeprefix("o.")], table.num_rows)
    assert column.type == found.type
    return list(column.to_pylist())
