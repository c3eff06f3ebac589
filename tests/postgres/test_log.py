"""A table that changes, followed by its log: what is read is the table, whatever is written to it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from joinlib.errors import InputError, NotReady, SpecError
from tests.patience import HUNG_S, until
from tests.postgres.database import Database
from tests.postgres.replica import SCHEMA, Plan, Replica, following, source

BLOCKED = "SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"


def test_a_table_and_what_happens_to_it(logical: Database, table: str, tmp_path: Path) -> None:
    """Rows that were there, then insertions, updates, deletions, new keys, and nothing that was rolled back."""
    logical.execute(f"INSERT INTO {table} SELECT i, 'v' || i, i FROM generate_series(1, 1000) i")
    replica = Replica(tmp_path, [following(logical, table)])
    replica.step()
    assert replica.rows(table) == source(logical, replica.plans[table])
    logical.execute(f"INSERT INTO {table} SELECT i, NULL, i FROM generate_series(1001, 1100) i")
    logical.execute(f"UPDATE {table} SET v = v || '!' WHERE id % 3 = 0")
    logical.execute(f"UPDATE {table} SET id = -id WHERE id % 10 = 0")
    logical.execute(f"DELETE FROM {table} WHERE id % 7 = 0")
    with logical.connected() as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"INSERT INTO {table} VALUES (5000, 'never', 1)")
        cursor.execute("ROLLBACK")
    replica.follow()
    assert replica.rows(table) == source(logical, replica.plans[table])
    assert not any("never" in row for row in replica.rows(table))


def test_what_was_read_is_not_kept_by_the_server(logical: Database, table: str, tmp_path: Path) -> None:
    """The slot moves with every look that found something, so nothing is decoded twice."""
    replica = Replica(tmp_path, [following(logical, table)])
    for n in range(3):
        logical.execute(f"INSERT INTO {table} VALUES ({n}, 'x', 1)")
        assert replica.step() == 1
        left = logical.execute(
            f"SELECT count(*) FROM pg_logical_slot_peek_binary_changes('{table}', NULL, NULL, 'proto_version', '1',"
            f" 'publication_names', 'p_{table}')"
        )
        assert left is not None
        assert left.column(0)[0].as_py() == 0


def test_full_identity_without_a_key(logical: Database, table: str, tmp_path: Path) -> None:
    """Old rows are sent whole, so equal rows may be there twice; an update of other columns is no change."""
    logical.execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey")
    logical.execute(f"ALTER TABLE {table} ALTER COLUMN id DROP NOT NULL")
    logical.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    logical.execute(f"INSERT INTO {table} SELECT i % 5, 'v', NULL FROM generate_series(1, 20) i")
    replica = Replica(tmp_path, [following(logical, table, key=())])
    replica.step()
    logical.execute(f"INSERT INTO {table} VALUES (NULL, NULL, 1), (NULL, NULL, 1)")
    logical.execute(f"UPDATE {table} SET n = 3 WHERE id = 2")
    logical.execute(f"DELETE FROM {table} WHERE id = 1")
    assert replica.step() == 2 + 8 + 4
    assert replica.rows(table) == source(logical, replica.plans[table])
    logical.execute(f"UPDATE {table} SET extra = 'not read'")
    assert replica.step() == 0


def test_large_values_that_are_not_sent(logical: Database, table: str, tmp_path: Path) -> None:
    """An update that leaves a TOASTed value alone does not send it: the row has it still."""
    logical.execute(f"ALTER TABLE {table} ALTER COLUMN v SET STORAGE EXTERNAL")
    logical.execute(f"INSERT INTO {table} SELECT i, repeat(i::text, 5000), i FROM generate_series(1, 9) i")
    replica = Replica(tmp_path, [following(logical, table)])
    replica.step()
    logical.execute(f"UPDATE {table} SET n = n + 1")
    replica.step()
    assert replica.rows(table) == source(logical, replica.plans[table])
    logical.execute(f"UPDATE {table} SET id = 100 WHERE id = 3")
    with pytest.raises(InputError, match=r"large values \(TOAST\) were not sent .*REPLICA IDENTITY FULL"):
        replica.step()


def test_large_values_under_full_identity(logical: Database, table: str, tmp_path: Path) -> None:
    """The old row has them, so keys may change too."""
    logical.execute(f"ALTER TABLE {table} ALTER COLUMN v SET STORAGE EXTERNAL")
    logical.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    logical.execute(f"INSERT INTO {table} SELECT i, repeat(i::text, 5000), i FROM generate_series(1, 9) i")
    for key in (("id",), ()):
        replica = Replica(
            tmp_path / str(key), [following(logical, table, key=key, slot=f"{table}_{len(key)}")]
        )
        replica.step()
        logical.execute(f"UPDATE {table} SET n = n + 1")
        logical.execute(f"UPDATE {table} SET id = 100 - id WHERE id % 3 = 0")
        replica.step()
        assert replica.rows(table) == source(logical, replica.plans[table])


def test_every_row_once_while_writers_run(logical: Database, table: str, tmp_path: Path) -> None:
    """Transactions that end during the snapshot are in it or in the log, and never in both: rows are counted."""
    logical.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    logical.execute(f"INSERT INTO {table} SELECT i, 'v', 0 FROM generate_series(1, 20000) i")
    stop = threading.Event()

    def write(seed: int) -> None:
        with logical.connected() as connection, connection.cursor() as cursor:
            n = seed
            while not stop.is_set():
                n = (n * 1103515245 + 12345) % 2**31
                cursor.execute("BEGIN")
                cursor.execute(f"UPDATE {table} SET n = n + 1 WHERE id = {n % 20000}")
                cursor.execute(
                    f"INSERT INTO {table} VALUES ({20001 + n}, 'w', {seed}) ON CONFLICT DO NOTHING"
                )
                if n % 16 > 12:
                    cursor.execute(f"DELETE FROM {table} WHERE id = {n // 7 % 20000}")
                cursor.execute("ROLLBACK" if n % 11 == 0 else "COMMIT")

    writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for writer in writers:
        writer.start()
    replicas = []
    try:
        for n in range(6):
            time.sleep(0.1)
            replica = Replica(tmp_path / str(n), [following(logical, table, key=(), slot=f"{table}_{n}")])
            replica.step()
            replicas.append(replica)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    for replica in replicas:
        replica.follow()
        assert replica.rows(table) == source(logical, replica.plans[table])


def test_a_commit_that_waits_for_a_standby_is_not_lost(logical: Database, table: str, tmp_path: Path) -> None:
    """Its commit lies in the log before the slot's position, but nobody sees it yet: the snapshot waits for it.

    The slot is made in three steps, each of which waits for the transactions of the one before. So one
    transaction holds the first step, one the second, and the third commits in between.
    """
    replica = Replica(tmp_path, [following(logical, table)])
    reader = threading.Thread(target=replica.step)
    writer = threading.Thread(target=logical.execute, args=(f"INSERT INTO {table} VALUES (1, 'waits', 1)",))
    logical.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", as_superuser=True)
    logical.execute("SELECT pg_reload_conf()", as_superuser=True)
    try:
        with open_transaction(logical, table, 2) as first:
            reader.start()
            until_row(logical, f"{BLOCKED} AND transactionid = '{first}'::xid")
            holding = open_transaction(logical, table, 3)
            second = holding.__enter__()
        until_row(logical, f"{BLOCKED} AND transactionid = '{second}'::xid")
        writer.start()
        until_row(logical, "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        holding.__exit__(None, None, None)
        time.sleep(1)
    finally:
        logical.execute("ALTER SYSTEM RESET synchronous_standby_names", as_superuser=True)
        logical.execute("SELECT pg_reload_conf()", as_superuser=True)
        writer.join(HUNG_S)
        reader.join(HUNG_S)
    replica.follow()
    assert replica.rows(table) == source(logical, replica.plans[table])


@contextmanager
def open_transaction(logical: Database, table: str, row: int) -> Iterator[str]:
    """A transaction that has written, and is rolled back at the end: its number."""
    with logical.connected() as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"INSERT INTO {table} VALUES ({row}, 'never', 1)")
        cursor.execute("SELECT pg_current_xact_id()::xid::text")
        yield cursor.fetch_arrow_table().column(0)[0].as_py()
        cursor.execute("ROLLBACK")


def until_row(logical: Database, query: str) -> None:
    """Wait until a query has a row."""

    def there() -> bool:
        found = logical.execute(f"SELECT EXISTS ({query})")
        return found is not None and bool(found.column(0)[0].as_py())

    until(there, query)


def test_a_transaction_that_does_not_end(logical: Database, table: str, tmp_path: Path) -> None:
    """Said with its process."""
    replica = Replica(tmp_path, [following(logical, table, patience_us=500_000)])
    with logical.connected() as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"INSERT INTO {table} VALUES (1, 'x', 1)")
        with pytest.raises(NotReady, match=r"cannot be made while the transaction of process \d+ runs"):
            replica.step()
        cursor.execute("COMMIT")
    replica.restart()
    replica.step()
    assert replica.rows(table) == source(logical, replica.plans[table])


def test_several_tables_share_a_slot(logical: Database, table: str, tmp_path: Path) -> None:
    """One peek for all of them, each with its own rows; a table that two inputs read is read for both."""
    other = f"{table}_other"
    logical.execute(f"CREATE TABLE {other} (id bigint PRIMARY KEY, v text, n numeric(12,2))")
    logical.execute(f"ALTER PUBLICATION p_{table} ADD TABLE {other}")
    one, two = (following(logical, name, slot=table, publication=f"p_{table}") for name in (table, other))
    again = Plan("again", one.config.__class__(
        configs_named(one, "again"), one.config.slot, one.config.publication, one.config.key), SCHEMA)  # fmt: skip
    replica = Replica(tmp_path, [one, two, again])
    replica.step()
    for name in (table, other):
        logical.execute(f"INSERT INTO {name} SELECT i, '{name}', i FROM generate_series(1, 50) i")
    replica.follow()
    assert replica.rows(table) == replica.rows("again") == source(logical, one)
    assert replica.rows(other) == source(logical, two)
    logical.execute(f"DROP TABLE {other}")


def configs_named(plan: Plan, name: str) -> object:
    from dataclasses import replace

    return replace(plan.config.server, name=name)


def test_a_new_process_goes_on(logical: Database, table: str, tmp_path: Path) -> None:
    """With what is on the disk; batches that were not forgotten are read again as they were."""
    logical.execute(f"INSERT INTO {table} SELECT i, 'v' || i, i FROM generate_series(1, 1000) i")
    replica = Replica(tmp_path, [following(logical, table)])
    replica.step(forget=False)
    logical.execute(f"UPDATE {table} SET n = 0")
    replica.restart()
    replica.step(forget=False)
    logical.execute(f"DELETE FROM {table} WHERE id > 500")
    replica.restart()
    replica.step(forget=False)
    assert replica.rows(table) == source(logical, replica.plans[table])
    afresh = Replica(tmp_path, [following(logical, table)])
    afresh.step()
    assert afresh.rows(table) == replica.rows(table)
    assert afresh.changes == replica.changes
    assert not list(tmp_path.glob("**/*.arrow"))


def test_a_backlog_is_read_in_parts_or_whole(logical: Database, table: str, tmp_path: Path) -> None:
    """Each part ends with a transaction. A run that ends once it has read all takes all at once."""
    from joinlib.source.postgres.feed import Feed

    parts = Replica(tmp_path / "parts", [following(logical, table, slot=f"{table}_1")])
    whole = Replica(tmp_path / "whole", [following(logical, table, slot=f"{table}_2")], whole=True)
    for replica in (parts, whole):
        feed = replica.inputs[table]._feed  # type: ignore[attr-defined]
        assert isinstance(feed, Feed)
        feed._most = 50
        replica.step()
    for n in range(20):
        logical.execute(
            f"INSERT INTO {table} SELECT i, 'v', i FROM generate_series({n * 10}, {n * 10 + 9}) i"
        )
    assert whole.step() == 200
    assert 50 <= parts.step() + 10 <= 100
    parts.follow()
    assert parts.rows(table) == whole.rows(table) == source(logical, parts.plans[table])


def test_nothing_is_asked_for_while_nothing_happens(logical: Database, table: str, tmp_path: Path) -> None:
    replica = Replica(tmp_path, [following(logical, table)])
    replica.step()
    log = tmp_path / "postgres" / table / "log.jsonl"
    before = log.read_bytes()
    for _ in range(5):
        assert replica.step() == 0
    assert log.read_bytes() == before


@pytest.mark.parametrize("error", [SpecError])
def test_a_slot_of_somebody_else(
    logical: Database, table: str, tmp_path: Path, error: type[Exception]
) -> None:
    """A slot that is there before the checkpoint is not ours to move."""
    Replica(tmp_path / "one", [following(logical, table)]).step()
    with pytest.raises(error, match="is there already, and this checkpoint has not made it"):
        Replica(tmp_path / "two", [following(logical, table)]).step()
