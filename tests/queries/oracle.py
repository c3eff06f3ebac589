"""What DuckDB answers: to the same text, or for windows of time to one that is written for it (`nexmark/duckdb`)."""

from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa
import sqlglot

from tests.queries.corpus import HERE, Query


@cache
def duckdb_text(query: Query) -> str:
    """The query in DuckDB's words."""
    own = HERE / query.benchmark / "duckdb" / f"{query.name}.sql"
    if own.exists():
        return Path(own).read_text()
    return sqlglot.transpile(query.text, read="spark", write="duckdb")[0]


def answer(sql: str, tables: dict[str, pa.Table]) -> pa.Table:
    """DuckDB's answer over these tables."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(sql).to_arrow_table()
