"""The path of a batch through source, exchange and units, tables included, in one process and without Spark."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow.parquet as pq
import pytest

from joinlib.compiled import Compiled, compiled, with_tables
from joinlib.engine import checks as inputs
from joinlib.engine.composer import Composer
from joinlib.engine.reading import read
from joinlib.engine.receipt import decode
from joinlib.engine.unit import UnitTask
from joinlib.errors import NotReady
from joinlib.inprocess import InProcess
from joinlib.lookup.spill import PARTS
from joinlib.lookup.used import Used, total
from joinlib.lookup.version import Version
from joinlib.route.hotspot import skew
from joinlib.route.slots import slots
from joinlib.sink.publish import publish
from joinlib.sink.sink import open_sink
from joinlib.spec import parse

SCHEMAS = {
    "orders": "id BIGINT, customer BIGINT, item STRING",
    "ships": "id BIGINT, carrier STRING",
    "customers": "id BIGINT, name STRING",
    "prices": "item STRING, low BIGINT, high BIGINT, price BIGINT",
}
MADE = {
    "orders": "SELECT i AS id, CASE WHEN i % 7 <> 0 THEN i % 23 END AS customer, 'i' || i % 3 AS item FROM range(200) t(i)",
    "ships": "SELECT i * 2 AS id, 'c' || i % 3 AS carrier FROM range(80) t(i)",
    "customers": "SELECT i % 20 AS id, 'n' || i % 6 AS name FROM range(25) t(i)",
    "prices": "SELECT 'i' || i % 3 AS item, i * 10 AS low, i * 10 + 25 AS high, i AS price FROM range(30) t(i)",
}
QUERIES = [
    "SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id AND c.name <> 'n3'",
    (
        "SELECT o.id, c.name, p.price FROM orders o LEFT JOIN customers c ON o.customer = c.id"
        " LEFT JOIN prices p ON p.item = o.item AND o.id BETWEEN p.low AND p.high"
    ),
    "SELECT o.id, p.price FROM orders o JOIN prices p ON o.id >= p.low AND o.id < p.high",
    "SELECT o.id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM customers c WHERE c.id = o.customer AND c.name <> 'n3')",
    "SELECT o.id, s.carrier FROM orders o LEFT JOIN ships s ON o.id = s.id WHERE o.customer IN (SELECT id FROM customers c WHERE 1 = 1)",
    "SELECT o.id, s.carrier, c.name FROM orders o JOIN customers c ON o.customer = c.id JOIN ships s ON o.id = s.id",
    "SELECT o.id, s.carrier, c.name FROM customers c RIGHT JOIN orders o ON o.customer = c.id LEFT JOIN ships s ON o.id = s.id",
]


TABLES = ("customers", "prices")


class Bench:
    """A spec that is run by hand."""

    def __init__(self, folder: Path, sql: str, budget: str = "256Mi") -> None:
        self.folder, self.db = folder, duckdb.connect()
        for name, made in MADE.items():
            (folder / name).mkdir()
            self.write(name, made, "a")
        given: dict[str, Any] = {
            n: {
                "schema": s,
                "files": {"path": n, **({"budget": budget} if n in TABLES else {})},
                **({"role": "table"} if n in TABLES else {}),
            }
            for n, s in SCHEMAS.items()
            if f" {n} " in sql
        }
        self.spec = {
            "sql": sql,
            "inputs": given,
            "output": {"files": {"path": "out"}},
            "checkpoint": {"path": "ck"},
        }
        self.plan = self._compiled()
        self.composer, self.saved, self.batch = Composer(self.plan.source), {}, 0
        self.offset = self.composer.initial()
        self.rows_in: list[list[int]] = []  # of each batch, by unit
        self.used: list[list[tuple[Used, ...]]] = []

    def write(self, name: str, made: str, file: str) -> None:
        self.db.execute(f"COPY ({made}) TO '{self.folder / name / file}.parquet' (FORMAT parquet)")

    def _compiled(self) -> Compiled:
        head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "bench"}}
        spec = {**self.spec, "join": {"units": 4}}
        plan = compiled(parse(orjson.dumps({**head, "spec": spec}).decode(), "spec.yaml", self.folder), 2)
        return with_tables(plan, inputs.tables(plan.source.tables))

    def run(self, close: bool = False) -> None:
        """One batch, and one more that closes the inputs."""
        if close:
            self.composer.bound()
        while (end := self.composer.after(self.offset)) != self.offset:
            end = orjson.loads(orjson.dumps(end))
            parts = self.composer.parts(self.offset, end)
            sent = [
                row
                for part in parts
                for rows in read(self.plan.source, part, None)
                for row in rows.to_pylist()
            ]
            files: list[str] = []
            sink = open_sink(
                self.plan.join.sink,
                self.plan.join.pipeline.schema,
                self.plan.join.tuning,
                partition=0,
                batch=self.batch,
                attempt=0,
            )
            self.rows_in.append([])
            self.used.append([])
            for unit, slot in enumerate(slots(self.plan.pipeline.units)):
                own = [tuple(row.values()) for row in sent if row["slot"] == slot]
                task = UnitTask(self.plan.join, unit, self.batch, self.saved.get(unit))
                receipt, _ = task.receipt(own, lambda m, _, unit=unit: self.saved.__setitem__(unit, m), sink)
                files += receipt.files
                self.rows_in[-1].append(sum(receipt.rows_in))
                self.used[-1].append(decode(receipt.encode()).tables)
            sink.close()
            publish(self.folder / "out", self.batch, files, "")
            self.composer.commit(end)
            self.offset, self.batch = end, self.batch + 1

    def output(self) -> Counter[tuple[Any, ...]]:
        files = sorted((self.folder / "out").glob("batch=*/*.parquet"))
        return Counter(
            row
            for f in files
            for row in zip(*(c.to_pylist() for c in pq.read_table(f, partitioning=None).columns))
        )

    def expected(self) -> Counter[tuple[Any, ...]]:
        for name in SCHEMAS:
            self.db.execute(f"CREATE OR REPLACE VIEW {name} AS FROM '{self.folder / name}/*.parquet'")
        return Counter(self.db.sql(self.spec["sql"]).fetchall())


@pytest.fixture(autouse=True)
def _local(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMJOIN_LOCAL_DIR", str(tmp_path_factory.mktemp("indexes")))


@pytest.mark.parametrize("budget", ["256Mi", "200"])
@pytest.mark.parametrize("sql", QUERIES)
def test_a_stream_meets_tables(tmp_path: Path, sql: str, budget: str) -> None:
    """One and several tables, by keys and ranges, alone and after a join of streams, in two batches.

    They fit the budget, or are in parts.
    """
    bench = Bench(tmp_path, sql, budget)
    bench.run()
    for task in bench.plan.source.tables:
        in_parts = budget == "200" and task.lookup.table.keys
        assert len(list(task.version(1).glob("*rows.arrow"))) == (PARTS if in_parts else 1)
        assert [f.name for f in task.folder.iterdir()] == ["00000001"], "nothing is left aside"
    bench.write("orders", MADE["orders"].replace("range(200)", "range(200, 260)"), "b")
    bench.run(close=True)
    assert bench.batch >= 2
    assert bench.output() == bench.expected() != Counter()


def test_a_new_version_alone_starts_no_batch(tmp_path: Path) -> None:
    """And a batch that is planned again has the version that it had, also in a reader that is new."""
    bench = Bench(tmp_path, QUERIES[0])
    start = bench.offset
    bench.run()
    assert bench.composer.after(bench.offset) == bench.offset
    assert bench.offset["tables"] == {"c": 1}
    again = Composer(bench.plan.source)
    assert [p.versions for p in again.parts(start, bench.offset) if p.versions] == [((0, ((0, 1),)),)]
    folders = tmp_path / "ck" / "tables" / "c"
    assert [f.name for f in folders.iterdir()] == ["00000001"]


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]


@pytest.mark.parametrize("file", ["rows.arrow", "starts.i32", "lows.u64", "digests"])
@pytest.mark.parametrize("damaged", [flipped, lambda _: b"", None])
def test_a_damaged_version_is_never_joined_and_loaded_again(tmp_path: Path, file: str, damaged: Any) -> None:
    """One bit turned, cut to nothing, or gone: whoever opens it says so, and a batch that is planned again has it whole."""
    bench = Bench(tmp_path, QUERIES[2])
    start = bench.offset
    bench.run()
    (task,) = bench.plan.source.tables
    path = task.version(1) / file
    before = {f.name: f.read_bytes() for f in task.version(1).iterdir()}
    path.unlink() if damaged is None else path.write_bytes(damaged(before[file]))

    with pytest.raises(NotReady, match=r"table .*/00000001 is damaged .*; run again, it is loaded again"):
        Version(task.version(1), task.lookup.table.keys, ranged=True)
    Composer(bench.plan.source).parts(start, bench.offset)
    assert {f.name: f.read_bytes() for f in task.version(1).iterdir()} == before


def test_what_a_driver_left_that_died_while_it_loaded_is_swept(tmp_path: Path) -> None:
    """It stands aside, and nobody would ever look at it again."""
    left = tmp_path / "ck" / "tables" / "c" / ".00000001.a1b2c3d4"
    bench = Bench(tmp_path, QUERIES[0])
    left.mkdir(parents=True)
    bench.run()

    assert [f.name for f in left.parent.iterdir()] == ["00000001"]


def test_receipts_tell_of_tables(tmp_path: Path) -> None:
    """Every row whose key is not NULL is a lookup, of each table in turn; how the load went is beside the offset."""
    bench = Bench(tmp_path, QUERIES[1])
    bench.run()
    customers, prices = (total(of_one) for of_one in zip(*bench.used[0], strict=True))
    keys = bench.db.sql(f"SELECT count(customer) FROM '{tmp_path}/orders/*.parquet'").fetchall()
    assert keys == [(customers.hits,)]
    assert (customers.rows, customers.version, customers.misses, customers.queries) == (25, 1, 0, 0)
    assert (prices.rows, prices.version) == (30, 1)
    assert prices.hits >= 200
    assert 0 < customers.bytes < customers.budget == 256 << 20
    assert {name: load["version"] for name, load in bench.offset["loads"].items()} == {"c": 1, "p": 1}


def test_hot_keys_are_spread(tmp_path: Path) -> None:
    """Half of all rows have one key: from the second batch on four units share it, and the answer is that of SQL."""
    bench = Bench(tmp_path, QUERIES[0].replace(" JOIN", " LEFT JOIN"))
    made = "SELECT i AS id, CASE WHEN i % 2 = 0 THEN 3 ELSE i % 1000 END AS customer, 'x' AS item FROM range({}, {}) t(i)"
    starts = []
    for file in range(4):
        bench.write("orders", made.format(file * 5000, file * 5000 + 5000), f"b{file}")
        starts.append(bench.offset)
        bench.run()
    assert bench.output() == bench.expected()
    skews = [skew(rows) for rows in bench.rows_in]
    assert skews[0] > 0.5
    assert max(skews[1:]) < skews[0] / 3
    assert bench.offset["route"]["hot"]
    told = bench.offset["skew"]  # of the batch before
    assert told["rule"] == pytest.approx(skews[2])
    assert told["hash"] > 0.5
    hot = bench.offset["hot"]["orders"]
    assert 0.5 <= hot < 0.6, "keys that come once are not among them"
    planned = [Composer(bench.plan.source).parts(starts[3], bench.offset) for _ in range(2)]
    blocks = [[[b.to_pylist() for b in read(bench.plan.source, p, None)] for p in parts] for parts in planned]
    assert blocks[0] == blocks[1], "a batch that is run again goes the same ways"


def test_a_table_that_is_searched_by_ranges_alone_is_in_parts_of_any_rows(tmp_path: Path) -> None:
    """Each row looks into all of them; there is one for each quarter of the budget, more than two digits count."""
    bench = Bench(tmp_path, QUERIES[2], "200")
    for file in range(110):
        bench.write("prices", MADE["prices"], f"more{file:03d}")
    bench.run()
    (task,) = bench.plan.source.tables
    assert len(list(task.version(1).glob("*rows.arrow"))) > 100
    assert bench.output() == bench.expected() != Counter()


def test_a_batch_that_was_begun_when_a_table_was_too_large(tmp_path: Path) -> None:
    """It has no version of the table, which is kept whole when it runs again."""
    bench = Bench(tmp_path, QUERIES[0])
    run = InProcess(bench.plan)
    end = run.next()
    assert end is not None
    assert sum(told.receipt.rows_out for told in run.join({**end, "tables": {}}, 2)) > 0


@pytest.mark.parametrize("joined", [False, True])
def test_hot_keys_of_later_stages_are_spread(tmp_path: Path, joined: bool) -> None:
    """Of a second output that reads an input itself; and of a stage that asks, behind joined streams."""
    one, other = QUERIES[0], QUERIES[5].replace("c.name", "c.name AS name")
    bench = Bench(tmp_path, one)  # its files
    made = "SELECT i AS id, CASE WHEN i % 2 = 0 THEN 3 ELSE i % 1000 END AS customer, 'x' AS item FROM range({}, {}) t(i)"
    for file in range(3):
        bench.write("orders", made.format(file * 5000, file * 5000 + 5000), f"b{file}")
        bench.write(
            "ships",
            f"SELECT i AS id, 'c' AS carrier FROM range({file * 5000}, {file * 5000 + 5000}) t(i)",
            f"b{file}",
        )
    given = {
        n: {"schema": SCHEMAS[n], "files": {"path": n, **({} if n in TABLES else {"maxFilesPerBatch": 1})}}
        | ({"role": "table"} if n in TABLES else {})
        for n in ("orders", "ships", "customers")
    }
    outputs = {"a": {"sql": one.replace(" JOIN", " LEFT JOIN"), "noop": {}}, "b": {"sql": one, "noop": {}}}
    results = {"sql": other, "output": {"noop": {}}} if joined else {"outputs": outputs}
    inputs = given if joined else {n: given[n] for n in ("orders", "customers")}
    spec = {"inputs": inputs, "checkpoint": {"path": "other"}, "join": {"units": 4}, **results}
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "later"}}
    plan = compiled(parse(orjson.dumps({**head, "spec": spec}).decode(), "spec.yaml", tmp_path), 2)
    (*_, task) = plan.source.tables
    scarce = replace(task.lookup, caching=replace(task.lookup.caching, scarce=True))
    tables = *plan.source.tables[:-1], replace(task, lookup=scarce)
    run = InProcess(with_tables(plan, tables))
    while (end := run.next()) is not None:
        run.join(end, 2)
        run.done(end)
    assert list(run.offset["rules"]) == ["1"]
    assert run.offset["rules"]["1"]["hot"]
    assert run.offset["skew"]["rule"] < 0.2 < 0.5 < run.offset["skew"]["hash"]

    later = InProcess(plan)  # to which the table is not too large any more
    later.offset, later.batch = run.offset, run.batch
    bench.write("orders", made.format(15000, 20000), "b9")
    end = later.next()
    assert end is not None
    later.join(end, 2)
    assert list(end["rules"]) == ([] if joined else ["1"])
