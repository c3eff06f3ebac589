"""Rows out of a real PostgreSQL: all of them, those of keys of every type, sizes, refusals, and a server that goes away."""

import threading
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from joinlib.errors import NotReady, SpecError
from joinlib.lookup.postgres import PostgresTable
from joinlib.postgres import PostgresConfig, connection
from joinlib.worker import current
from tests import configs
from tests.patience import until
from tests.postgres.database import PASSWORD, Database

COLUMNS: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "small": ("smallint", pa.int16(), [1, 2, -3]),
    "int": ("int", pa.int32(), [1, 2, -3]),
    "big": ("bigint", pa.int64(), [1, 2**40, -3]),
    "real": ("real", pa.float32(), [0.5, 1.5, -2.0]),
    "double": ("double precision", pa.float64(), [0.5, float("inf"), -2.0]),
    "num": ("numeric(12,2)", pa.decimal128(12, 2), [Decimal("0.10"), Decimal("99.99"), Decimal("-3.00")]),
    "text": ("text", pa.string(), ["a", "it's", "ä; --"]),
    "chars": ("varchar(9)", pa.string(), ["a", "b", "c"]),
    "fixed": ("char(3)", pa.string(), ["a", "bb", "ccc"]),
    "id": ("uuid", pa.string(), [f"0000000{i}-0000-0000-0000-000000000000" for i in range(3)]),
    "flag": ("boolean", pa.bool_(), [True, False, True]),
    "raw": ("bytea", pa.binary(), [b"", b"\x00'", b"x"]),
    "day": ("date", pa.date32(), [date(2026, 1, 1), date(1969, 12, 31), date(2000, 2, 29)]),
    "at": (
        "timestamptz",
        pa.timestamp("us", "UTC"),
        [datetime(2026, 1, n, 5, tzinfo=UTC) for n in (1, 2, 3)],
    ),
    "local": ("timestamp", pa.timestamp("us"), [datetime(2026, 1, n, 5) for n in (1, 2, 3)]),  # noqa: DTZ001
}


@pytest.fixture(scope="module")
def typed(database: Database) -> PostgresTable:
    """A table of every type, and a row of NULLs."""
    columns = ", ".join(f'"{n}" {t}' for n, (t, _, _) in COLUMNS.items())
    database.execute(f"CREATE TABLE typed ({columns})")
    rows = zip(*(v for _, _, v in COLUMNS.values()), strict=True)
    for row in [*rows, (None,) * len(COLUMNS)]:
        marks = ", ".join(f"${i + 1}::text::{t}" for i, (t, _, _) in enumerate(COLUMNS.values()))
        with database.connected() as connection, connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO typed VALUES ({marks})", tuple(_text(v) for v in row))
    schema = pa.schema([(n, t) for n, (_, t, _) in COLUMNS.items()])
    return PostgresTable(config(database, table="typed"), schema)


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    return None if value is None else str(value)


def config(server: Database, **more: Any) -> PostgresConfig:
    return configs.table("typed", **{**server.fields, **more})


def test_all_rows_of_every_type(typed: PostgresTable) -> None:
    """What was put in comes out, in the types that are declared."""
    typed.check()
    rows = pa.Table.from_batches(typed.read_all())
    assert rows.schema == typed.schema
    for name, (_, _, values) in COLUMNS.items():
        found = rows.column(name).to_pylist()
        assert found == [*values, None], name


@pytest.mark.parametrize("column", COLUMNS)
def test_rows_of_keys_of_every_type(typed: PostgresTable, column: str) -> None:
    """Two keys that are there, one that is not (of the same type): the rows of the two."""
    _, kind, values = COLUMNS[column]
    found = typed.fetch([column], [pa.array(values[:2], kind)])
    assert sorted(map(str, found.column(column).to_pylist())) == sorted(
        map(str, [v for v in values if v in values[:2]])
    )


