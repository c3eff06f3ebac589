"""Connections to a PostgreSQL server: opened, kept, repeated; their errors in words without a secret.

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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from joinlib import secret
from joinlib.errors import NotReady, SpecError
from joinlib.postgres.config import PostgresConfig
from joinlib.postgres.said import said
from joinlib.retry import backoff, patiently
from joinlib.worker import Keep, current

if TYPE_CHECKING:
    import pyarrow as pa
    from adbc_driver_manager import Error

T = TypeVar("T")
log = logging.getLogger("joinlib.postgres")
_PAUSES = backoff(0.1, 5.0)
# Classes of SQLSTATE: connection, resources, shutdown and time-outs, conflicts, something that is in use.
_PASSING = ("08", "53", "57", "40", "55P03", "55006")
_USUAL = "PGPASSWORD"  # libpq's, and the default of the spec


class Unavailable(Exception):
    """A transient failure of the server; the text says why."""


def patient(config: PostgresConfig, ask: Callable[[], T]) -> T:
    """Return the result of `ask`, retried while the server is unavailable.

    Raises:
        NotReady: if it is still unavailable after the patience.
        SpecError: if the error is permanent.
    """
    from adbc_driver_manager import Error

    patience_s = config.patience_us / 1e6

    def attempt(_: float) -> T:
        try:
            return ask()
        except Error as error:
            raise translated(error, config) from None

    def warn(reason: BaseException) -> None:
        log.warning("%s: %s; trying again", config.place, reason)

    try:
        return patiently(attempt, _is_transient, patience_s, _PAUSES, warn=warn)
    except Unavailable as reason:
        raise NotReady(
            f"{config.place}: {reason}, for {patience_s:g} s; run again when it is there, the job goes on where it was"
        ) from None


def batches(cursor: Any) -> "Iterator[pa.RecordBatch]":
    """Yield the rows of the last statement as they come.

    If the server fails on the way, this raises the driver's error. `fetch_record_batch` would raise one of
    Arrow's, which does not say what kind of failure it is.
    """
    yield from cursor._results.reader


def quoted(name: str) -> str:
    """Quote an identifier, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a literal of SQL, whatever characters the text has."""
    return "'" + text.replace("'", "''") + "'"


def table_name(table: str) -> str:
    """Return a table's name, "schema.table" or "table", as SQL writes it."""
    return ".".join(quoted(part) for part in table.split("."))


class _Kept:
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
def connected(config: PostgresConfig) -> Iterator[Any]:
    """Open a separate connection and close it at the end."""
    with opened(config) as connection:
        yield connection


@contextmanager
def kept(config: PostgresConfig) -> Iterator[Any]:
    """Use this process's connection to the database of `config`; it is closed after an error."""
    there: Keep[PostgresConfig, _Kept] = current().connections
    slot = there.made(replace(config, name="", table=None, query=None), _Kept)
    with slot.lock:
        try:
            if slot.connection is None:
                slot.connection = opened(config)
            yield slot.connection
        except BaseException:
            slot.drop()
            raise
        slot.used = time.monotonic()
        if slot.timer is None:
            slot.watch()


def opened(config: PostgresConfig) -> Any:
    """Open a connection that the caller closes."""
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
        parts["password"] = secret.read(config.password_file, f"{config.place}.postgres.passwordFile")
    elif config.password_env in os.environ:
        parts["password"] = os.environ[config.password_env]
    elif config.password_env != _USUAL:  # the default may be unset: a server may trust this user
        raise SpecError(f"{config.place}.postgres.passwordEnv: the variable {config.password_env} is not set")
    return " ".join(f"{k}={_escaped(str(v))}" for k, v in parts.items() if v is not None)


def _variable(name: str, config: PostgresConfig) -> str:
    if name not in os.environ:
        raise SpecError(f"{config.place}.postgres.uriEnv: the variable {name} is not set")
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


def translated(error: "Error", config: PostgresConfig) -> Exception:
    """Turn a driver's error into a transient one or a SpecError, in words without a secret
    or a row's value.
    """
    from adbc_driver_manager import OperationalError

    state, place = str(getattr(error, "sqlstate", None) or ""), config.place
    reason = said(str(error))
    if state.startswith(_PASSING) or (isinstance(error, OperationalError) and not state and reason.passing):
        return Unavailable(reason.text)
    return SpecError(f"{place}: {reason.text}")
