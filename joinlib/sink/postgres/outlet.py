"""Brings staged batches into a table of PostgreSQL, in the driver: each by one transaction that has its number.

    killed                       what is in the database               what happens next
    before the transaction       parts in the run's staging table      the next run drops it and runs the batch
    within the transaction       the same: the server rolls back       the next run waits for the job's row
    after it, before Spark's log the batch and its number              the batch runs again and is skipped
    the database, at any moment  staging tables are empty: unlogged    counts tell; the batch is computed again
    the database, at COMMIT      the batch and its number, or neither  asked again, the number tells

The row of the job and table in `streamjoin_batches` is locked from the first statement to the last. It names the
run that writes: a run that finds another's name there ends.
"""

import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from joinlib import fault
from joinlib.errors import SpecError, StateError
from joinlib.postgres.connection import connected, kept, patient
from joinlib.sink.outlet import BeforeCommit, StagedLost
from joinlib.sink.postgres import statements
from joinlib.sink.postgres.config import PostgresSinkConfig
from joinlib.sink.postgres.sink import ready, taken_over
from joinlib.sink.postgres.target import ask, found

log = logging.getLogger("joinlib.sink")
_TWICE = "21000"  # ON CONFLICT met two new rows of one key
_RIGHTS = "SELECT bool_and(has_table_privilege(to_regclass($1), r)) FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) r"
_STATES = "streamjoin_batches"


