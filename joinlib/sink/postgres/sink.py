"""Brings the results of one task into the staging table, as one part: all of it, or none.

    rows ─► spool (memory, beyond 64 MiB a file) ─► at the end one COPY, repeated until it has been done

What an attempt that was killed has copied stays under a number that no receipt names, until the driver empties
the table. Cost: one COPY for each task that has rows; writing the spool takes a tenth of it.
"""

import tempfile
import uuid
from typing import IO, Any

import pyarrow as pa

from joinlib import fault
from joinlib.errors import NotReady, SpecError
from joinlib.postgres.connection import kept, patient
from joinlib.sink import changelog, texts
from joinlib.sink.postgres import statements
from joinlib.sink.postgres.config import PostgresSinkConfig

_MEMORY = 64 * 2**20
_NO_TABLE = "42P01"


class PostgresSink:
    """Holds the rows of one task until they are all there, then copies them."""

    def __init__(self, target: PostgresSinkConfig, batch: int) -> None:
        self.target, self.batch = target, batch
        self.part = uuid.uuid4().int >> 65  # a bigint; of this attempt alone
        self._rows = 0  # of the unit
        self._tries = 0
        self._spool: IO[bytes] | None = None
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Hold rows of the result. In mode upsert they are those of `changelog.latest`."""
        if not batch.num_rows:
            return
        made = staged_rows(batch, self.target, self.part)
        if self._writer is None:
            self._spool = tempfile.SpooledTemporaryFile(_MEMORY)  # noqa: SIM115 - closed by close()
            self._writer = pa.ipc.new_stream(self._spool, made.schema)
        self._writer.write_batch(made)
        self._rows += made.num_rows

    def next_unit(self) -> tuple[tuple[str, ...], bytes | None]:
        """End a unit; return the part and how many rows of the unit are in it, for the driver to count."""
        rows, self._rows = self._rows, 0
        return ((f"{self.part}:{rows}",) if rows else ()), None

    def close(self) -> None:
        """Copy all rows. They are in the staging table when this returns."""
        if self._writer is None or self._spool is None:
            return
        self._writer.close()
        with self._spool:
            patient(self.target.database, self._copy)
        fault.point("copied", self.batch)

    def _copy(self) -> None:
        assert self._spool is not None
        self._spool.seek(0)
        database = self.target.database
        from adbc_driver_manager import AdbcStatusCode, Error

        with kept(database) as connection, connection.cursor() as cursor:
            ready(cursor, database.timeout_us)
            try:
                if self._tries:  # the last one may have copied all rows, although its answer was lost
                    cursor.execute(statements.forget(self.target), (self.part,))
                self._tries += 1
                cursor.adbc_ingest(
                    self.target.staging,
                    pa.ipc.open_stream(self._spool),
                    mode="append",
                    db_schema_name=self.target.schema,
                )
            except Error as error:
                if error.sqlstate == _NO_TABLE or error.status_code == AdbcStatusCode.NOT_FOUND:
                    raise taken_over(self.target) from None
                raise


def ready(cursor: Any, timeout_us: int) -> None:
    """Let statements of a connection take as long as they work, but not wait for a lock for longer than this."""
    cursor.execute("SET statement_timeout = 0")
    cursor.execute(f"SET lock_timeout = {timeout_us // 1000}")


def staged_rows(batch: pa.RecordBatch, target: PostgresSinkConfig, part: int) -> pa.RecordBatch:
    """Return the rows as the staging table has them."""
    rows, weights = changelog.split(batch)
    weight = pa.repeat(pa.scalar(1, pa.int64()), len(batch)) if weights is None else pa.array(weights)
    columns = [pa.repeat(pa.scalar(part, pa.int64()), len(batch)), weight, *map(_staged, rows.columns)]
    _check_keys(rows, target.key)
    names = [statements.PART, statements.WEIGHT, *(f"c{n}" for n in range(rows.num_columns))]
    return pa.record_batch(columns, names)


def _staged(column: pa.Array) -> pa.Array:
    """Return the column in a type that a COPY can carry."""
    kind = column.type
    if pa.types.is_nested(kind):
        return texts.json_values(column)
    wide = {pa.int8(): pa.int16(), pa.large_string(): pa.string(), pa.null(): pa.string()}
    return column.cast(wide.get(kind, kind))


def _check_keys(rows: pa.RecordBatch, key: tuple[str, ...]) -> None:
    for name in key:
        if rows.column(name).null_count:
            raise SpecError(
                f"output.key: {name} is NULL in a row, and NULL finds no row to replace; leave such rows out"
                f" (WHERE {name} IS NOT NULL)"
            )


def taken_over(target: PostgresSinkConfig) -> NotReady:
    """Return the error of a run that may no longer write."""
    return NotReady(f"output.postgres: table {target.table}: another run of this checkpoint has taken over")
