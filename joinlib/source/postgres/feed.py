"""One slot and all inputs over it: its log is peeked once, and each input gets its rows.

    first start   slot ─► snapshot ─► spool ─► log
    each look     peek ─► decode ─► spool ─► log ─► advance the slot

PostgreSQL lets one process at a time read a slot, and a peek decodes for all tables at once. So the driver's
part peeks and writes the rows of each input to the disk, and tasks read files. Once rows are on the disk and in
the log, the slot moves on over them: a peek from far behind would decode all of it again. A batch that runs
again reads the same files. A crash at any point leaves a slot that is behind the log, never ahead: what is
peeked twice is known by its position.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from joinlib.errors import InputError, NotReady, SpecError
from joinlib.fault import point
from joinlib.postgres.connection import Unavailable, opened, patient
from joinlib.source.postgres import catalog, slot, snapshot, spool
from joinlib.source.postgres.config import PostgresLogConfig
from joinlib.source.postgres.decode import LogDecoder

T = TypeVar("T")
log = logging.getLogger("joinlib.postgres")
_MOST = 500_000  # messages of one peek: fewer would decode the beginning of the log too often
_STRIDE = 16 << 20  # bytes of log after which the slot moves even if no row was in them
_SESSION = (
    "SET statement_timeout = 0",  # a peek decodes for as long as it takes
    "SET client_encoding = 'UTF8'",
    "SET DateStyle = 'ISO, YMD'",
    "SET bytea_output = 'hex'",
    "SET extra_float_digits = 1",
)


class Feed:
    """A slot, the tables that are read by it, and what was spooled. Making it connects to nothing yet."""

    def __init__(
        self,
        members: Sequence[tuple[PostgresLogConfig, pa.Schema]],
        folder: Path,
        whole: bool = False,
        most: int = _MOST,
    ) -> None:
        self._members, self._folder = tuple(members), folder
        self._whole, self._most = whole, most
        self.configs = [config for config, _ in members]
        self._first = members[0][0]  # whose connection is used, and whose name errors have
        self._names = [config.server.name for config in self.configs]
        for config in self.configs:
            _check_same(self._first, config)
        self._known: spool.SlotSpool | None = None
        self._tables: list[catalog.Published] = []
        self._connection: Any = None
        self._looked = 0  # how far the log was read, if nothing was in it since the last entry
        self._round = 0
        self._seen = dict.fromkeys(self._names, 0)

    @property
    def known(self) -> spool.SlotSpool:
        """What was spooled."""
        if self._known is None:
            for left in self._folder.glob("*.arrow.*"):
                left.unlink()  # of a process that was killed
            self._known = spool.SlotSpool(self._folder, self._names)
        return self._known

    def check(self) -> None:
        """Check that the tables can be read by this slot. Makes nothing.

        Raises:
            SpecError: They cannot.
            InputError: The slot is no longer where we left it.
            NotReady: The database cannot be reached in time.
        """
        try:
            self._patient(self._check)
        finally:
            self._close()

    def discover(self, name: str) -> int:
        """Return the number of slices of an input. Whoever asks a second time makes the feed look again."""
        if self._seen[name] == self._round:
            self._round += 1
            self._look()
        self._seen[name] = self._round
        return self.known.inputs[name].slices

    def _look(self) -> None:
        if not self._tables:
            self._patient(self._check)
        if self.known.snapshot is None:
            self._patient(self._begin)
        goal = self._patient(self._state).flushed
        while max(self._looked, self.known.at) < goal:
            more = self._patient(partial(self._peek, upto=goal))
            if not (more and self._whole):
                return

    def _check(self, cursor: Any) -> None:
        catalog.check_server(cursor, self._first)
        self._tables = [catalog.published(cursor, config, schema) for config, schema in self._members]
        self._state(cursor)

    def _state(self, cursor: Any) -> slot.SlotState:
        """Return the state of the slot, once it is sure that nothing was lost."""
        found, known = slot.state(cursor, self._first.slot), self.known
        if (problem := _problem(self._first, found, known)) is None:
            return found
        self._close()
        raise problem

    def _begin(self, cursor: Any) -> None:
        """Make the slot, and spool the snapshot."""
        config, known = self._first, self.known
        if not known.made:
            known.make(config.slot)
        if not slot.state(cursor, config.slot).exists:
            self._create(cursor)
        point("created", 0)
        at = slot.state(cursor, config.slot).at
        if at is None:
            raise Unavailable(f"slot {config.slot} is still being made")
        snapshot.wait(cursor, config.server.place, config.server.patience_us / 1e6)
        taken = snapshot.taken(cursor)
        with spool.files(self._folder, known.number) as files:
            for target, rows in snapshot.rows(cursor, self._tables):
                if rows.num_rows:
                    files.add(target.config.server.name, rows)
        cursor.execute("COMMIT")
        point("peeked", 0)
        known.append({
            "number": known.number, "at": at, "snapshot": taken.text, "until": taken.until,
            "files": files.batches,
        })  # fmt: skip

    def _create(self, cursor: Any) -> None:
        """Make the slot. Its making waits for transactions that run, as long as our patience lasts."""
        config, patience_us = self._first, self._first.server.patience_us
        from adbc_driver_manager import Error

        cursor.execute(f"SET statement_timeout = {max(patience_us // 1000, 1)}")
        try:
            slot.create(cursor, config.slot)
        except Error as error:
            if str(error.sqlstate) != "57014":
                raise
            raise NotReady(
                f"{config.server.place}: slot {config.slot} cannot be made while {snapshot.oldest(cursor)} runs; end"
                " it and run again"
            ) from None
        cursor.execute("SET statement_timeout = 0")

    def _peek(self, cursor: Any, upto: int) -> bool:
        """Spool what was committed before a position; return whether there may be more."""
        known, config = self.known, self._first
        assert known.snapshot is not None
        decoder, count = LogDecoder([t.target for t in self._tables], known.at, known.snapshot), 0
        with spool.files(self._folder, known.number) as files:
            for messages in slot.peek(cursor, config.slot, config.publication, upto, self._most):
                count += len(messages)
                for target, rows in decoder.decode(messages):
                    files.add(target.config.server.name, rows)
        more = count >= self._most
        end = max(decoder.end, known.at) if more else max(decoder.end, upto)
        point("peeked", known.number)
        if files.batches or more or end - known.at >= _STRIDE:
            known.append({"number": known.number, "at": end, "files": files.batches})
            point("logged", known.number - 1)
            slot.advance(cursor, config.slot, end)
        self._looked = end
        return more

    def _patient(self, ask: Callable[[Any], T]) -> T:
        """Return what `ask` returns of a cursor, repeated while the server cannot be reached."""

        def attempt() -> T:
            with self._cursor() as cursor:
                return ask(cursor)

        return patient(self._first.server, attempt)

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """Use the feed's connection. It is closed after an error."""
        try:
            if self._connection is None:
                self._connection = opened(self._first.server)
                with self._connection.cursor() as cursor:
                    for statement in _SESSION:
                        cursor.execute(statement)
            with self._connection.cursor() as cursor:
                yield cursor
        except BaseException:
            self._close()
            raise

    def _close(self) -> None:
        from adbc_driver_manager import Error

        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except Error:
                log.debug("a connection was closed already")


