"""What cannot be followed, or no longer: each said with its place, its reason and what to do about it."""

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from joinlib.errors import InputError, NotReady, SpecError, StateError
from joinlib.source import feeds
from tests.postgres.database import PASSWORD, Database
from tests.postgres.replica import SCHEMA, Replica, following, source

GONE = r"start with a new checkpoint and output"


def refused(logical: Database, table: str, folder: Path, said: str, **more: object) -> None:
    """By the check before a run, which makes nothing, and by the first look."""
    (feed,) = feeds([following(logical, table, **more)], folder)
    with pytest.raises(SpecError, match=said):
        feed.check()
    with pytest.raises(SpecError, match=said):
        Replica(folder, [following(logical, table, **more)]).step()
    found = logical.execute(f"SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{table}'")
    assert found is not None
    assert found.column(0)[0].as_py() == 0
    assert not folder.exists() or not list(folder.glob("**/*.jsonl"))


def test_a_server_that_does_not_decode(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE plain (id bigint PRIMARY KEY)")
    with pytest.raises(SpecError, match=r"wal_level = replica.* ALTER SYSTEM SET wal_level = logical"):
        Replica(tmp_path, [following(database, "plain")]).step()


def test_a_user_without_the_right(logical: Database, table: str, tmp_path: Path) -> None:
    logical.execute("ALTER ROLE joiner NOREPLICATION", as_superuser=True)
    try:
        refused(
            logical, table, tmp_path / "x", "user joiner may not read the log; run ALTER ROLE joiner REPL"
        )
    finally:
        logical.execute("ALTER ROLE joiner REPLICATION", as_superuser=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DROP PUBLICATION p_{t}", "publication p_{t} does not exist; run CREATE PUBLICATION p_{t} FOR TABLE {t}"),
        ("ALTER PUBLICATION p_{t} DROP TABLE {t}", "does not hold table public.{t}; run ALTER PUBLICATION p_{t} ADD"),
        ("ALTER PUBLICATION p_{t} SET (publish = 'insert, update')", "leaves out delete; run ALTER PUBLICATION"),
        ("ALTER PUBLICATION p_{t} SET TABLE {t} (id, v)", "leaves out column 'n' of table public.{t}; add it there"),
        ("ALTER TABLE {t} REPLICA IDENTITY NOTHING", "does not hold upsert.key.* REPLICA IDENTITY FULL"),
        ("ALTER TABLE {t} DROP CONSTRAINT {t}_pkey", "no primary key: remove upsert and run ALTER TABLE public.{t}"),
        ("ALTER TABLE {t} DROP COLUMN n", "table public.{t} has no column 'n'; it has id, v, extra"),
        ("ALTER TABLE {t} RENAME TO {t}_b", "relation {t} does not exist"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_followed(
    logical: Database, table: str, tmp_path: Path, change: str, said: str
) -> None:
    logical.execute(change.format(t=table))
    try:
        refused(logical, table, tmp_path / "x", said.format(t=table))
    finally:
        logical.execute(f"DROP TABLE IF EXISTS {table}_b")


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ((), r"old rows of table public.\w+ are not sent, and the input has no key; add upsert"),
        (("v",), r"upsert.key is no primary or unique key of table public.\w+; write upsert: {key: \[id\]}"),
    ],
)
def test_a_key_that_is_none(
    logical: Database, table: str, tmp_path: Path, key: tuple[str, ...], said: str
) -> None:
    refused(logical, table, tmp_path / "x", said, key=key)


def test_a_unique_key_needs_to_be_the_identity(logical: Database, table: str, tmp_path: Path) -> None:
    """Else a deletion would send the primary key alone."""
    logical.execute(f"ALTER TABLE {table} ALTER COLUMN v SET NOT NULL")
    logical.execute(f"CREATE UNIQUE INDEX {table}_v ON {table} (v)")
    refused(logical, table, tmp_path / "x", r"does not hold upsert.key.* use its columns \(id\)", key=("v",))
    logical.execute(f"ALTER TABLE {table} REPLICA IDENTITY USING INDEX {table}_v")
    replica = Replica(tmp_path, [following(logical, table, key=("v",))])
    replica.step()
    logical.execute(f"INSERT INTO {table} VALUES (1, 'a', 1), (2, 'b', 2)")
    logical.execute(f"UPDATE {table} SET id = 3 WHERE v = 'a'")
    logical.execute(f"UPDATE {table} SET v = 'c' WHERE v = 'b'")
    replica.follow()
    assert replica.rows(table) == source(logical, replica.plans[table])


def test_a_filter_of_the_publication(logical: Database, table: str, tmp_path: Path) -> None:
    """It holds for the snapshot as for the log."""
    logical.execute(f"INSERT INTO {table} SELECT i, 'v', i FROM generate_series(1, 20) i")
    logical.execute(f"ALTER PUBLICATION p_{table} SET TABLE {table} WHERE (id > 10)")
    replica = Replica(tmp_path, [following(logical, table)])
    replica.step()
    assert sorted(row[0] for row in replica.rows(table)) == list(range(11, 21))
    logical.execute(f"INSERT INTO {table} VALUES (0, 'v', 1), (30, 'v', 1)")
    logical.execute(f"UPDATE {table} SET id = 5 - id WHERE id = 15")
    replica.follow()
    assert sorted(row[0] for row in replica.rows(table)) == [*range(11, 15), *range(16, 21), 30]


def test_partitions_under_their_root(logical: Database, tmp_path: Path) -> None:
    logical.execute(
        "CREATE TABLE parts (id bigint PRIMARY KEY, v text, n numeric(12,2)) PARTITION BY HASH (id)"
    )
    for n in range(2):
        logical.execute(
            f"CREATE TABLE parts_{n} PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER {n})"
        )
    logical.execute("CREATE PUBLICATION p_parts FOR TABLE parts")
    logical.execute("INSERT INTO parts SELECT i, 'v', i FROM generate_series(1, 20) i")
    with pytest.raises(SpecError, match="publish_via_partition_root"):
        Replica(tmp_path / "x", [following(logical, "parts")]).step()
    logical.execute("ALTER PUBLICATION p_parts SET (publish_via_partition_root = true)")
    replica = Replica(tmp_path, [following(logical, "parts")])
    replica.step()
    logical.execute("UPDATE parts SET n = 7, id = id + 100 WHERE id % 3 = 0")
    replica.follow()
    assert replica.rows("parts") == source(logical, replica.plans["parts"])
    logical.execute("SELECT pg_drop_replication_slot('parts')::text")


@pytest.fixture
def followed(logical: Database, table: str, tmp_path: Path) -> Replica:
    logical.execute(f"INSERT INTO {table} SELECT i, 'v', i FROM generate_series(1, 20) i")
    replica = Replica(tmp_path / "r", [following(logical, table, patience_us=1_500_000)])
    replica.step()
    return replica


def test_a_slot_that_is_gone(logical: Database, table: str, followed: Replica) -> None:
    logical.execute(f"SELECT pg_drop_replication_slot('{table}')::text")
    for _ in range(2):
        with pytest.raises(InputError, match=f"slot {table} is gone, and with it the changes since .*{GONE}"):
            followed.step()
        followed.restart()


def test_a_slot_that_was_moved(logical: Database, table: str, followed: Replica) -> None:
    """By another reader, or because it was dropped and made again."""
    logical.execute(f"INSERT INTO {table} VALUES (21, 'lost', 1)")
    logical.execute(
        f"SELECT (pg_replication_slot_advance('{table}', pg_current_wal_flush_lsn())).end_lsn::text"
    )
    with pytest.raises(InputError, match=rf"slot {table} was moved to .* by somebody else.*{GONE}"):
        followed.step()
    logical.execute(f"SELECT pg_drop_replication_slot('{table}')::text")
    logical.execute(f"SELECT pg_create_logical_replication_slot('{table}', 'pgoutput')::text")
    followed.restart()
    with pytest.raises(InputError, match="was moved to"):
        followed.step()


def test_a_slot_of_another_plugin(logical: Database, table: str, followed: Replica) -> None:
    logical.execute(f"SELECT pg_drop_replication_slot('{table}')::text")
    logical.execute(f"SELECT pg_create_logical_replication_slot('{table}', 'test_decoding')::text")
    with pytest.raises(
        InputError, match="is of plugin test_decoding and database shop; it must be of pgoutput"
    ):
        followed.step()


def test_a_slot_that_is_in_use(logical: Database, table: str, followed: Replica, tmp_path: Path) -> None:
    """Waited for, as long as the patience lasts: the server may not know yet that a reader was killed."""
    address = f"host=127.0.0.1 port={logical.port} dbname=shop user=joiner"
    other = subprocess.Popen(
        [logical.bin / "pg_recvlogical", "-d", address, "--slot", table, "--start", "-o", "proto_version=1",
         "-o", f"publication_names=p_{table}", "-f", tmp_path / "stolen", "--no-loop", "-F", "0"],
        env={**os.environ, "PGPASSWORD": PASSWORD},
    )  # fmt: skip
    try:
        time.sleep(0.7)
        logical.execute("CREATE TABLE noise_of_the_log ()")
        with pytest.raises(NotReady, match=rf"slot \"{table}\" is active for PID \d+.* name another slot"):
            followed.step()
    finally:
        other.kill()
        other.wait()
        logical.execute("DROP TABLE noise_of_the_log")
    time.sleep(0.5)
    followed.restart()


def test_a_slot_that_lost_its_log(logical: Database, table: str, followed: Replica) -> None:
    logical.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'", as_superuser=True)
    logical.execute("SELECT pg_reload_conf()", as_superuser=True)
    try:
        for n in range(4):
            logical.execute(f"INSERT INTO {table} VALUES ({100 + n}, 'x', 1)")
            logical.execute("SELECT pg_switch_wal()::text", as_superuser=True)
        logical.execute("CHECKPOINT", as_superuser=True)
        with pytest.raises(
            InputError, match=f"slot {table} has lost changes.* max_slot_wal_keep_size.*{GONE}"
        ):
            followed.step()
    finally:
        logical.execute("ALTER SYSTEM RESET max_slot_wal_keep_size", as_superuser=True)
        logical.execute("SELECT pg_reload_conf()", as_superuser=True)


def test_a_table_that_was_truncated(logical: Database, table: str, followed: Replica) -> None:
    """Said again by each start: it does not pass."""
    logical.execute(f"TRUNCATE {table}")
    for _ in range(2):
        with pytest.raises(InputError, match=f"table public.{table} was truncated.* use DELETE instead"):
            followed.step()
        followed.restart()


def test_columns_that_come_go_and_change(logical: Database, table: str, followed: Replica) -> None:
    """What the schema does not name may come and go; what it names may become narrower."""
    logical.execute(f"ALTER TABLE {table} ADD COLUMN more int DEFAULT 5")
    logical.execute(f"INSERT INTO {table} VALUES (30, 'x', 1, 'extra', 6)")
    logical.execute(f"ALTER TABLE {table} DROP COLUMN extra")
    logical.execute(f"ALTER TABLE {table} ALTER COLUMN v TYPE varchar(9)")
    logical.execute(f"INSERT INTO {table} VALUES (31, 'y', 1, 7)")
    followed.follow()
    assert followed.rows(table) == source(logical, followed.plans[table])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("ALTER COLUMN n TYPE text", "column 'n' of table public.{t} has another type now, which does not fit decimal"),
        ("RENAME COLUMN n TO m", "table public.{t} has no column 'n' any more.* it has id, v, m, extra"),
        ("DROP COLUMN v", "table public.{t} has no column 'v' any more"),
        ("REPLICA IDENTITY NOTHING", "the replica identity of table public.{t} does not hold 'id' of upsert.key"),
    ],
)  # fmt: skip
def test_a_table_that_no_longer_fits(
    logical: Database, table: str, followed: Replica, change: str, said: str
) -> None:
    """Said at the first change after it."""
    logical.execute(f"ALTER TABLE {table} {change}")
    logical.execute(f"INSERT INTO {table} (id) VALUES (50)")
    with pytest.raises(InputError, match=said.format(t=table)):
        followed.step()


