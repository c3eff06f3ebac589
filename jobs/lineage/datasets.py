"""Where the rows of inputs and outputs lie, by OpenLineage's rules for names. Never a login.

    files      file                     /data/orders
    kafka      kafka://broker:9092      topic          the first broker that is named
    postgres   postgres://db:5432       shop.public.orders

Generated rows, and results for the terminal, lie nowhere: they are no datasets.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from joinlib.spec.inputs import Input, Postgres
from joinlib.spec.kafka import KafkaConnection
from joinlib.spec.output import Output
from joinlib.spec.postgres import PostgresConnection

_SCHEMA = "public"  # of a table that names none
_PORT = 5432


@dataclass(frozen=True)
class DatasetName:
    """The name of a dataset, unique in its namespace, which is where it is served."""

    namespace: str
    name: str


def of_input(given: Input, environment: Mapping[str, str]) -> tuple[DatasetName, ...]:
    """Return the datasets that an input reads: several topics, or the tables of a query, are several."""
    if given.files is not None:
        return (_folder(given.files.path),)
    if given.kafka is not None:
        return tuple(_topic(given.kafka, name) for name in given.kafka.names)
    if given.postgres is not None:
        return tuple(_tables(given.postgres, environment))
    return ()


def of_output(output: Output, environment: Mapping[str, str]) -> DatasetName | None:
    """Return the dataset that an output writes, if it lies anywhere."""
    if output.files is not None:
        return _folder(output.files.path)
    if output.kafka is not None:
        return _topic(output.kafka, output.kafka.topic)
    if output.postgres is not None:
        return _table(output.postgres, output.postgres.table, environment)
    return None


def _folder(path: Path) -> DatasetName:
    return DatasetName("file", str(path.absolute()))


def _topic(cluster: KafkaConnection, topic: str) -> DatasetName:
    first = cluster.bootstrap_servers.partition(",")[0].strip()
    return DatasetName(f"kafka://{first}", topic)


def _tables(given: Postgres, environment: Mapping[str, str]) -> Iterator[DatasetName]:
    names = [given.table] if given.table is not None else _read(given.query or "")
    found = (_table(given, name, environment) for name in names)
    yield from (one for one in found if one is not None)


def _read(query: str) -> list[str]:
    """Return the tables that a query of the database reads; none if the query is not understood."""
    try:
        tree = parse_one(query, dialect="postgres")
    except SqlglotError:
        return []
    own = {cte.alias for cte in tree.find_all(exp.CTE)}
    tables = (t for t in tree.find_all(exp.Table) if t.name and (t.db or t.name not in own))
    return sorted({f"{t.db}.{t.name}" if t.db else t.name for t in tables})


def _table(given: PostgresConnection, table: str, environment: Mapping[str, str]) -> DatasetName | None:
    """Return the name of a table; None where it is not known which database it is in."""
    at, database = _server(given, environment)
    if not at or not database:
        return None
    schema, _, name = table.replace('"', "").rpartition(".")
    return DatasetName(f"postgres://{at}", f"{database}.{schema or _SCHEMA}.{name}")


def _server(given: PostgresConnection, environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return host and port, and the database, without user and password."""
    if given.uri_env is None:
        return f"{given.host}:{given.port}", given.database
    try:
        parts = urlsplit(environment.get(given.uri_env, ""))
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return (host and f"{host}:{parts.port or _PORT}"), unquote(parts.path.strip("/"))
    except ValueError:  # the run says what is wrong with it
        return None, None
