"""GROUP BY behind the stages of a join, from source to output, in one process and without Spark; DuckDB answers the same SQL."""

import random
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pytest

from joinlib.errors import SpecError
from joinlib.model.changelog import INSERT, POSTIMAGE
from tests.unit.engine.test_stages import PLAIN, SQL, TIMED, UNITS, Bench, fill

JOINED = SQL.partition(" FROM ")[2]
QUERIES = {
    "functions": (
        "SELECT c.nation AS nation, count(*) AS n, count(l.n) AS c, sum(l.n * i.price) AS paid, min(o.v) AS low,"
        f" max(l.item) AS item, avg(i.price) AS mean FROM {JOINED} GROUP BY c.nation"
    ),
    "having": f"SELECT 1 + sum(i.price) AS s, o.v % 5 AS r FROM {JOINED} GROUP BY o.v % 5 HAVING count(*) > 2",
    "one group": f"SELECT count(*) AS n, sum(l.n) AS s FROM {JOINED}",
    "no row": f"SELECT count(*) AS n, sum(l.n) AS s FROM {JOINED} WHERE o.v > 1000",
    "distinct": f"SELECT DISTINCT c.nation AS nation, l.item AS item FROM {JOINED}",
}
EVERY = frozenset(product(range(5), range(4)))


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
def test_groups_come_out_once(tmp_path: Path, name: str) -> None:
    """Each unit and batch runs twice, as after a death: the answer is DuckDB's, whole, and nothing of it comes again."""
    bench = Bench(tmp_path, PLAIN, False, QUERIES[name])
    fill(bench, range(3))
    bench.run(twice=EVERY)

    assert bench.output() == bench.expected() != Counter()
    said = [r for batch in bench.receipts for r in batch]
    assert sum(r.rows_out for r in said) == bench.output().total()
    assert all({r.unit for r in batch} == set(range(4 * UNITS)) for batch in bench.receipts)
    assert name == "distinct" or bench.state_rows[-1] == 0


@pytest.mark.slow
def test_distinct_rows_and_a_changelog_go_on_after_the_end(tmp_path: Path) -> None:
    """Nothing in them is final; groups that are cannot go on."""
    for mode, name in (("append", "distinct"), ("changelog", "functions"), ("append", "functions")):
        folder = tmp_path / mode / name
        folder.mkdir(parents=True)
        bench = Bench(folder, PLAIN, False, QUERIES[name], mode=mode)
        fill(bench, range(2))
        bench.run()
        fill(bench, range(2, 4))
        if (mode, name) == ("append", "functions"):
            with pytest.raises(SpecError, match="start with a new checkpoint"):
                bench.run()
            continue
        bench.run()
        if name == "distinct":
            assert bench.output() == bench.expected()
        else:
            assert followed(bench) == bench.expected() != Counter()


@pytest.mark.parametrize("name", ["functions", "one group", "no row"])
def test_a_changelog_leads_to_the_answer(tmp_path: Path, name: str) -> None:
    """In the order of batches the last row of a group is its value."""
    bench = Bench(tmp_path, PLAIN, False, QUERIES[name], mode="changelog")
    fill(bench, range(3))
    bench.run(twice=EVERY)

    assert followed(bench) == bench.expected() != Counter()


def followed(bench: Bench) -> Counter[Any]:
    """The table that a changelog keeps."""
    return Counter(tuple(row) for row in _followed(bench))


def _followed(bench: Bench) -> list[list[Any]]:
    """The rows of the table that a changelog keeps; its first column names the group, if there is one."""
    table: dict[Any, Any] = {}
    keyed = bool(bench.plan.pipeline.grouping and bench.plan.pipeline.grouping.keys)
    for at in range(bench.batch):
        files = [str(f) for f in (bench.folder / "out" / f"batch={at}").glob("*.parquet")]
        rows = duckdb.connect().read_parquet(files, hive_partitioning=False).fetchall() if files else []
        for *row, word, number in sorted(rows, key=lambda r: r[-2] in (INSERT, POSTIMAGE)):
            key = row[0] if keyed else ()
            assert number == at
            if word in (INSERT, POSTIMAGE):
                assert table.setdefault(key, row) is row
            else:
                assert table.pop(key) == row
    return list(table.values())


ALONE = "FROM orders o {} customers c ON o.customer = c.customer"
COUNTED = "SELECT o.v % 5 AS r, count(*) AS n"
PRICES = "FROM orders o JOIN lines l ON o.id = l.id LEFT JOIN items i ON l.item = i.item"
MET = "FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.customer = o.customer)"
LOOKED_UP = {
    "last stage": (QUERIES["functions"], ["customers", "items"]),
    "one stage": (f"SELECT i.price AS p, count(*) AS n {PRICES} GROUP BY i.price", ["items"]),
    "no stage": (
        f"SELECT c.nation AS nation, sum(o.v) AS s {ALONE.format('JOIN')} GROUP BY c.nation",
        ["customers"],
    ),
    "only its match counts": (f"{COUNTED} {ALONE.format('ANTI JOIN')} GROUP BY o.v % 5", ["customers"]),
    "one group": (f"SELECT count(c.nation) AS n {ALONE.format('LEFT JOIN')}", ["customers"]),
    "distinct": (f"SELECT DISTINCT c.nation AS nation {ALONE.format('LEFT JOIN')}", ["customers"]),
    "exists": (f"{COUNTED} {MET} GROUP BY o.v % 5 HAVING count(*) > 3", ["customers"]),
}