@pytest.mark.parametrize("column", ["small", "int", "big", "real", "double", "num"])
@pytest.mark.parametrize("wide", [pa.int64(), pa.float64(), pa.decimal128(22, 2)], ids=str)
def test_keys_of_another_number_type(typed: PostgresTable, column: str, wide: pa.DataType) -> None:
    """A stream's keys are of the type in which both sides meet: the table's own values are found in it."""
    table, (_, _, values) = (
        PostgresTable(typed.config, pa.schema([typed.schema.field(column)])),
        COLUMNS[column],
    )
    keys = pa.array([-3, 1, 7]).cast(wide)
    expected = [v for v in values if v in (-3, 1, 7)]
    assert sorted(table.fetch([column], [keys]).column(0).to_pylist()) == sorted(expected)


def test_composite_keys_match_as_wholes(typed: PostgresTable) -> None:
    """(1, 'a') is there, (1, "it's") is not, though both values are."""
    found = typed.fetch(["int", "text"], [pa.array([1, 1, 2], pa.int64()), pa.array(["a", "it's", "it's"])])
    assert sorted(found.column("int").to_pylist()) == [1, 2]


def test_a_query_is_a_table(database: Database, typed: PostgresTable) -> None:
    """`query:` instead of `table:`, with a semicolon at its end."""
    asked = config(database, query='SELECT "int" AS k, "text" AS v FROM typed WHERE "int" > 0;')
    table = PostgresTable(asked, pa.schema([("k", pa.int64()), ("v", pa.string())]))
    assert table.check().rows > 0
    assert sorted(table.fetch(["k"], [pa.array([1, -3])]).column("k").to_pylist()) == [1]


def test_one_query_for_many_keys(database: Database, typed: PostgresTable) -> None:
    """One round trip, whatever the number of keys."""
    before = database.log.count("ANY")
    typed.fetch(["big"], [pa.array(range(10_000))])
    assert database.log.count("ANY") == before + 1


def test_size_is_known_before_loading(database: Database) -> None:
    """An estimate that is not far off, and of the columns that are read only."""
    database.fill("sized", pa.table({"k": list(range(5000)), "s": ["x" * 100] * 5000}))
    narrow = PostgresTable(config(database, table="sized"), pa.schema([("k", pa.int64())])).check()
    wide = PostgresTable(
        config(database, table="sized"), pa.schema([("k", pa.int64()), ("s", pa.string())])
    ).check()
    assert 4000 <= narrow.rows <= 6000
    assert wide.bytes > 2 * narrow.bytes


REFUSED = [
    ({"table": "nope"}, {"k": pa.int64()}, 'relation "nope" does not exist; correct its name'),
    ({"table": "typed"}, {"nope": pa.int64()}, "table typed has no column 'nope'; it has small, int"),
    ({"table": "typed"}, {"big": pa.int32()}, "'big' is int8 in the database, declared as INT"),
    ({"table": "typed"}, {"num": pa.float64()}, "'num' is numeric in the database, declared as DOUBLE"),
    ({"table": "typed", "database": "nope"}, {"int": pa.int32()}, 'database "nope" does not exist'),
    ({"query": "SELEC 1"}, {"k": pa.int64()}, "syntax error"),
    ({"table": 'x"; DROP TABLE typed; --'}, {"k": pa.int64()}, "does not exist"),
    (
        {"table": "typed", "uri_env": "NOT_SET"},
        {"int": pa.int32()},
        "uriEnv: the variable NOT_SET is not set",
    ),
    (
        {"table": "typed", "password_file": Path("/nope")},
        {"int": pa.int32()},
        "passwordFile: the file cannot be read",
    ),
]


@pytest.mark.parametrize(("fields", "columns", "message"), REFUSED)
def test_refusals_name_place_and_fix(
    database: Database,
    typed: PostgresTable,
    fields: dict[str, Any],
    columns: dict[str, pa.DataType],
    message: str,
) -> None:
    """What waiting cannot mend is refused at once, in a line without a secret."""
    table = PostgresTable(config(database, **fields), pa.schema(list(columns.items())))
    began = time.monotonic()
    with pytest.raises(SpecError) as refused:
        table.check()
    assert message in str(refused.value)
    assert "inputs.typed" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert time.monotonic() - began < 30


