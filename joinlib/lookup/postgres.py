"""Reads rows of a PostgreSQL table: all of them, or those of many keys by one query.

Arrow in, Arrow out (ADBC).

    check      do the columns fit what is declared, and how large is the table?
    read_all   one statement, so one snapshot of the table
    fetch      WHERE key = ANY($1), with a list of keys; JOIN unnest($1, $2) for keys of several columns
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson
import pyarrow as pa

from joinlib.postgres import PostgresConfig
from joinlib.postgres.connection import batches, connected, kept, patient, quoted, table_name
from joinlib.source.postgres.table import check_columns, conform, listed

_COPY = "adbc.postgresql.use_copy"
_ROW_BYTES = 24  # of a row without its columns


@dataclass(frozen=True)
class TableSize:
    """The server's estimate of the size of the columns that are read."""

    rows: int
    bytes: int


@dataclass(frozen=True)
class PostgresTable:
    """A table and the columns to read of it, with their declared types."""

    config: PostgresConfig
    schema: pa.Schema

    def check(self) -> TableSize:
        """Return the estimated size of the table.

        Raises:
            SpecError: if it does not have these columns with these types.
            NotReady: if the database cannot be reached in time.
        """
        return patient(self.config, self._check)

    def read_all(self) -> Iterator[pa.RecordBatch]:
        """Read every row. It is not retried, since the caller has consumed a part: the caller starts over."""
        with connected(self.config) as connection, connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0")
            cursor.execute(self._select())
            for batch in batches(cursor):
                yield self._fitted(batch)

    def fetch(self, columns: Sequence[str], keys: Sequence[pa.Array]) -> pa.RecordBatch:
        """Fetch all rows whose `columns` are one of these keys, none of which is NULL. One round trip.

        Raises:
            NotReady: if the database cannot be reached in time.
        """
        bound = pa.record_batch([_list(k) for k in keys], [f"k{i}" for i in range(len(keys))])
        sql = f"{self._select()} {_condition(columns, self.schema)}"

        def ask() -> pa.RecordBatch:
            with kept(self.config) as connection, connection.cursor() as cursor:
                cursor.execute(f"SET statement_timeout = {self.config.timeout_us // 1000}")
                cursor.execute(sql, bound)
                found = [self._fitted(b) for b in batches(cursor)]
            return pa.concat_batches(found) if found else self._fitted_empty()

        return patient(self.config, ask)

    def _check(self) -> TableSize:
        with connected(self.config) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {self._from()} LIMIT 0")
            have = cursor.fetch_arrow_table().schema
            check_columns(self.config.place, self._what(), have, self.schema)
            cursor.adbc_statement.set_options(**{_COPY: "false"})
            cursor.execute(f"EXPLAIN (FORMAT JSON) {self._select()}")
            text = cursor.fetch_arrow_table().column(0)[0].as_py()
        plan = orjson.loads(text)[0]["Plan"]
        return TableSize(
            int(plan["Plan Rows"]), int(plan["Plan Rows"]) * (int(plan["Plan Width"]) + _ROW_BYTES)
        )

    def _select(self) -> str:
        return f"SELECT {listed(self.schema)} FROM {self._from()}"

    def _from(self) -> str:
        if self.config.query is not None:
            return f"({self.config.query.strip().rstrip(';')}) AS asked_for"
        assert self.config.table is not None
        return table_name(self.config.table)

    def _what(self) -> str:
        return f"table {self.config.table}" if self.config.table else "the query"

    def _fitted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return conform(self.config.place, batch, self.schema)

    def _fitted_empty(self) -> pa.RecordBatch:
        return pa.record_batch([pa.array([], f.type) for f in self.schema], self.schema)


def _condition(columns: Sequence[str], schema: pa.Schema) -> str:
    sides = [f"{quoted(c)}::text" if schema.field(c).type == pa.string() else quoted(c) for c in columns]
    if len(sides) == 1:
        return f"WHERE {sides[0]} = ANY($1)"
    names = [f"asked_{i}" for i in range(len(sides))]
    lists = ", ".join(f"${i + 1}" for i in range(len(sides)))
    equal = " AND ".join(f"{side} = {name}" for side, name in zip(sides, names, strict=True))
    return f"JOIN unnest({lists}) AS wanted({', '.join(names)}) ON {equal}"


def _list(keys: pa.Array) -> pa.Array:
    """Return one row that holds a list of all keys."""
    wide = {pa.int8(): pa.int16(), pa.float32(): pa.float64()}
    flat = keys.cast(wide.get(keys.type, keys.type))
    return pa.ListArray.from_arrays(pa.array([0, len(flat)], pa.int32()), flat)
