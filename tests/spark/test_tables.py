"""Streams joined with tables, through `run`: a real PostgreSQL and files; the same SQL in the oracle has the same rows."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as pad
import pytest

from joinlib.checkpoint import batches
from joinlib.direct.report import Report
from joinlib.errors import NotReady, SpecError
from joinlib.lookup.spill import PARTS
from joinlib.model.tuning import Tuning
from joinlib.spark.job import RunningJob
from tests.postgres.database import PASSWORD, Database
from tests.spark.trial import Trial, plain, table_of, until

pytestmark = pytest.mark.spark

ORDERS = "id BIGINT, customer BIGINT, item STRING, at TIMESTAMP"
CUSTOMERS = "id BIGINT, name STRING, region BIGINT"
REGIONS = "id BIGINT, item STRING, label STRING"
SHIPS = "id BIGINT, carrier STRING"
INNER = "SELECT o.id AS id, c.name AS name FROM orders o JOIN customers c ON o.customer = c.id"
LEFT = INNER.replace("JOIN", "LEFT JOIN")
CHAIN = (
    "SELECT o.id AS id, c.name AS name, r.label AS label FROM orders o"
    " LEFT JOIN customers c ON o.customer = c.id AND c.name <> 'n3'"
    " LEFT JOIN regions r ON c.region = r.id AND r.item = o.item"
    " WHERE r.label IS NULL OR r.label <> 'l4'"
)
AFTER_JOIN = (
    "SELECT o.id AS id, s.carrier AS carrier, c.name AS name FROM orders o JOIN customers c ON o.customer = c.id"
    " LEFT JOIN ships s ON o.id = s.id WHERE c.name <> 'n2'"
)


@pytest.fixture(scope="module")
def server() -> Iterator[Database]:
    with Database() as db, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", PASSWORD)
        yield db


@pytest.fixture
def database(server: Database) -> Iterator[Database]:
    """The server without tables."""
    yield server
    if server.running:
        server.execute("DROP OWNED BY joiner")


def orders(start: int, count: int) -> list[tuple[Any, ...]]:
    """Every eleventh customer NULL, every thirteenth unknown."""
    return [
        (n, None if n % 11 == 0 else 900 + n if n % 13 == 0 else n % 23, f"i{n % 3}", None)
        for n in range(start, start + count)
    ]


CUSTOMER_ROWS = [(n % 20, f"n{n % 7}", n % 5) for n in range(25)] + [
    (None, "nobody", 1)
]  # five are there twice
REGION_ROWS = [(n, f"i{i}", f"l{n}") for n in range(4) for i in range(2)]
SHIP_ROWS = [(n, f"c{n % 3}") for n in range(0, 200, 2)]


def tabled(
    trial: Trial, database: Database, name: str, schema: str, rows: list[tuple[Any, ...]], **more: Any
) -> None:
    """A table in the database, and its rows for the oracle."""
    database.fill(name, table_of(schema, rows))
    trial.schemas[name] = schema
    trial.options[name] = {"postgres": {**database.fields, "table": name, **more}}


def streamed(trial: Trial, files: int = 3) -> None:
    trial.input("orders", ORDERS, maxFilesPerBatch=1, orderBy="name")
    trial.fill("orders", orders(0, 300), files)


FULL, ASKED, AUTO = {"cache": "full"}, {"cache": "incremental"}, {"cache": "auto"}
TINY = {"cache": "incremental", "budget": "40Ki"}
SCARCE = {"budget": "100"}
RUNS = [(INNER, FULL), (LEFT, TINY), (CHAIN, FULL), (CHAIN, ASKED), (AFTER_JOIN, AUTO), (AFTER_JOIN, SCARCE)]


@pytest.mark.parametrize(("sql", "mode"), RUNS)
def test_results_are_those_of_sql(trial: Trial, database: Database, sql: str, mode: dict[str, Any]) -> None:
    """Whatever is kept: duplicates, NULL keys, unknown keys, two tables, a table after a join of streams."""
    streamed(trial)
    tabled(trial, database, "customers", CUSTOMERS, CUSTOMER_ROWS, **mode)
    tabled(trial, database, "regions", REGIONS, REGION_ROWS, **mode)
    if "ships" in sql:
        trial.input("ships", SHIPS)
        trial.fill("ships", SHIP_ROWS, 1)
    trial.run(sql)
    assert trial.output(sql) == trial.expected(sql, customers=CUSTOMER_ROWS, regions=REGION_ROWS)


PRICES = "item STRING, low BIGINT, high BIGINT, price BIGINT"
PRICE_ROWS = [(f"i{n % 3}", n * 10, n * 10 + (25 if n % 4 else -5), n) for n in range(40)] + [
    (None, 0, 99, 1),
    ("i0", None, 9, 2),
]


@pytest.mark.parametrize(
    "on", ["o.item = p.item AND o.id BETWEEN p.low AND p.high", "o.id >= p.low AND o.id < p.high - 8"]
)
def test_ranges(trial: Trial, database: Database, on: str) -> None:
    """A band with a key, overlapping and inverted; and one without, over several units."""
    streamed(trial)
    tabled(trial, database, "prices", PRICES, PRICE_ROWS)
    sql = f"SELECT o.id AS id, p.price AS price FROM orders o LEFT JOIN prices p ON {on}"
    trial.run(sql)
    assert trial.output(sql) == trial.expected(sql, prices=PRICE_ROWS)


GROUPED = (
    "SELECT r.label AS label, count(*) AS n, sum(o.id) AS s, max(s.carrier) AS carrier FROM orders o"
    " LEFT JOIN customers c ON o.customer = c.id JOIN ships s ON o.id = s.id LEFT JOIN regions r ON c.region = r.id AND r.item = o.item"
    " WHERE o.customer NOT BETWEEN 3 AND 4 GROUP BY r.label HAVING count(*) > 2"
)


def test_rows_meet_tables_before_they_are_grouped(trial: Trial) -> None:
    """Over several batches, by a column of the second table, which is found by one of the first."""
    streamed(trial)
    trial.input("ships", SHIPS, maxFilesPerBatch=1, orderBy="name")
    trial.fill("ships", SHIP_ROWS, 3)
    trial.input("customers", CUSTOMERS, role="table")
    trial.fill("customers", CUSTOMER_ROWS, 2)
    trial.input("regions", REGIONS, format="csv", role="table")
    trial.fill("regions", REGION_ROWS, 1)
    ran = trial.run(GROUPED)
    assert trial.output(GROUPED) == trial.expected(GROUPED)
    assert trial.output(GROUPED).total() > 3
    assert len(ran.reports) > 3
    assert {len(r.tables) for report in ran.reports for r in report.receipts} == {0, 2}


def test_files_as_a_table(trial: Trial) -> None:
    """A folder with `role: table`, of several files and with a filter, in csv."""
    streamed(trial)
    trial.input("customers", CUSTOMERS, format="csv", role="table")
    trial.fill("customers", CUSTOMER_ROWS, 2)
    sql = LEFT + " AND c.region > 1"
    trial.run(sql)
    assert trial.output(sql) == trial.expected(sql)


@pytest.mark.parametrize("direct", [False, True])
def test_one_query_a_batch_and_none_when_warm(trial: Trial, database: Database, direct: bool) -> None:
    """Four batches over the same keys on one unit: the first asks once, for every key once, also those that are not there.

    The process that runs small batches without Spark finds what Spark's has kept.
    """
    streamed(trial, 1)
    tabled(trial, database, "customers", CUSTOMERS, CUSTOMER_ROWS, cache="incremental")
    tuning = Tuning(direct_after=1 if direct else 100)
    plan = trial.compiled(LEFT, tuning=tuning, join={"units": 1})
    before = database.log.count("ANY($1)")

    def more(job: RunningJob, reports: list[Report]) -> None:
        until(job, lambda: len(reports) == 1 and job.direct == direct)
        for n in range(3):
            trial.write("orders", f"9{n}", orders(0, 300))
            until(job, lambda n=n: len(reports) == 2 + n)

    trial.watch(plan, more)
    assert database.log.count("ANY($1)") == before + 1
    assert trial.output(LEFT) == trial.expected(LEFT, customers=CUSTOMER_ROWS)


def test_the_database_is_killed_and_comes_back(trial: Trial, database: Database) -> None:
    """While the job runs; it waits, and nothing is lost or doubled. Away for good, the job stops, and goes on when run again."""
    streamed(trial, 1)
    tabled(
        trial,
        database,
        "customers",
        CUSTOMERS,
        CUSTOMER_ROWS,
        cache="incremental",
        refresh="1ms",
        patience="40s",
    )
    plan = trial.compiled(LEFT)

    def outage(job: RunningJob, reports: list[Report]) -> None:
        until(job, lambda: len(reports) == 1)
        database.crash()
        trial.write("orders", "91", orders(300, 200))
        time.sleep(2)
        assert len(reports) == 1
        database.start()
        until(job, lambda: len(reports) == 2)

    trial.watch(plan, outage)
    assert trial.output(LEFT) == trial.expected(LEFT, customers=CUSTOMER_ROWS)
    database.crash()
    trial.write("orders", "92", orders(600, 100))
    impatient = {**trial.options["customers"]["postgres"], "patience": "500ms"}
    trial.options["customers"] = {"postgres": impatient}
    try:
        with pytest.raises(NotReady) as gone:
            trial.run(LEFT)
        assert "inputs.customers: Connection refused" in plain(gone.value)
    finally:
        database.start()
    trial.run(LEFT)
    assert trial.output(LEFT) == trial.expected(LEFT, customers=CUSTOMER_ROWS)


def test_a_table_is_reloaded_while_the_job_runs(trial: Trial, database: Database) -> None:
    """Each batch sees one version, whole; an emptied table and one that is gone keep the version of before."""
    streamed(trial, 1)
    rows = [(n, "v1", 0) for n in range(23)]
    tabled(trial, database, "customers", CUSTOMERS, rows, cache="full", refresh="200ms")
    plan = trial.compiled(INNER)

    def names(batch: int) -> set[str]:
        found = pad.dataset(str(trial.out / f"batch={batch}")).to_table()
        return set(found.column("name").to_pylist())

    def change(job: RunningJob, reports: list[Report]) -> None:
        def batch(file: str) -> set[str]:
            seen = len(reports)
            trial.write("orders", file, orders(0, 300))
            until(job, lambda: len(reports) == seen + 1)
            return names(reports[-1].batch)

        until(job, lambda: len(reports) == 1)
        assert names(0) == {"v1"}
        database.execute("UPDATE customers SET name = 'v2'")
        seen = [batch(f"1{n}") for n in range(8)]
        assert all(len(s) == 1 for s in seen), "a batch sees one version"
        assert seen[-1] == {"v2"}
        database.execute("DELETE FROM customers")
        assert [batch(f"2{n}") for n in range(4)] == [{"v2"}] * 4
        database.execute("DROP TABLE customers")
        assert [batch(f"3{n}") for n in range(4)] == [{"v2"}] * 4

    trial.watch(plan, change)
    kept = [f.name for f in (trial.folder / "checkpoint" / "tables" / "c").iterdir()]
    assert len(kept) <= 3, "versions that no batch asks for are deleted"


QUERY = "ANY($1)"


def test_a_server_with_one_connection(trial: Trial, database: Database) -> None:
    """Driver and two workers take turns, the result is whole; a query is one for a unit and batch, however often it waits."""
    streamed(trial, 1)
    tabled(trial, database, "customers", CUSTOMERS, CUSTOMER_ROWS, cache="incremental", refresh="1ms")
    database.execute("ALTER ROLE joiner CONNECTION LIMIT 1", as_superuser=True)
    before = database.log
    try:
        ran = trial.run(LEFT)
    finally:
        database.execute("ALTER ROLE joiner CONNECTION LIMIT -1", as_superuser=True)
    said = database.log[len(before) :]
    assert trial.output(LEFT) == trial.expected(LEFT, customers=CUSTOMER_ROWS)
    receipts = [r.tables[0] for report in ran.reports for r in report.receipts]
    assert said.count(QUERY) == sum(t.queries for t in receipts) <= len(receipts)
    assert 0 < said.count("too many connections") < 40, "those that wait do not storm the server"


def test_slow_queries(trial: Trial, database: Database) -> None:
    """A query that takes too long is given up and asked again, less and less often; what waits does not pile up."""
    streamed(trial, 1)
    fields = {"cache": "incremental", "refresh": "1ms", "timeout": "300ms", "patience": "60s"}
    tabled(trial, database, "customers", CUSTOMERS, CUSTOMER_ROWS, **fields)
    plan = trial.compiled(LEFT)
    asked: list[int] = []

    def act(job: RunningJob, reports: list[Report]) -> None:
        until(job, lambda: len(reports) == 1)
        with database.connected() as connection, connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("LOCK TABLE customers IN ACCESS EXCLUSIVE MODE")
            before = database.log.count(QUERY)
            trial.write("orders", "91", orders(300, 200))
            time.sleep(5)
            asked.append(database.log.count(QUERY) - before)
            assert len(reports) == 1, "nothing comes out without an answer"
            cursor.execute("ROLLBACK")
        until(job, lambda: len(reports) == 2)

    trial.watch(plan, act)
    assert trial.output(LEFT) == trial.expected(LEFT, customers=CUSTOMER_ROWS)
    assert 2 <= asked[0] <= 16, "two workers, each with one query at a time, 0.3 s and a growing pause"


def test_a_whole_table_larger_than_its_budget(trial: Trial, database: Database) -> None:
    """It is read from the database aside, and searched in parts."""
    streamed(trial)
    tabled(trial, database, "customers", CUSTOMERS, CUSTOMER_ROWS, cache="full", budget="10")
    trial.run(LEFT)
    assert trial.output(LEFT) == trial.expected(LEFT, customers=CUSTOMER_ROWS) != Counter()
    (version,) = (trial.folder / "checkpoint" / "tables").glob("*/*")
    assert len(list(version.glob("*.rows.arrow"))) == PARTS


REFUSED = [
    ({"table": "nope"}, CUSTOMERS, 'relation "nope" does not exist'),
    ({}, CUSTOMERS + ", zip STRING", "has no column 'zip'"),
    ({"passwordEnv": "NOBODY"}, CUSTOMERS, "passwordEnv: the variable NOBODY is not set"),
]


@pytest.mark.parametrize(("fields", "schema", "message"), REFUSED)
def test_a_table_that_cannot_be_read_is_refused_at_once(
    trial: Trial, database: Database, fields: dict[str, Any], schema: str, message: str
) -> None:
    """Before anything is read, by a line that names the input."""
    streamed(trial)
    tabled(trial, database, "customers", CUSTOMERS, CUSTOMER_ROWS, **fields)
    trial.schemas["customers"] = schema
    sql = LEFT.replace("c.name AS name", "c.name AS name, c.zip AS zip") if "zip" in schema else LEFT
    with pytest.raises(SpecError) as refused:
        trial.run(sql)
    assert message in plain(refused.value)
    assert "inputs.customers" in str(refused.value)
    assert not list(trial.out.glob("batch=*"))


def test_the_password_is_nowhere(trial: Trial, database: Database, capfd: pytest.CaptureFixture[str]) -> None:
    """Not in the checkpoint, the output, the logs, nor on the command line of any process."""
    streamed(trial)
    tabled(trial, database, "customers", CUSTOMERS, CUSTOMER_ROWS, cache="incremental")
    seen: list[bytes] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.2):
            for line in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    seen.append(line.read_bytes())
                except OSError:
                    continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    plan = trial.compiled(LEFT)
    trial.run_plan(plan)
    stop.set()
    watcher.join()
    said = capfd.readouterr()
    secret = PASSWORD.encode()
    files = [f for f in trial.folder.rglob("*") if f.is_file()]
    assert len(files) > 10
    assert not [f for f in files if secret in f.read_bytes()]
    assert not [c for c in seen if secret in c]
    assert PASSWORD not in said.out + said.err + repr(plan)


def test_each_key_is_asked_for_in_one_unit_behind_joined_streams(trial: Trial, database: Database) -> None:
    """Four units of 2,000 orders a batch, nearly half of one customer: the rows go to the units by customer, evenly."""
    tabled(trial, database, "customers", CUSTOMERS, CUSTOMER_ROWS, cache="incremental", budget="100")
    trial.input("orders", ORDERS, maxFilesPerBatch=1, orderBy="name")
    trial.input("ships", SHIPS)
    hot = [(n, 7 if n % 2 else n % 300, f"i{n % 3}", None) for n in range(12_000)]
    trial.fill("orders", hot, 6)
    trial.fill("ships", [(n, f"c{n % 3}") for n in range(12_000)], 1)
    ran = trial.run(AFTER_JOIN, batch={"interval": "0s", "maxRows": 2_000})
    assert trial.output(AFTER_JOIN) == trial.expected(AFTER_JOIN, customers=CUSTOMER_ROWS)
    kept = {r.unit: r.tables[0].rows for report in ran.reports for r in report.receipts if r.tables}
    assert sum(kept.values()) < 2 * len(CUSTOMER_ROWS), "a few keys lie in two units, and no more"
    last = batches.offset(trial.folder / "checkpoint" / "spark", len(ran.reports) - 1)
    assert last["rules"]["1"]["hot"], "the rule of the stage behind the join"
    assert last["skew"]["rule"] < 0.2 < 0.6 < last["skew"]["hash"]


def test_caches_and_units_change_in_the_life_of_a_checkpoint(trial: Trial, database: Database) -> None:
    """With and without a stage that asks, which has no state: more rows each time, and one of them in more units."""
    trial.input("orders", ORDERS, maxFilesPerBatch=1, orderBy="name")
    trial.input("ships", SHIPS)
    trial.fill("ships", SHIP_ROWS, 1)
    sql, stages = AFTER_JOIN.replace("LEFT JOIN", "JOIN"), list[int]()
    for number, (mode, units) in enumerate([(FULL, 4), (SCARCE, 4), (SCARCE, 8), (ASKED, 8), (SCARCE, 8)]):
        database.execute("DROP TABLE IF EXISTS customers")
        tabled(trial, database, "customers", CUSTOMERS, CUSTOMER_ROWS, **mode)
        trial.write("orders", f"{number:03d}", orders(40 * number, 60))
        ran = trial.run(sql, join={"units": units})
        stages.append(1 + max(r.unit for report in ran.reports for r in report.receipts) // units)
        assert trial.output(sql) == trial.expected(sql, customers=CUSTOMER_ROWS)
    assert stages == [1, 2, 2, 1, 2]
