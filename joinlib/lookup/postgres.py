"""Reads rows of a PostgreSQL table: all of them, or those of many keys by one query.

Arrow in, Arrow out (ADBC).

    check      do the columns fit what is declared, and how large is the table?
    read_all   one statement, so one snapshot of the table
    fetch      WHERE key = ANY($1), with a list of keys; JOIN unnest($1, $2) for keys of several columns

A worker keeps one connection to a database and closes it after some seconds without a query, since servers
have few. A transient failure (a server that restarts, no connection free, a query that is too slow) is
retried for as long as `patience` says. The driver is loaded on the first connection, so that workers of jobs
without a database do not load it.
"""

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from joinlib import secret
from joinlib.errors import NotReady, SpecError
from joinlib.expr.types import name as type_name
from joinlib.lookup.said import said
from joinlib.retry import backoff, patiently
from joinlib.source.fit import fits, fitted
from joinlib.worker import Keep, current

if TYPE_CHECKING:
    from adbc_driver_manager import Error

T = TypeVar("T")
log = logging.getLogger("joinlib.lookup")
_PAUSES = backoff(0.1, 5.0)
# Classes of SQLSTATE: connection, resources, shutdown and time-outs, conflicts.
_PASSING = ("08", "53", "57", "40", "55P03")
_COPY = "adbc.postgresql.use_copy"
_USUAL = "PGPASSWORD"  # libpq's, and the default of the spec
_ROW_BYTES = 24  # of a row without its columns


class Unavailable(Exception):
    """A transient failure of the server; the text says why."""


