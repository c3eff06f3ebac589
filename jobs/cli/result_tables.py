"""Reads the results in a table of PostgreSQL again.

A row does not say of which batch it is, but by which transaction it came, and each batch is one. So the rows behind a
batch can be told if the transaction was noted while no later batch was there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from joinlib.lookup.postgres import PostgresTable
from joinlib.postgres.connection import connected, patient
from joinlib.sink.postgres import statements
from joinlib.sink.postgres.config import PostgresSinkConfig
from joinlib.sink.postgres.target import ask, found

XID = "xid"


def end(target: PostgresSinkConfig, schema: pa.Schema, owner: str, batch: int) -> int | None:
    """Return the transaction behind whose rows those of later batches come; None if some are there already.

    Args:
        target: The table.
        schema: Of the results.
        owner: The id by which the output knows its checkpoint.
        batch: The batch that is done.

    Raises:
        SpecError: The table does not take the results.
        NotReady: The database cannot be reached.
    """

    def asked() -> int | None:
        with connected(target.database) as connection:
            known = found(connection, target, schema)
            own = owner, f"{known.schema}.{known.table}"
            there = ask(connection, statements.end(known.schema), *own)
            return int(there[0][1]) if there and there[0][0] <= batch else None

    return patient(target.database, asked)


@dataclass(frozen=True)
class TableRows:
    """Rows of a table, as they are now. `behind`: only those of later transactions."""

    target: PostgresSinkConfig
    schema: pa.Schema
    behind: int | None

    @classmethod
    def of(cls, target: PostgresSinkConfig, schema: pa.Schema, behind: int | None) -> "TableRows":
        """Return the rows in those columns that say what the result said: no text that became another type.

        Raises:
            SpecError: The table does not take the results.
            NotReady: The database cannot be reached.
        """

        def asked() -> PostgresSinkConfig:
            with connected(target.database) as connection:
                return found(connection, target, schema)

        known = patient(target.database, asked)
        columns = tuple(column for column in known.columns if column.cast is None)
        named = pa.schema([schema.field(column.name) for column in columns])
        return cls(replace(known, columns=columns), named, behind)

    @property
    def columns(self) -> dict[str, pa.DataType]:
        return {field.name: field.type for field in self.schema}

    def tables(self, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows."""
        wanted = tuple(column for column in self.target.columns if column.name in columns.names)
        asked = statements.rows(replace(self.target, columns=wanted), self.behind)
        database = replace(self.target.database, table=None, query=asked)
        read = PostgresTable(database, pa.schema([columns.field(column.name) for column in wanted]))
        for batch in patient(database, lambda: list(read.read_all())):
            yield pa.table(batch).select(columns.names)