def test_a_null_where_none_may_be(logical: Database, table: str, tmp_path: Path) -> None:
    strict = pa.schema([SCHEMA.field("id"), SCHEMA.field("v").with_nullable(False)])
    replica = Replica(tmp_path, [following(logical, table, schema=strict)])
    replica.step()
    logical.execute(f"INSERT INTO {table} VALUES (1, 'x', 1)")
    logical.execute(f"DELETE FROM {table} WHERE id = 1")
    replica.step()
    logical.execute(f"INSERT INTO {table} VALUES (1, NULL, 1)")
    with pytest.raises(InputError, match="column 'v' is declared NOT NULL, but is NULL in table"):
        replica.step()


def test_inputs_of_one_slot_that_differ(logical: Database, table: str, tmp_path: Path) -> None:
    one = following(logical, table)
    other = replace(one, config=replace(one.config, publication="another"))
    with pytest.raises(SpecError, match="whose publication is another; write the same in both"):
        Replica(tmp_path, [one, replace(other, name="b")])


def test_another_input_over_a_slot_that_was_read(logical: Database, table: str, tmp_path: Path) -> None:
    """Its rows up to here were not kept."""
    one = following(logical, table)
    Replica(tmp_path, [one]).step()
    server = replace(one.config.server, name="late")
    late = replace(one, name="late", config=replace(one.config, server=server))
    with pytest.raises(
        StateError, match=rf"read for {table}, and now for {table}, late; give new inputs a slot"
    ):
        Replica(tmp_path, [one, late]).step()


def test_a_spool_that_lost_a_file(logical: Database, table: str, tmp_path: Path) -> None:
    logical.execute(f"INSERT INTO {table} VALUES (1, 'x', 1)")
    replica = Replica(tmp_path, [following(logical, table)])
    known = replica.inputs[table]
    slices = known.slices(0, known.discover())
    (file,) = tmp_path.glob("**/*.arrow")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(StateError, match=r"cannot be read .*restore the checkpoint"):
        list(known.reader.read_many(slices, ["id"]))
    file.unlink()
    with pytest.raises(StateError, match="cannot be read"):
        list(known.reader.read_many(slices, ["id"]))
    known.forget(1)
    with pytest.raises(StateError, match=r"lists slices 1 to 1 of \w+, but 0 to 1 were read"):
        known.slices(0, 1)