@dataclass(frozen=True)
class PostgresConfig:
    """Where a table is and how long to wait for it. It holds no secret, only names of variables and files."""

    name: str  # the input's name, for messages
    table: str | None  # "schema.table", or
    query: str | None  # a SELECT
    host: str | None  # host, port, database and user; or
    port: int
    database: str | None
    user: str | None
    uri_env: str | None  # the variable that holds a whole connection string
    password_env: str
    password_file: Path | None
    mode: str  # libpq's sslmode
    ca_file: Path | None
    cert_file: Path | None
    key_file: Path | None
    timeout_us: int  # limit of one query
    patience_us: int  # limit of a call with all its attempts


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
        return self.patient(self._check)

    def read_all(self) -> Iterator[pa.RecordBatch]:
        """Read every row. It is not retried, since the caller has consumed a part: the caller starts over."""
        with _connection(self.config) as connection, connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0")
            cursor.execute(self._select())
            for batch in cursor.fetch_record_batch():
                yield self._fitted(batch)

    def fetch(self, columns: Sequence[str], keys: Sequence[pa.Array]) -> pa.RecordBatch:
        """Fetch all rows whose `columns` are one of these keys, none of which is NULL. One round trip.

        Raises:
            NotReady: if the database cannot be reached in time.
        """
        bound = pa.record_batch([_list(k) for k in keys], [f"k{i}" for i in range(len(keys))])
        sql = f"{self._select()} {_condition(columns, self.schema)}"

        def ask() -> pa.RecordBatch:
            with _kept(self.config) as connection, connection.cursor() as cursor:
                cursor.execute(f"SET statement_timeout = {self.config.timeout_us // 1000}")
                cursor.execute(sql, bound)
                found = [self._fitted(b) for b in cursor.fetch_record_batch()]
            return pa.concat_batches(found) if found else self._fitted_empty()

        return self.patient(ask)

    def patient(self, ask: Callable[[], T]) -> T:
        """Return the result of `ask`, retried while the server is unavailable.

        Raises:
            NotReady: if it is still unavailable after the patience.
            SpecError: if the error is permanent.
        """
        from adbc_driver_manager import Error

        place, patience_s = f"inputs.{self.config.name}", self.config.patience_us / 1e6

        def attempt(_: float) -> T:
            try:
                return ask()
            except Error as error:
                raise _translated(error, self.config) from None

        def warn(reason: BaseException) -> None:
            log.warning("%s: %s; trying again", place, reason)

        try:
            return patiently(attempt, _is_transient, patience_s, _PAUSES, warn=warn)
        except Unavailable as reason:
            raise NotReady(
                f"{place}: {reason}, for {patience_s:g} s; run again when it is there, the job goes on where it was"
            ) from None

    def _check(self) -> TableSize:
        with _connection(self.config) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {self._from()} LIMIT 0")
            have = cursor.fetch_arrow_table().schema
            place = f"inputs.{self.config.name}"
            for field in self.schema:
                if field.name not in have.names:
                    raise SpecError(
                        f"{place}: {self._what()} has no column {field.name!r}; it has {', '.join(have.names)}"
                    )
                kind = have.field(field.name).type
                if not _readable(kind, field.type):
                    known = (have.field(field.name).metadata or {}).get(b"POSTGRESQL:type", b"").decode()
                    raise SpecError(
                        f"{place}: column {field.name!r} is {known or kind} in the database, declared as"
                        f" {type_name(field.type)}; declare a type that holds all its values"
                    )
            cursor.adbc_statement.set_options(**{_COPY: "false"})
            cursor.execute(f"EXPLAIN (FORMAT JSON) {self._select()}")
            text = cursor.fetch_arrow_table().column(0)[0].as_py()
        plan = orjson.loads(text)[0]["Plan"]
        return TableSize(
            int(plan["Plan Rows"]), int(plan["Plan Rows"]) * (int(plan["Plan Width"]) + _ROW_BYTES)
        )

    def _select(self) -> str:
        """The SELECT of the columns; texts are cast to text, whatever their type
        in the database (uuid, json, enums).
        """
        columns = [
            f"{_quoted(f.name)}::text AS {_quoted(f.name)}" if f.type == pa.string() else _quoted(f.name)
            for f in self.schema
        ]
        return f"SELECT {', '.join(columns) or 'NULL'} FROM {self._from()}"

    def _from(self) -> str:
        if self.config.query is not None:
            return f"({self.config.query.strip().rstrip(';')}) AS asked_for"
        assert self.config.table is not None
        return ".".join(_quoted(part) for part in self.config.table.split("."))

    def _what(self) -> str:
        return f"table {self.config.table}" if self.config.table else "the query"

    def _fitted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        place = f"inputs.{self.config.name}"
        if not len(self.schema):
            return batch.select([])
        arrays = [_plain(batch.column(f.name), f.type) for f in self.schema]
        return fitted(place, pa.record_batch(arrays, self.schema.names), self.schema)

    def _fitted_empty(self) -> pa.RecordBatch:
        return pa.record_batch([pa.array([], f.type) for f in self.schema], self.schema)


def _condition(columns: Sequence[str], schema: pa.Schema) -> str:
    sides = [f"{_quoted(c)}::text" if schema.field(c).type == pa.string() else _quoted(c) for c in columns]
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


def _quoted(name: str) -> str:
    """Quote an identifier, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def _readable(have: pa.DataType, want: pa.DataType) -> bool:
    if want == pa.string() or fits(have, want):
        return True
    return isinstance(have, pa.OpaqueType) and have.type_name == "numeric" and pa.types.is_decimal(want)


def _plain(column: pa.Array, want: pa.DataType) -> pa.Array:
    """Convert a column to the declared type where the driver returns text for it, as for NUMERIC."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_decimal(want) and pa.types.is_string(column.type):
        try:
            return pc.cast(column, want)
        except pa.ArrowInvalid:
            raise SpecError(
                f"a NUMERIC does not fit {type_name(want)}; declare more digits (NaN and infinity fit none)"
            ) from None
    return column


# --- connections --------------------------------------------------------------------------------------


