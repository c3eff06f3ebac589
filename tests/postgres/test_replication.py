"""Writers ─► PostgreSQL's log ─► a join of four tables ─► a table in PostgreSQL; driver, JVM, worker and server are killed.

After the writers stop, the table is what the query answers in the source.

STREAMJOIN_FAULT_ROUNDS: how many kills at random (6 unless told); STREAMJOIN_FAULT_SEED: which, and when.
"""

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.postgres.database import PASSWORD, USER, Database
from tests.postgres.test_log_kills import TABLES, Writers
from tests.spark.faults.drawn import SEED
from tests.spark.faults.flowing import Flowing, suffer
from tests.spark.faults.scenario import Run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
ROUNDS = int(os.environ.get("STREAMJOIN_FAULT_ROUNDS", "6"))
VICTIMS = ("worker", "database", "driver", "jvm", "worker", "database", "worker", "worker")
SLOT, ROWS = "replication", 300
SQL = """SELECT a.id AS id, COALESCE(n.id, 0) AS n_id, a.n AS amount, b.v AS branch, n.v AS note, m.n AS moved
FROM accounts a JOIN branches b ON a.id = b.id LEFT JOIN notes n ON b.n = n.n LEFT JOIN moves m ON a.id = m.id"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """A server that may be killed, with four published tables and the one that takes the join."""
    settings = {"wal_level": "logical", "max_connections": "60", "log_statement": "none"}
    with Database(**settings) as found:
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        found.execute(f"ALTER ROLE {USER} REPLICATION", as_superuser=True)
        for table in TABLES:
            found.execute(f"CREATE TABLE {table} (id bigint PRIMARY KEY, v text, n numeric(12,2))")
            found.execute(f"INSERT INTO {table} SELECT i, '{table}', i FROM generate_series(1, {ROWS}) i")
        found.execute("ALTER TABLE notes ALTER COLUMN v SET STORAGE EXTERNAL")
        found.execute("UPDATE notes SET v = repeat(md5(id::text), 100)")
        found.execute(f"CREATE PUBLICATION p_{SLOT} FOR TABLE {', '.join(TABLES)}")
        columns = "amount numeric(12,2), branch text, note text, moved numeric(12,2)"
        found.execute(f"CREATE TABLE joined (id bigint, n_id bigint, {columns}, PRIMARY KEY (id, n_id))")
        yield found


class Job(Flowing):
    """A job that keeps the table, and its runs."""

    def __init__(self, folder: Path, server: Database) -> None:
        self.folder, self.runs = folder, list[Run]()
        key = ["id", "n_id"]
        inputs = {
            table: {
                "schema": "id BIGINT, v STRING, n DECIMAL(12,2)",
                "postgres": {
                    **server.fields,
                    "table": table,
                    "patience": "20s",
                    "changes": {"slot": SLOT, "publication": f"p_{SLOT}"},
                },
                "upsert": {"key": ["id"]},
            }
            for table in TABLES
        }
        output = {
            "mode": "upsert",
            "key": key,
            "postgres": {**server.fields, "table": "joined", "patience": "20s"},
        }
        spec = {
            "sql": SQL,
            "inputs": inputs,
            "output": output,
            "checkpoint": {"path": "checkpoint"},
            "join": {"units": 4},
        }
        head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": SLOT}}
        (folder / "spec.yaml").write_text(json.dumps({**head, "spec": spec}))


def rows(server: Database, sql: str) -> Counter[tuple[Any, ...]]:
    """What a query answers; large texts by their digest."""
    found = server.execute(
        f"SELECT id, n_id, amount::text, branch, md5(note), moved::text FROM ({sql}) AS answer"
    )
    assert found is not None
    return Counter(zip(*(c.to_pylist() for c in found.columns), strict=True))


def test_the_joined_table_is_the_query_in_the_source(server: Database, tmp_path: Path) -> None:
    """Whoever died. Transactions touch several tables, move keys, are rolled back, and leave large values alone."""
    print(f"STREAMJOIN_FAULT_SEED={SEED}")
    job = Job(tmp_path, server)
    try:
        with Writers(server, 2) as writers:
            died = suffer(job, (server.crash, server.start), VICTIMS, ROUNDS, random.Random(SEED))
        last = job.begin("--until-done")
        assert last.end() == 0, last.last_words()
    finally:
        job.close()
    print(f"{writers.done} transactions, {job.begun + 1} batches, {len(job.runs)} runs, killed: {died}")
    expected = rows(server, SQL)
    found = rows(server, "SELECT * FROM joined")
    assert found - expected == Counter() and expected - found == Counter()
    assert expected.total() > ROWS // 4 and died.total() == ROUNDS
