"""Groups and their aggregates as they stand, in SQL, after each batch: as DuckDB makes them of the rows that have come."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from joinlib.checkpoint.planned import plan_of
from joinlib.model.tuning import Tuning
from joinlib.why.kept import rows, tables
from tests.laws.product import Course, own_folder
from tests.unit.why import lived as lives
from tests.unit.why.kept import CHANGELOG, Beside, asked, drawn, listed
from tests.unit.why.lived import document, lived, living
from tests.unit.why.test_answers import everything
from tests.unit.why.test_whynot import order

# New processes, other partitions, other units, and a batch that runs twice.
COURSE = Course((1, 2), twice=frozenset({1}), restart=frozenset({2}), units={3: 4})
WINDOWS = """SELECT window_start, customer, count(*) AS n, sum(amount) AS s
FROM TUMBLE(orders, at, INTERVAL 1 MINUTE) GROUP BY window_start, window_end, customer"""

# A query; of each table the columns that are asked for; the same in DuckDB, over the inputs as far as they were read.
AS_THEY_STAND: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "aggregates": (
        """SELECT customer AS c, count(*) AS n, count(amount) AS k, sum(amount) AS s, avg(amount) AS a, min(amount) AS low,
        max(amount) AS high, count(DISTINCT amount) AS d, min_by(amount, order_id) AS early, median(amount) AS middle,
        sum(CAST(amount AS DOUBLE)) AS f, collect_set(amount) AS every FROM orders GROUP BY customer""",
        {
            "groups": (
                "c, n, k, s, a, low, high, d, early, middle, f, list_sort(every)",
                """SELECT customer, count(*), count(amount), sum(amount), avg(amount), min(amount), max(amount),
                count(DISTINCT amount), arg_min_null(amount, order_id), median(amount), sum(amount::DOUBLE),
                coalesce(list_sort(list(DISTINCT amount) FILTER (amount IS NOT NULL)), [])
                FROM orders GROUP BY customer""",
            )
        },
    ),
    "HAVING, and what only it and an expression read": (
        "SELECT customer, 1 + sum(o.amount) AS more FROM orders o GROUP BY customer HAVING count(*) > 8",
        {
            "groups": (
                'customer, "sum(amount)", "count(*)"',
                "SELECT customer, sum(amount), count(*) FROM orders GROUP BY customer",
            )
        },
    ),
    "no keys": (
        "SELECT count(*) AS n, max(amount) AS most FROM orders WHERE amount > 15",
        {"groups": ("n, most", "SELECT count(*), max(amount) FROM orders WHERE amount > 15")},
    ),
    "DISTINCT": (
        "SELECT DISTINCT customer, amount % 3 AS rest FROM orders",
        {"groups": ("customer, rest", "SELECT DISTINCT customer, amount % 3 FROM orders")},
    ),
    "over a join": (
        """SELECT o.amount % 4 AS rest, sum(p.paid) AS paid FROM orders o JOIN payments p ON o.customer = p.order_id
        GROUP BY o.amount % 4""",
        {
            "groups": (
                "rest, paid",
                "SELECT o.amount % 4, sum(paid) FROM orders o JOIN payments p ON customer = p.order_id GROUP BY 1",
            ),
            "payments": (
                "order_id, paid",
                "SELECT order_id, paid FROM payments WHERE order_id IS NOT NULL",
            ),
        },
    ),
    "groups of groups": (
        """SELECT n, count(*) AS customers FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) q
        GROUP BY n""",
        {
            "groups": ("customer, n", "SELECT customer, count(*) FROM orders GROUP BY customer"),
            "groups_2": (
                "n, customers",
                "SELECT n, count(*) FROM (SELECT count(*) AS n FROM orders GROUP BY customer) GROUP BY n",
            ),
        },
    ),
    "values that are packed": (
        """SELECT array(customer) AS c, (max(struct(at, amount))).amount AS last FROM orders WHERE amount > 0
        GROUP BY array(customer)""",
        {
            "groups": (
                """c[1], "max(named_struct('at', at, 'amount', amount))".amount""",
                """SELECT customer, arg_max(amount, row("at", amount)) FROM orders WHERE amount > 0
                GROUP BY customer""",
            )
        },
    ),
}


@pytest.fixture
def folder() -> Iterator[Path]:
    with own_folder() as own:
        yield own


@pytest.mark.parametrize("case", AS_THEY_STAND)
def test_groups_are_those_of_the_rows_so_far(folder: Path, case: str) -> None:
    """Whether or not HAVING lets them out, in whatever units and processes."""
    sql, expected = AS_THEY_STAND[case]
    given = {name: files for name, files in drawn().items() if name in sql}
    job = document(folder, sql, given, CHANGELOG)
    for batch in living(job, folder, COURSE):
        beside = Beside(job, folder, batch)
        assert expected.keys() <= set(beside.tables)
        for name, (columns, other) in expected.items():
            assert beside.differ(f"SELECT {columns} FROM state_{name}", other) == []
    assert batch == 3


def test_groups_that_have_come_out_are_gone(folder: Path) -> None:
    """Each is either in the result or in the state, with all of its rows so far."""
    job = document(folder, WINDOWS, {"orders": drawn()["orders"]})
    every = """SELECT date_trunc('minute', "at"), customer, count(*), sum(amount) FROM orders GROUP BY 1, 2"""
    over = """SELECT * FROM state_groups
    WHERE window_end <= (SELECT max("at") FROM orders) - INTERVAL 10 SECONDS"""
    for batch in living(job, folder, COURSE):
        beside = Beside(job, folder, batch)
        waits, out = (f"SELECT window_start, customer, n, s FROM {one}" for one in ("state_groups", "out"))
        assert beside.differ(f"{waits} UNION ALL {out}", every) == []
        assert beside.count(over) == 0 < beside.count(waits)


def test_groups_whose_rows_are_deleted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They shrink, and the last row takes the group with it."""
    monkeypatch.setitem(lives.SCHEMAS, "payments", "order_id BIGINT, paid BIGINT, op STRING")
    given = {"payments": [["1,5,I", "1,7,I", "2,9,I"], ["1,7,D", "2,9,D", "3,1,I"], ["3,1,D"]]}
    sql = "SELECT order_id, count(*) AS n, max(paid) AS most FROM payments GROUP BY order_id"
    job = document(folder, sql, given, CHANGELOG, {"payments": {"changes": {"op": "op"}}})
    live = """(SELECT order_id, paid FROM payments WHERE op = 'I' EXCEPT ALL
    SELECT order_id, paid FROM payments WHERE op = 'D')"""
    for batch in living(job, folder):
        beside = Beside(job, folder, batch)
        groups = f"SELECT order_id, count(*), max(paid) FROM {live} GROUP BY order_id"
        assert beside.differ("SELECT order_id, n, most FROM state_groups", groups) == []
    assert listed(job)["groups"][0] == "1 row of stage 0, kept until their last rows are deleted"


