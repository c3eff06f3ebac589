"""Database, driver, JVM and worker are killed while rows change; the table is what the inputs say in the end.

    files of changes ─► streamjoin run ─► table          every kill: SIGKILL, at a named point or at random
                            ▲  restarted when it ends

STREAMJOIN_FAULT_ROUNDS: how many kills at random (6 unless told); STREAMJOIN_FAULT_SEED: which, and when.
"""

import json
import os
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from joinlib.sink.postgres.outlet import TableOutlet
from tests.postgres.database import Database
from tests.spark.faults.drawn import SEED, drawn
from tests.spark.faults.flowing import RETRYING, Flowing, suffer
from tests.spark.faults.scenario import Run
from tests.spark.trial import Trial

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
ROUNDS = int(os.environ.get("STREAMJOIN_FAULT_ROUNDS", "6"))
VICTIMS = ("worker", "worker", "database", "worker", "database", "driver", "worker", "database", "jvm")
SQL = "SELECT o.id AS id, o.v AS v, c.name AS name FROM orders o LEFT JOIN customers c ON o.c = c.id"
INNER = "SELECT o.id AS id, o.v AS v, c.name AS name FROM orders o JOIN customers c ON o.c = c.id"
SCHEMAS = {
    "orders": "id BIGINT, c BIGINT, v BIGINT, op STRING",
    "customers": "id BIGINT, name STRING, op STRING",
}
MOST = 3  # files of a batch
ROWS, ORDERS, CUSTOMERS = 60, 200, 40
Rows = Counter[tuple[Any, ...]]


@dataclass
class Feed:
    """Files of both inputs, one after the other while it runs; and the tables that they lead to."""

    trial: Trial
    draw: random.Random
    mode: str
    files: int = 0
    orders: list[tuple[int, int, int]] = field(default_factory=list)
    customers: list[tuple[int, str]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def one(self) -> None:
        orders, customers = [], []
        for n in range(ROWS):
            op = "delete" if self.mode == "upsert" and self.draw.random() < 0.3 else "insert"
            order = (self.draw.randrange(ORDERS), self.draw.randrange(CUSTOMERS), self.draw.randrange(10**6))
            orders.append((*order, op))
            self.orders = self._after(self.orders, order, op)
            if n % 6 == 0:
                customer = (self.draw.randrange(CUSTOMERS), f"name {self.draw.randrange(10**6)}")
                customers.append((*customer, op))
                self.customers = self._after(self.customers, customer, op)
        self.trial.write("orders", f"{self.files:04d}", orders)
        self.trial.write("customers", f"{self.files:04d}", customers)
        self.files += 1

    def _after(self, rows: list[Any], row: tuple[Any, ...], op: str) -> list[Any]:
        others = [r for r in rows if self.mode == "append" or r[0] != row[0]]
        return others if op == "delete" else [*others, row]

    def expected(self) -> Rows:
        names: dict[int, list[str]] = {}
        for c, name in self.customers:
            names.setdefault(c, []).append(name)
        nobody: list[str | None] = [None] if self.mode == "upsert" else []
        return Counter((i, v, name) for i, c, v in self.orders for name in names.get(c) or nobody)

    def run(self) -> None:
        while not self.stopped.wait(0.5):
            self.one()


@dataclass
class Job(Flowing):
    """A job whose results go to a table, and its runs."""

    folder: Path
    database: Database
    mode: str
    runs: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.table = f"results_{self.mode}"
        key = " PRIMARY KEY" if self.mode == "upsert" else ""
        self.database.execute(f"DROP TABLE IF EXISTS {self.table}")
        self.database.execute(f"CREATE TABLE {self.table} (id bigint{key}, v bigint, name varchar)")
        self.trial = Trial(self.folder, None)  # type: ignore[arg-type]  # only its files are used
        for name, schema in SCHEMAS.items():
            self.trial.input(name, schema)
        self.spec = {
            "sql": SQL if self.mode == "upsert" else INNER,
            "inputs": {n: self._input(n) for n in SCHEMAS},
            "output": {
                "mode": self.mode,
                **({"key": ["id"]} if self.mode == "upsert" else {}),
                "postgres": {**self.database.fields, "table": self.table, "patience": "20s"},
            },
            "checkpoint": {"path": "checkpoint"},
            "join": {"units": 4},
        }
        head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "kills"}}
        (self.folder / "spec.yaml").write_text(json.dumps({**head, "spec": self.spec}))

    def _input(self, name: str) -> dict[str, Any]:
        files = {"path": name, "orderBy": "name", "maxFilesPerBatch": MOST}
        changing = {"changes": {"op": "op"}, "upsert": {"key": ["id"]}}
        return {"schema": SCHEMAS[name], "files": files, **(changing if self.mode == "upsert" else {})}

    def results(self) -> Rows:
        found = self.database.execute(f"SELECT id, v, name FROM {self.table}")
        assert found is not None
        return Counter(zip(*(c.to_pylist() for c in found.columns), strict=True))

    def staging(self) -> int:
        """How many staging tables there are."""
        found = self.database.execute("SELECT 1 FROM pg_class WHERE relname LIKE 'streamjoin_staged%'")
        assert found is not None
        return int(found.num_rows)