class TableOutlet:
    """The table of one run. `target` is complete once it is open."""

    def __init__(
        self,
        target: PostgresSinkConfig,
        schema: pa.Schema,
        before_commit: BeforeCommit,
        mark: Callable[[int], str],
    ) -> None:
        self.target, self._schema = target, schema
        self._before_commit, self._mark = before_commit, mark
        self._job, self._run = "", uuid.uuid4().hex

    def open(self, identity: str, begun: int | None) -> None:
        """Check the table, take over from earlier runs of this checkpoint and make the staging table.

        Raises:
            SpecError: The table does not take the result.
            StateError: The table has batches that this checkpoint does not know.
            NotReady: The database cannot be reached.
        """
        self._job = identity
        first = f"{statements.STAGED}{identity.replace('-', '')[:12]}_"
        database = self.target.database

        def opened() -> None:
            with connected(database) as connection:
                self.target = replace(
                    found(connection, self.target, self._schema), staging=f"{first}{self._run[:8]}"
                )
                with connection.cursor() as cursor:
                    ready(cursor, database.timeout_us)
                self._remember(connection)
                self._take_over(connection, begun)
                self._sweep(connection, first)
                ask(connection, statements.make_staging(self.target))

        patient(database, opened)

    def take(self, batch: int, files: Sequence[str]) -> None:
        """Bring these parts of a batch, whose tasks are all done, into the table.

        Raises:
            StagedLost: They are not whole: the batch has to be computed again.
            StateError: The table has another batch of this number, or later ones.
            NotReady: The database cannot be reached, or another run has taken over.
        """
        self._before_commit()
        parts = _parts(files)
        if not parts:
            return
        fault.point("staged", batch)
        patient(self.target.database, lambda: self._apply(batch, parts))
        fault.point("published", batch)

    def look(self) -> None:
        """Do nothing: no batch waits."""

    def close(self) -> None:
        """Drop the staging table."""
        from adbc_driver_manager import Error

        with suppress(Error), connected(self.target.database) as connection:
            ask(connection, f"DROP TABLE IF EXISTS {statements.staging(self.target)}")

    @property
    def _own(self) -> tuple[str, str]:
        return self._job, f"{self.target.schema}.{self.target.table}"

    def _remember(self, connection: Any) -> None:
        """Make the table of batches where it is missing; another job may do so at the same time."""
        from adbc_driver_manager import Error

        there = "SELECT 1 WHERE to_regclass($1) IS NOT NULL"
        name = statements.batches(self.target.schema)
        if not ask(connection, there, name):
            try:
                ask(connection, statements.make_batches(self.target.schema))
            except Error:
                if not ask(connection, there, name):
                    raise
        ((allowed,),) = ask(connection, _RIGHTS, name)
        if not allowed:
            raise SpecError(
                f"output.postgres: this user may not SELECT, INSERT and UPDATE in table {name}, which another user has"
                " made; GRANT it to the user"
            )

    def _take_over(self, connection: Any, begun: int | None) -> None:
        """Become the run that writes, unless this checkpoint knows less than the table has."""
        schema = self.target.schema
        with _transaction(connection):
            ask(connection, statements.know(schema), *self._own)
            ((_, batch, _),) = ask(connection, statements.look(schema), *self._own)
            known = -1 if begun is None else begun
            if batch > known:
                raise self._old(batch, "its beginning" if begun is None else f"batch {begun}")
            self._before_commit()
            ask(connection, statements.take(schema), *self._own, self._run)

    def _sweep(self, connection: Any, first: str) -> None:
        """Drop the staging tables of earlier runs; what cannot be dropped now is left to the next run."""
        from adbc_driver_manager import Error

        sql = (
            "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = $1 AND starts_with(c.relname::text, $2) AND c.relkind = 'r'"
        )
        for (name,) in ask(connection, sql, self.target.schema, first):
            try:
                old = statements.staging(replace(self.target, staging=name))
                ask(connection, f"DROP TABLE IF EXISTS {old}")
            except Error as error:
                log.warning(
                    "output.postgres: %s of an earlier run is in use, and stays (%s)", name, error.sqlstate
                )

    def _apply(self, batch: int, parts: dict[int, int]) -> None:
        from adbc_driver_manager import Error

        target, schema = self.target, self.target.schema
        with kept(target.database) as connection, connection.cursor() as cursor:
            ready(cursor, target.database.timeout_us)
            with _transaction(connection):
                ((run, last, mark),) = ask(connection, statements.look(schema), *self._own)
                if run != self._run:
                    raise taken_over(target)
                if self._is_there(batch, last, mark):
                    return
                numbers = pa.array([list(parts)], pa.list_(pa.int64()))
                bound = pa.record_batch([numbers], ["parts"])
                self._check_whole(cursor, batch, parts, bound)
                for sql in statements.apply(target):
                    try:
                        cursor.execute(sql, bound)
                    except Error as error:
                        raise _several(target) if error.sqlstate == _TWICE else error from None
                ask(connection, statements.note(schema), *self._own, batch, self._mark(batch))
                fault.point("applied", batch)
            # Not within: where a TRUNCATE of an unlogged table is rolled back and the server then crashes, its
            # recovery stops at the file that was left ("could not create file ...: File exists", PostgreSQL 15).
            ask(connection, statements.clear(target))

    def _is_there(self, batch: int, last: int, mark: str) -> bool:
        if last > batch:
            raise self._old(last, f"batch {batch}")
        if last == batch and mark != self._mark(batch):
            raise StateError(
                f"output.postgres: table {self.target.table} has another batch {batch} than the one that this"
                " checkpoint has run: the checkpoint is an old copy, or another copy of it writes there too; use the"
                " newest one, or a new checkpoint and an empty table"
            )
        return last == batch

    def _check_whole(self, cursor: Any, batch: int, parts: dict[int, int], bound: pa.RecordBatch) -> None:
        cursor.execute(statements.count(self.target), bound)
        there = dict(cursor.fetchall())
        if there != parts:
            raise StagedLost(
                f"output.postgres: {sum(parts.values())} rows of batch {batch} were staged, and"
                f" {sum(there.values())} are there: the database was restarted"
            )

    def _old(self, there: int, known: str) -> StateError:
        upsert = (
            f", or delete the job's row from {_STATES}: the rows of later batches are replaced as they come again"
            if self.target.mode == "upsert"
            else ""
        )
        return StateError(
            f"output.postgres: table {self.target.table} has batch {there} of this checkpoint, which is at {known}: it"
            f" is an old copy; use the newest one, or a new checkpoint and an empty table{upsert}"
        )


def _parts(files: Sequence[str]) -> dict[int, int]:
    """Return the number of rows of each part, from what the receipts say of units."""
    rows: dict[int, int] = {}
    for part, count in (map(int, name.split(":")) for name in files):
        rows[part] = rows.get(part, 0) + count
    return rows


def _several(target: PostgresSinkConfig) -> SpecError:
    return SpecError(
        f"output.key: the result has several rows with the same {', '.join(target.key)} in table {target.table}; name"
        " all columns that tell its rows apart"
    )


@contextmanager
def _transaction(connection: Any) -> Iterator[None]:
    """Commit what is done in the block, or nothing of it."""
    ask(connection, "BEGIN")
    try:
        yield
    except BaseException:
        with suppress(Exception):
            ask(connection, "ROLLBACK")
        raise
    ask(connection, "COMMIT")