def test_questions(folder: Path) -> None:
    """Conditions, orders, joins with other tables of the state; names that are no words in backticks."""
    sql = """SELECT o.customer, sum(o.amount * p.paid) FROM orders o JOIN payments p ON o.customer = p.order_id
    GROUP BY o.customer"""
    given = {"orders": [[order(1, customer=1), order(2, customer=2)]], "payments": [["1,2,", "2,3,"]]}
    job = document(folder, sql, given, CHANGELOG)
    lived(job, folder)
    question = (
        "SELECT customer, `sum(o.amount * p.paid)` AS s FROM groups WHERE `sum(o.amount * p.paid)` > 100"
    )
    assert asked(job, question)[1:-1] == [["2", "150"]]
    both = "SELECT g.customer, o.amount FROM groups g JOIN orders o ON o.customer = g.customer ORDER BY g.customer"
    assert asked(job, both)[1:-1] == [["1", "50"], ["2", "50"]]


def test_what_there_is(folder: Path) -> None:
    """How many groups, for how long, and what they are of: windows by their names, an INTERVAL as microseconds."""
    for number, (sql, more, told) in enumerate(
        [
            (
                WINDOWS,
                None,
                (
                    "1 row of stage 0, kept until the watermark has passed all of its TUMBLE(at, 1m)",
                    "window_start TIMESTAMP, window_end TIMESTAMP, customer BIGINT, n BIGINT, s BIGINT, unit INT",
                ),
            ),
            (
                "SELECT make_dt_interval(0, 0, amount) AS i, min(amount) FROM orders GROUP BY make_dt_interval(0, 0, amount)",
                None,
                (
                    "1 row of stage 0, kept until the inputs are closed",
                    "i BIGINT, `min(amount)` BIGINT, unit INT",
                ),
            ),
            (
                "SELECT o.customer AS unit, sum(amount) AS UNIT_2 FROM orders o GROUP BY o.customer",
                CHANGELOG,
                ("1 row of stage 0, kept forever", "unit BIGINT, UNIT_2 BIGINT"),
            ),
        ]
    ):
        own = folder / str(number)
        own.mkdir()
        job = document(own, sql, {"orders": [[order(1)]]}, more)
        lived(job, own)
        assert listed(job) == {"groups": told}


def test_a_group_without_a_row_in_the_result(folder: Path) -> None:
    """Its sum does not fit its type: it is a dead letter, and no failure of those that ask for the others."""
    sql = "SELECT customer, sum(amount) AS s FROM orders GROUP BY customer"
    given = [order(1, customer=1, amount=2**63 - 1), order(2, customer=1, amount=1), order(3, customer=2)]
    output = {**CHANGELOG["output"], "onError": "deadLetter"}
    job = document(folder, sql, {"orders": [given]}, {"output": output, "deadLetters": {"path": "dead"}})
    lived(job, folder)
    assert listed(job)["groups"][0] == "1 row of stage 0, kept forever"
    assert asked(job, "SELECT customer, s FROM groups")[1:-1] == [["2", "50"]]


def test_nothing_is_written(folder: Path) -> None:
    """Neither beside the checkpoint nor in it."""
    job = document(folder, WINDOWS, {"orders": drawn()["orders"]})
    lived(job, folder)
    before = everything(folder)
    asked(job, "SELECT count(*) AS n FROM groups")
    asked(job, None)
    assert everything(folder) == before


def test_segments_that_a_later_batch_deletes(folder: Path) -> None:
    """Those of all units are mapped before the first row is read, bags too."""
    sql = "SELECT customer, count(DISTINCT amount) AS d, collect_list(amount) AS a FROM orders GROUP BY customer"
    job = document(folder, sql, {"orders": drawn()["orders"]}, CHANGELOG)
    *_, batch = living(job, folder, tuning=Tuning(file_bytes=1))
    [groups] = tables(plan_of(job))
    reading = rows(folder / "ck" / "state", batch, groups)
    first = next(reading)
    files = [*(folder / "ck" / "state" / "0").rglob("*.arrow")]
    assert len(files) > 2
    for file in files:
        file.unlink()
    assert first.num_rows + sum(part.num_rows for part in reading) == 6