def _check_same(first: PostgresLogConfig, other: PostgresLogConfig) -> None:
    """Check that two inputs of one slot are of one database and publication."""
    mine, its = (replace(c.server, name="", table=None) for c in (first, other))
    if mine != its or first.publication != other.publication:
        what = "connection" if mine != its else "publication"
        raise SpecError(
            f"{other.server.place}.postgres.changes: slot {other.slot} is that of {first.server.place}, whose"
            f" {what} is another; write the same in both, or give each a slot of its own"
        )


def _problem(config: PostgresLogConfig, found: slot.SlotState, known: spool.SlotSpool) -> Exception | None:
    """Return what is wrong with the slot, seen from what we have read of it; None if nothing is."""
    place, name = f"{config.server.place}.postgres.changes", config.slot
    anew = f"drop it (SELECT pg_drop_replication_slot('{name}')) and start with a new checkpoint and output"
    if not known.made:
        if not found.exists:
            return None
        return SpecError(
            f"{place}: slot {name} is there already, and this checkpoint has not made it; name another slot, or"
            f" SELECT pg_drop_replication_slot('{name}') if no other job uses it"
        )
    if not found.exists:
        if known.snapshot is None:
            return None
        return InputError(
            f"{place}: slot {name} is gone, and with it the changes since {slot.text(known.at)}; start with a new"
            " checkpoint and output"
        )
    if found.plugin != slot.PLUGIN or not found.here:
        return InputError(
            f"{place}: slot {name} is of plugin {found.plugin} and database {found.database}; it must be of"
            f" {slot.PLUGIN} and the database of the input: {anew}"
        )
    if found.lost:
        return InputError(
            f"{place}: slot {name} has lost changes, because the server dropped log that it needed; raise"
            f" max_slot_wal_keep_size, {anew}"
        )
    if known.snapshot is not None and found.at is not None and found.at > known.at:
        return InputError(
            f"{place}: slot {name} was moved to {slot.text(found.at)} by somebody else, beyond"
            f" {slot.text(known.at)}, up to which we have read; the changes between are lost: {anew}"
        )
    if found.flushed < known.at:
        return InputError(
            f"{place}: the log of the server ends at {slot.text(found.flushed)}, before"
            f" {slot.text(known.at)}, up to which we have read: it is another server, or an older copy; {anew}"
        )
    return None