@contextmanager
def job(folder: Path, database: Database, mode: str) -> Iterator[Job]:
    """A job of which nothing runs on afterwards."""
    made = Job(folder, database, mode)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("mode", drawn("tables", ["upsert", "append"], 1))
def test_named_points(database: Database, tmp_path: Path, mode: str) -> None:
    """Killed after the copy, before, within and after the transaction, and with the database in between."""
    with job(tmp_path / "job", database, mode) as made:
        feed = Feed(made.trial, random.Random(1), mode)
        for _ in range(7 * MOST):
            feed.one()
        for fault in ("staged:0", "applied:1", "published:2", "collected:3"):
            run = made.begin("--until-done", "--conf", RETRYING, fault=fault)
            assert run.end() == -9, run.last_words()
            assert list((made.folder / "faults").iterdir()) == []
            if fault == "applied:1":
                database.crash()
                database.start()
        run = made.begin("--until-done", "--conf", RETRYING, fault="copied:4")
        assert run.end() == 0, run.last_words()
        assert list((made.folder / "faults").iterdir()) == []

        assert made.results() == feed.expected()
        assert made.staging() == 0


def test_the_table_is_right_after_kills(tmp_path: Path) -> None:
    """Whoever died, and however often the database came back without what was staged."""
    print(f"STREAMJOIN_FAULT_SEED={SEED}")
    draw = random.Random(SEED)
    with Database() as database, job(tmp_path / "job", database, "upsert") as made:
        feed = Feed(made.trial, random.Random(SEED), "upsert")
        feed.one()
        feeding = threading.Thread(target=feed.run)
        feeding.start()
        try:
            died = suffer(
                made, (database.crash, database.start), draw.sample(VICTIMS, len(VICTIMS)), ROUNDS, draw
            )
        finally:
            feed.stopped.set()
            feeding.join()
        last = made.begin("--until-done")
        assert last.end() == 0, last.last_words()
        print(f"{feed.files} files, {made.begun + 1} batches, {len(made.runs)} runs, killed: {died}")
        assert made.results() == feed.expected()
        assert made.staging() == 0
        assert died.total() == ROUNDS


def test_a_batch_is_computed_again(
    database: Database,
    trial: Trial,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The database has lost what tasks had staged, in the middle of a run: the run goes on by itself."""
    database.execute("CREATE TABLE again (k bigint, v bigint)")
    trial.input("a", "k BIGINT, v BIGINT")
    trial.input("b", "k BIGINT, v BIGINT")
    trial.fill("a", [(n, n) for n in range(50)], 2)
    trial.fill("b", [(n, -n) for n in range(50)], 2)
    take, lost = TableOutlet.take, []

    def losing(self: TableOutlet, batch: int, files: list[str]) -> None:
        if files and not lost:
            lost.append(batch)
            database.execute(f"TRUNCATE {self.target.staging}")
        take(self, batch, files)

    monkeypatch.setattr(TableOutlet, "take", losing)
    output = {"postgres": {**database.fields, "table": "again"}}
    sql = "SELECT a.k AS k, b.v AS v FROM a JOIN b ON a.k = b.k"
    trial.run(sql, output=output)
    found = database.execute("SELECT k, v FROM again ORDER BY k")
    assert found is not None
    assert (lost, found.column(1).to_pylist()) == ([0], [-n for n in range(50)])