def test_secrets_are_never_said(
    database: Database, typed: PostgresTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A wrong password, a connection string that cannot be read: the error holds nothing of them. A file works as well."""
    schema = pa.schema([("int", pa.int32())])
    for wrong in ("wr0ng-secret", "wr0ng'; secret\\"):
        monkeypatch.setenv("PGPASSWORD", wrong)
        with pytest.raises(SpecError, match="password authentication failed") as refused:
            PostgresTable(config(database, table="typed", timeout_us=7_000_000), schema).check()
        assert "wr0ng" not in repr(refused.value) and refused.value.__cause__ is None
    for uri in (
        "postgresql://joiner:wr0ng%zz@127.0.0.1/shop",
        "host=127.0.0.1 wr0ngkey=1",
        "password='wr0ng",
    ):
        monkeypatch.setenv("SHOP_URI", uri)
        with pytest.raises(SpecError, match="connection string cannot be used") as refused:
            PostgresTable(configs.table("typed", table="typed", uri_env="SHOP_URI"), schema).check()
        assert "wr0ng" not in str(refused.value)
    secret = tmp_path / "password"
    secret.write_text(PASSWORD + "\n")
    file = config(database, table="typed", password_file=secret, timeout_us=8_000_000)
    assert PASSWORD not in repr(PostgresTable(file, schema))
    assert PostgresTable(file, schema).check().rows > 0


@pytest.fixture(scope="module")
def frail() -> Iterator[Database]:
    """A server with a table of three rows that tests may kill: each leaves it dead."""
    with Database() as own:
        own.fill("t", pa.table({"k": [1, 2, 3]}))
        own.crash()
        yield own


def test_a_server_that_goes_away_is_waited_for(database: Database, frail: Database) -> None:
    """Killed between two queries and started again: the query after it has the same answer. Away for good, it is given up."""
    frail.start()
    table = PostgresTable(config(frail, table="t"), pa.schema([("k", pa.int64())]))
    assert table.fetch(["k"], [pa.array([1, 2])]).num_rows == 2
    frail.crash()
    back = threading.Timer(1.0, frail.start)
    back.start()
    assert table.fetch(["k"], [pa.array([1, 2])]).num_rows == 2
    back.join()
    frail.crash()
    gone = PostgresTable(config(frail, table="t", patience_us=300_000), table.schema)
    with pytest.raises(NotReady, match=r"inputs\.typed: Connection refused, for 0\.3 s; run again"):
        gone.fetch(["k"], [pa.array([1])])


def test_a_server_that_is_not_there_yet(
    database: Database, frail: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """At the start it is waited for, and the log says for what; nothing of it is an error once it is there."""
    late = threading.Timer(1.0, frail.start)
    late.start()
    size = PostgresTable(config(frail, table="t"), pa.schema([("k", pa.int64())])).check()
    late.join()
    frail.crash()
    assert size.rows == 3
    said = [r.getMessage() for r in caplog.records if r.name == "joinlib.postgres"]
    assert "inputs.typed: Connection refused; trying again" in said
    assert len(said) < 15, "less and less often"


def test_a_password_that_changes(database: Database, tmp_path: Path) -> None:
    """A mounted file is read whenever a connection is opened, so a new secret needs no restart; the old one is refused."""
    database.fill("kept", pa.table({"k": [1, 2, 3]}))
    secret = tmp_path / "password"
    secret.write_text(PASSWORD)
    fields = {"password_file": secret, "timeout_us": 11_000_000, "patience_us": 300_000}
    table = PostgresTable(config(database, table="kept", **fields), pa.schema([("k", pa.int64())]))
    keys = [pa.array([1, 2])]
    assert table.fetch(["k"], keys).num_rows == 2
    database.execute("ALTER ROLE joiner PASSWORD 'an0ther'", as_superuser=True)
    try:
        assert table.fetch(["k"], keys).num_rows == 2, "a connection that is open stays"
        current().close()
        with pytest.raises(SpecError, match="password authentication failed") as refused:
            table.fetch(["k"], keys)
        assert PASSWORD not in str(refused.value)
        secret.write_text("an0ther\n")
        assert table.fetch(["k"], keys).num_rows == 2
    finally:
        database.execute(f"ALTER ROLE joiner PASSWORD '{PASSWORD}'", as_superuser=True)


def test_slow_queries_end_and_are_tried_again(database: Database) -> None:
    """A lock holds the table for longer than one query may take: the query is given up and asked anew."""
    database.fill("slow", pa.table({"k": [1, 2, 3]}))
    table = PostgresTable(config(database, table="slow", timeout_us=400_000), pa.schema([("k", pa.int64())]))
    with database.connected() as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("LOCK TABLE slow")
        free = threading.Timer(1.5, lambda: cursor.execute("COMMIT"))
        free.start()
        assert table.fetch(["k"], [pa.array([1, 2])]).num_rows == 2
        free.join()
    assert "canceling statement due to statement timeout" in database.log


def test_no_connection_is_free(database: Database) -> None:
    """At the server's limit a reader waits its turn; and one process never takes more than one."""
    database.fill("busy", pa.table({"k": [1, 2, 3]}))
    database.execute("ALTER ROLE joiner CONNECTION LIMIT 1", as_superuser=True)
    current().close()
    until_nobody(database)
    table = PostgresTable(config(database, table="busy"), pa.schema([("k", pa.int64())]))
    try:
        with database.connected() as connection:
            free = threading.Timer(1.0, connection.close)
            free.start()
            assert table.fetch(["k"], [pa.array([1, 2])]).num_rows == 2
            free.join()
        again = PostgresTable(config(database, table="busy", query=None), table.schema)
        assert again.fetch(["k"], [pa.array([3])]).num_rows == 1
    finally:
        database.execute("ALTER ROLE joiner CONNECTION LIMIT -1", as_superuser=True)


def connections(database: Database) -> int:
    """How many the server has of ours."""
    count = "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'streamjoin'"
    found = database.execute(count, as_superuser=True)
    assert found is not None
    return int(found.column("n")[0].as_py())


def until_nobody(database: Database) -> None:
    """A server takes a moment to see that clients are gone."""
    ours = "SELECT count(*) AS n FROM pg_stat_activity WHERE usename = 'joiner'"

    def gone() -> bool:
        found = database.execute(ours, as_superuser=True)
        return found is not None and not found.column("n")[0].as_py()

    until(gone)


def until_closed(database: Database) -> None:
    """A server takes a moment to see that a client is gone."""
    until(lambda: connections(database) == 0)


def test_a_worker_that_closes_lets_its_connection_go(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, and not when it has been idle for long."""
    monkeypatch.setattr(connection, "_IDLE_S", 60.0)
    database.fill("let_go", pa.table({"k": [1, 2, 3]}))
    table = PostgresTable(config(database, table="let_go"), pa.schema([("k", pa.int64())]))
    until_closed(database)
    table.fetch(["k"], [pa.array([1])])
    assert connections(database) == 1
    current().close()
    until_closed(database)
    assert table.fetch(["k"], [pa.array([3])]).num_rows == 1, "another one is opened"


def test_an_idle_connection_is_given_back(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept between queries, closed when none has come for a while, and opened again by the next."""
    monkeypatch.setattr(connection, "_IDLE_S", 0.3)
    database.fill("idle", pa.table({"k": [1, 2, 3]}))
    table = PostgresTable(
        config(database, table="idle", timeout_us=9_000_000), pa.schema([("k", pa.int64())])
    )
    until_closed(database)
    for _ in range(2):
        for _ in range(3):
            table.fetch(["k"], [pa.array([1])])
        assert connections(database) <= 1
        until_closed(database)
    assert table.check().rows
    until_closed(database)