class _Slot:
    """A connection that is kept between queries, locked while one runs."""

    def __init__(self) -> None:
        self.lock, self.used = threading.Lock(), 0.0
        self.connection: Any = None
        self.timer: threading.Timer | None = None

    def close(self) -> None:
        """Close the connection, once the query that runs on it has ended."""
        with self.lock:
            self.drop()

    def drop(self) -> None:
        """Close the connection. The caller holds the lock."""
        from adbc_driver_manager import Error

        connection, self.connection = self.connection, None
        if connection is not None:
            with suppress(Error):
                connection.close()

    def watch(self) -> None:
        """Start a timer that closes the connection once it has been idle for long enough."""
        self.timer = threading.Timer(_IDLE_S, self._look)
        self.timer.daemon = True
        self.timer.start()

    def _look(self) -> None:
        with self.lock:
            self.timer = None
            if time.monotonic() - self.used >= _IDLE_S:
                self.drop()
            elif self.connection is not None:
                self.watch()


_IDLE_S = 5.0


@contextmanager
def _connection(config: PostgresConfig) -> Iterator[Any]:
    """Open a separate connection and close it at the end."""
    with _opened(config) as connection:
        yield connection


@contextmanager
def _kept(config: PostgresConfig) -> Iterator[Any]:
    """Use this process's connection to the database of `config`; it is closed after an error."""
    kept: Keep[PostgresConfig, _Slot] = current().connections
    slot = kept.made(replace(config, name="", table=None, query=None), _Slot)
    with slot.lock:
        try:
            if slot.connection is None:
                slot.connection = _opened(config)
            yield slot.connection
        except BaseException:
            slot.drop()
            raise
        slot.used = time.monotonic()
        if slot.timer is None:
            slot.watch()


def _opened(config: PostgresConfig) -> Any:
    from adbc_driver_postgresql import dbapi

    connection = dbapi.connect(_address(config), autocommit=True)
    with connection.cursor() as cursor:
        cursor.execute("SET TimeZone = 'UTC'")
        cursor.execute("SET application_name = 'streamjoin'")
    return connection


def _address(config: PostgresConfig) -> str:
    """Build libpq's connection string. This is the only place that sees the secret."""
    if config.uri_env is not None:
        return _encrypted(_variable(config.uri_env, config))
    wait_s = max(config.timeout_us // 1_000_000, 2)
    parts: dict[str, object] = {
        "host": config.host,
        "port": config.port,
        "dbname": config.database,
        "user": config.user,
        "connect_timeout": min(wait_s, 10),
        "tcp_user_timeout": 1000 * wait_s,
        "sslmode": config.mode,
        "sslrootcert": config.ca_file,
        "sslcert": config.cert_file,
        "sslkey": config.key_file,
    }
    if config.password_file is not None:
        parts["password"] = secret.read(config.password_file, f"inputs.{config.name}.postgres.passwordFile")
    elif config.password_env in os.environ:
        parts["password"] = os.environ[config.password_env]
    elif config.password_env != _USUAL:  # the default may be unset: a server may trust this user
        raise SpecError(
            f"inputs.{config.name}.postgres.passwordEnv: the variable {config.password_env} is not set"
        )
    return " ".join(f"{k}={_escaped(str(v))}" for k, v in parts.items() if v is not None)


def _variable(name: str, config: PostgresConfig) -> str:
    if name not in os.environ:
        raise SpecError(f"inputs.{config.name}.postgres.uriEnv: the variable {name} is not set")
    return os.environ[name]


def _encrypted(address: str) -> str:
    """Make a connection string demand TLS unless it says otherwise: libpq takes
    the last value of a repeated parameter.
    """
    place = re.match(r"postgres(?:ql)?://(?:[^@/]*@)?[^?]*", address)
    if place is None:
        return f"sslmode=require {address}"
    said = address[place.end() + 1 :]
    return "".join([place[0], "?sslmode=require", f"&{said}" if said else ""])


def _escaped(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, Unavailable)


def _translated(error: "Error", config: PostgresConfig) -> Exception:
    """Turn a driver's error into a transient one or a SpecError, in words without a secret
    or a row's value.
    """
    from adbc_driver_manager import OperationalError

    state, place = str(getattr(error, "sqlstate", None) or ""), f"inputs.{config.name}"
    reason = said(str(error))
    if state.startswith(_PASSING) or (isinstance(error, OperationalError) and not state and reason.passing):
        return Unavailable(reason.text)
    return SpecError(f"{place}: {reason.text}")
