"""Processes and the server are killed while writers write: what is read is the table in the end, each row once."""

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from adbc_driver_manager import Error

from tests.patience import HUNG_S
from tests.postgres.database import Database
from tests.postgres.replica import Replica, following, source

TABLES = ("accounts", "branches", "notes", "moves")
SLOT = "kills"


@pytest.fixture
def shop(logical: Database) -> Iterator[Database]:
    """Four tables in one publication; the notes are large and stay in TOAST."""
    for table in TABLES:
        logical.execute(f"CREATE TABLE {table} (id bigint PRIMARY KEY, v text, n numeric(12,2))")
        logical.execute(f"INSERT INTO {table} SELECT i, '{table}', i FROM generate_series(1, 500) i")
    logical.execute("ALTER TABLE notes ALTER COLUMN v SET STORAGE EXTERNAL")
    logical.execute("UPDATE notes SET v = repeat(md5(id::text), 100)")
    logical.execute(f"CREATE PUBLICATION p_{SLOT} FOR TABLE {', '.join(TABLES)}")
    yield logical
    logical.execute(f"DROP PUBLICATION p_{SLOT}")
    for table in TABLES:
        logical.execute(f"DROP TABLE {table}")
    logical.execute(
        f"SELECT pg_drop_replication_slot(slot_name)::text FROM pg_replication_slots WHERE slot_name = '{SLOT}'"
    )


class Writers:
    """Transactions like pgbench's: several rows of several tables, new keys, rollbacks. They outlive the server."""

    def __init__(self, server: Database, count: int) -> None:
        self.server, self.stop, self.done = server, threading.Event(), 0
        self.threads = [threading.Thread(target=self._run, args=(random.Random(n),)) for n in range(count)]

    def __enter__(self) -> Self:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def _run(self, draw: random.Random) -> None:
        while not self.stop.is_set():
            try:
                with self.server.connected() as connection, connection.cursor() as cursor:
                    while not self.stop.is_set():
                        for statement in transaction(draw):
                            cursor.execute(statement)
                        self.done += 1
            except Error:  # the server is gone, or a key was there: the transaction is rolled back
                time.sleep(0.01)


def transaction(draw: random.Random) -> Iterator[str]:
    yield "BEGIN"
    for _ in range(draw.randint(1, 4)):
        table, row = draw.choice(TABLES), draw.randint(1, 600)
        match draw.randint(0, 9):
            case 0 | 1:
                yield f"INSERT INTO {table} VALUES ({row}, 'new', 0) ON CONFLICT (id) DO UPDATE SET n = -1"
            case 2 | 3:
                yield f"DELETE FROM {table} WHERE id = {row}"
            case 4 if table != "notes":  # whose large values are not sent with a new key
                yield f"UPDATE {table} SET id = {draw.randint(601, 10**9)} WHERE id = {row}"
            case 5:
                yield f"UPDATE {table} SET v = repeat('{row}', 900) WHERE id = {row}"
            case _:
                yield f"UPDATE {table} SET n = n + 1 WHERE id = {row}"
    yield draw.choice(["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"])


class Follower:
    """The process that reads. `run` starts another one, and returns when it is killed or has looked."""

    def __init__(self, server: Database, folder: Path, faults: Path, keyed: bool) -> None:
        self.server, self.folder, self.faults = server, folder, faults
        self.keyed = "keyed" if keyed else "whole"
        faults.mkdir()

    def run(self, seconds: float, point: str | None = None) -> bool:
        """Kill it after so long, or let it kill itself at a point; whether it has reached that."""
        if point:
            (self.faults / point).touch()
        with subprocess.Popen(
            [sys.executable, "-m", "tests.postgres.follower", str(self.server.port), self.folder, SLOT, self.keyed,
             *TABLES],
            env={**os.environ, "STREAMJOIN_FAULTS": str(self.faults)}, stdout=subprocess.PIPE,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            try:
                if point is None:
                    process.stdout.readline()
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                return False
        assert process.returncode == -9
        return True


def check(shop: Database, folder: Path, key: tuple[str, ...]) -> None:
    """All that was spooled, by whichever process, is the tables."""
    replica = Replica(
        folder, [following(shop, t, slot=SLOT, publication=f"p_{SLOT}", key=key) for t in TABLES]
    )
    for _ in range(100):
        if not replica.step(forget=False):
            break
    for table in TABLES:
        assert replica.rows(table) == source(shop, replica.plans[table]), table
    assert not list(folder.glob("**/*.arrow.*"))


def test_a_kill_at_every_point(shop: Database, tmp_path: Path) -> None:
    """Between any two effects: the slot is made; rows are on the disk; they are in the log; the slot moves.

    Rows are counted: what is read twice would be there twice.
    """
    for table in TABLES:
        shop.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    follower = Follower(shop, tmp_path / "spool", tmp_path / "faults", keyed=False)
    with Writers(shop, 2):
        for point in ("created:0", "peeked:0", "peeked:1", "logged:1", "peeked:2", "logged:3", "logged:4"):
            assert follower.run(HUNG_S, point), point
    check(shop, tmp_path / "spool", ())


@pytest.mark.slow
def test_kills_of_reader_and_server(shop: Database, tmp_path: Path) -> None:
    """At random moments. What was read before a kill is read again as it was."""
    draw = random.Random(7)
    follower = Follower(shop, tmp_path / "spool", tmp_path / "faults", keyed=True)
    with Writers(shop, 3) as writers:
        for n in range(12):
            crash = (
                threading.Timer(draw.uniform(1, 3), lambda: (shop.crash(), shop.start()))
                if n % 4 == 2
                else None
            )
            if crash:
                crash.start()
            follower.run(draw.uniform(0, 2))
            if crash:
                crash.join()
    assert writers.done > 500
    check(shop, tmp_path / "spool", ("id",))