@pytest.mark.parametrize("mode", ["append", "changelog"])
@pytest.mark.parametrize("name", LOOKED_UP)
def test_rows_meet_tables_before_they_are_grouped(tmp_path: Path, name: str, mode: str) -> None:
    """Whichever stage is the last, and whether a table's columns are grouped, summed up or only decide which rows count."""
    sql, tables = LOOKED_UP[name]
    schemas = {n: s for n, s in PLAIN.items() if f" {n} " in sql}
    bench = Bench(tmp_path, schemas, False, sql, *tables, mode=mode)
    fill(bench, range(3))
    bench.run(twice=EVERY)

    found = bench.output() if mode == "append" else followed(bench)
    assert found == bench.expected() != Counter()


NEAR = "FROM a JOIN b ON a.k = b.k AND b.t BETWEEN a.t - INTERVAL 4 MINUTES AND a.t + INTERVAL 4 MINUTES"
LAST = " JOIN c ON b.j = c.j AND c.t BETWEEN a.t - INTERVAL 6 MINUTES AND a.t + INTERVAL 3 MINUTES"


@pytest.mark.slow
@pytest.mark.parametrize("joined", [NEAR, NEAR + LAST], ids=["one stage", "two stages"])
def test_minutes_come_out_when_they_have_passed(tmp_path: Path, joined: str) -> None:
    """By the watermark, long before the end, and never again: state stays small."""
    sql = f"SELECT minute(date_trunc('minute', b.t)) AS m, a.k AS k, count(*) AS n {joined} GROUP BY date_trunc('minute', b.t), a.k"
    bench = Bench(tmp_path, {n: TIMED[n] for n in ("abc" if LAST in joined else "ab")}, True, sql)
    start = datetime(2026, 1, 1)  # noqa: DTZ001 - as in most files, no zone
    for file in range(8):
        draw = random.Random(file)
        for name in bench.schemas:
            rows = []
            for at in range(30):
                time = start + timedelta(minutes=5 * file, seconds=10 * at + draw.randrange(-25, 25))
                rows.append((draw.randrange(4), draw.randrange(6), time))
            bench.write(name, file, rows)
    bench.run()

    assert bench.output() == bench.expected() != Counter()
    by_batch = [sum(r.rows_out for r in batch) for batch in bench.receipts]
    kept = [
        sum(r.state_rows for r in batch if r.unit // UNITS == len(bench.plan.pipeline.stages) - 1)
        for batch in bench.receipts
    ]
    assert sum(n > 0 for n in by_batch) > 4
    assert max(kept) < bench.output().total() / 2
    assert kept[-1] == 0


OF_CHANGES = (
    "SELECT c.nation AS nation, count(*) AS n, count(DISTINCT o.v) AS d, sum(DISTINCT o.v) AS s,"
    " sum(o.v) FILTER (WHERE o.v % 2 = 0) AS e, min(o.v) AS low, max(o.v) AS high, median(o.v) AS m,"
    " max_by(o.v, o.id) AS last, bool_or(o.v > 20) AS some, sum(o.d) AS exact, collect_list(o.v) AS every"
    " FROM orders o {} JOIN customers c ON o.customer = c.customer GROUP BY c.nation HAVING count(*) > 2"
)


@pytest.mark.parametrize("kind", ["", "LEFT"])
def test_groups_over_rows_that_change(tmp_path: Path, kind: str) -> None:
    """After each batch the changelog's table is DuckDB's answer over the rows that are there then."""
    schemas = {
        "orders": "id BIGINT, customer BIGINT, v BIGINT, d DOUBLE, op STRING",
        "customers": "customer BIGINT, nation STRING",
    }
    sql = OF_CHANGES.format(kind)
    bench = Bench(tmp_path, schemas, False, sql, mode="changelog", changing={"orders": {"op": "op"}})
    bench.db.execute("CREATE TABLE there (id BIGINT, customer BIGINT, v BIGINT, d DOUBLE)")
    expected = sql.replace("collect_list(o.v)", "list(o.v ORDER BY o.v)").replace("orders", "there")
    there: list[tuple[Any, ...]] = []
    seen: Counter[Any] = Counter()
    for file in range(6):
        draw = random.Random(file)
        gone = [
            there.pop(draw.randrange(len(there))) for _ in range(min(len(there), (0, 8, 30, 5, 99, 0)[file]))
        ]
        came = [
            (100 * file + n, draw.randrange(6), draw.randrange(30), draw.choice([0.1, 1e16, 0.25]))
            for n in range(20)
        ]
        there += came
        bench.write("orders", file, [(*row, "I") for row in came] + [(*row, "D") for row in gone])
        bench.write("customers", file, [(file % 6, f"n{file % 3}")])
        bench.run(twice=frozenset({(file, 0), (file, 1)}))
        bench.db.execute("DELETE FROM there")
        bench.db.executemany("INSERT INTO there VALUES (?, ?, ?, ?)", there)
        bench.db.execute(f"CREATE OR REPLACE VIEW customers AS FROM '{tmp_path}/customers/*.parquet'")
        answer = Counter(_plain(row) for row in bench.db.sql(expected).fetchall())
        assert Counter(_plain(row) for row in _followed(bench)) == answer
        seen += answer
    assert len(seen) > 8


def _plain(row: Iterable[Any]) -> tuple[Any, ...]:
    """Lists as tuples; sums of doubles as near as DuckDB's."""
    return tuple(
        tuple(v) if isinstance(v, list) else float(f"{v:.12g}") if isinstance(v, float) else v for v in row
    )
