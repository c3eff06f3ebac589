"""What window functions, as-of joins and `now()` keep, in SQL, after each batch: as DuckDB makes it of the rows that have come."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from joinlib.errors import SpecError
from tests.laws.product import Course, own_folder
from tests.unit.why.kept import CHANGELOG, Beside, asked, drawn, listed
from tests.unit.why.lived import document, lived, living
from tests.unit.why.test_answers import everything
from tests.unit.why.test_whynot import order, payment

# New processes, other partitions, other units, and a batch that runs twice.
COURSE = Course((1, 2), twice=frozenset({1}), restart=frozenset({2}), units={3: 4})
NOW = """(SELECT max("at") - INTERVAL 10 SECONDS FROM orders)"""
NOW_OF_BOTH = f"""least({NOW}, (SELECT max("at") - INTERVAL 10 SECONDS FROM payments))"""
RUNNING = """SELECT customer, order_id, amount, sum(amount) OVER w AS s, avg(amount) OVER w AS a, count(amount) OVER w AS n,
stddev_samp(amount) OVER w AS d, row_number() OVER w AS r, lag(order_id) OVER w AS before
FROM orders WINDOW w AS (PARTITION BY customer ORDER BY at)"""
ASOF = """SELECT o.order_id, p.paid FROM orders o
ASOF LEFT JOIN payments p ON o.customer = p.order_id AND o.at >= p.at"""

# A query whose result is a changelog; of each table the columns that are asked for; the same in DuckDB.
AS_THEY_STAND: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "whole partitions": (
        "SELECT order_id, sum(amount) OVER (PARTITION BY customer % 2 ORDER BY amount) AS s FROM orders WHERE amount > 2",
        {
            "orders": (
                'order_id, amount, "customer % 2"',
                "SELECT order_id, amount, customer % 2 FROM orders WHERE amount > 2",
            )
        },
    ),
    "the first rows": (
        "SELECT customer, amount, order_id FROM orders QUALIFY row_number() OVER (PARTITION BY customer ORDER BY order_id DESC) <= 2",
        {
            "orders": (
                "customer, amount, order_id",
                """SELECT customer, amount, order_id FROM orders
                QUALIFY row_number() OVER (PARTITION BY customer ORDER BY order_id DESC) <= 2""",
            )
        },
    ),
    "over a join and over groups": (
        """SELECT n, rank() OVER (ORDER BY n) AS r FROM (SELECT o.customer, count(*) AS n FROM orders o
        JOIN payments p ON o.customer = p.order_id GROUP BY o.customer) q""",
        {
            "groups": (
                "customer, n",
                "SELECT customer, count(*) FROM orders JOIN payments p ON customer = p.order_id GROUP BY customer",
            ),
            "stage1": (
                "n",
                "SELECT count(*) FROM orders JOIN payments p ON customer = p.order_id GROUP BY customer",
            ),
        },
    ),
    "both sides of an as-of join": (
        ASOF,
        {
            "orders": ('order_id, customer, "at"', 'SELECT order_id, customer, "at" FROM orders'),
            "payments": (
                'paid, order_id, "at"',
                'SELECT paid, order_id, "at" FROM payments WHERE order_id IS NOT NULL',
            ),
        },
    ),
    "an as-of join of a union": (
        """SELECT u.id, p.paid FROM (SELECT order_id AS id, customer, at FROM orders UNION ALL
        SELECT order_id + 1000, customer, at FROM orders WHERE amount > 5) u
        ASOF LEFT JOIN payments p ON u.customer = p.order_id AND u.at >= p.at""",
        {
            "orders": (
                "id, customer",
                """SELECT order_id, customer FROM orders UNION ALL
                SELECT order_id + 1000, customer FROM orders WHERE amount > 5""",
            ),
            "payments": ("paid, order_id", "SELECT paid, order_id FROM payments WHERE order_id IS NOT NULL"),
        },
    ),
    "rows of a time": (
        """SELECT order_id, amount FROM orders WHERE at < now() - INTERVAL 1 MINUTE AND at > now() - INTERVAL 2 MINUTES""",
        {
            "orders": (
                "order_id, amount, present",
                f"""SELECT order_id, amount, "at" + INTERVAL 1 MINUTE < {NOW} FROM orders
                WHERE "at" + INTERVAL 2 MINUTES > {NOW}""",
            )
        },
    ),
}


@pytest.fixture
def folder() -> Iterator[Path]:
    with own_folder() as own:
        yield own


@pytest.mark.parametrize("case", AS_THEY_STAND)
def test_rows_are_those_that_may_still_change_a_result(folder: Path, case: str) -> None:
    """In whatever units and processes."""
    sql, expected = AS_THEY_STAND[case]
    given = {name: files for name, files in drawn().items() if name in sql}
    job = document(folder, sql, given, CHANGELOG)
    for batch in living(job, folder, COURSE):
        beside = Beside(job, folder, batch)
        assert expected.keys() <= set(beside.tables) <= {*expected, "orders", "payments"}
        for name, (columns, other) in expected.items():
            assert beside.differ(f"SELECT {columns} FROM state_{name}", other) == []
    assert batch == 3


def test_rows_that_wait_and_what_is_kept_of_final_ones(folder: Path) -> None:
    """Those that wait are no rows of the result yet; of the others the last of each partition, counts and sums."""
    job = document(folder, RUNNING, {"orders": drawn()["orders"]})
    final = f"""(SELECT * FROM orders WHERE "at" < {NOW})"""
    last = f'SELECT order_id FROM {final} QUALIFY row_number() OVER (PARTITION BY customer ORDER BY "at" DESC) = 1'
    sums = f"""SELECT customer, sum(amount), count(amount), count(*), round(avg(amount), 9), round(stddev_samp(amount), 9)
    FROM {final} GROUP BY customer"""
    for batch in living(job, folder, COURSE):
        beside = Beside(job, folder, batch)
        waits = "SELECT customer, order_id, amount FROM state_orders WHERE NOT final"
        out = "SELECT customer, order_id, amount FROM out"
        assert (
            beside.differ(f"{waits} UNION ALL {out}", "SELECT customer, order_id, amount FROM orders") == []
        )
        assert beside.differ("SELECT order_id FROM state_orders WHERE final", last) == []
        totals = "SELECT customer, s, n, r, round(a, 9), round(d, 9) FROM state_partitions"
        assert beside.differ(totals, sums) == []
        assert beside.count(waits) > 0


def test_both_sides_of_an_as_of_join(folder: Path) -> None:
    """Of the left side the rows that wait, of the right side also the last one before them of each key."""
    job = document(folder, ASOF, drawn())
    known = "(SELECT * FROM payments WHERE order_id IS NOT NULL)"
    last = f"""SELECT order_id, paid, "at", TRUE FROM {known} WHERE "at" < {NOW_OF_BOTH}
    QUALIFY row_number() OVER (PARTITION BY order_id ORDER BY "at" DESC) = 1"""
    for batch in living(job, folder, COURSE):
        beside = Beside(job, folder, batch)
        left = f"""SELECT order_id FROM orders WHERE "at" >= {NOW_OF_BOTH}"""
        assert beside.differ("SELECT order_id FROM state_orders", left) == []
        assert (
            beside.differ(
                "SELECT order_id FROM state_orders UNION ALL SELECT order_id FROM out",
                "SELECT order_id FROM orders",
            )
            == []
        )
        right = f"""SELECT order_id, paid, "at", FALSE FROM {known} WHERE "at" >= {NOW_OF_BOTH} UNION ALL ({last})"""
        assert beside.differ('SELECT order_id, paid, "at", final FROM state_payments', right) == []


def test_what_there_is(folder: Path) -> None:
    """How many rows, for how long, and which columns; sides of a self-join are two tables."""
    orders, rows = {"orders": [[order(1), order(2)]]}, "order_id BIGINT, customer BIGINT"
    later = ", and then as far as later rows read them"
    for number, (sql, more, told) in enumerate(
        [
            (
                "SELECT order_id, sum(amount) OVER (PARTITION BY customer ORDER BY at) AS s FROM orders",
                None,
                {
                    "orders": (
                        f"2 rows of stage 0, kept until the watermark has passed at{later}",
                        "order_id BIGINT, amount BIGINT, customer BIGINT, at TIMESTAMP, final BOOLEAN, unit INT",
                    ),
                    "partitions": ("0 rows of stage 0, kept forever", "customer BIGINT, s BIGINT, unit INT"),
                },
            ),
            (
                "SELECT order_id, customer FROM orders QUALIFY rank() OVER (PARTITION BY customer ORDER BY order_id) = 1",
                CHANGELOG,
                {
                    "orders": (
                        "1 row of stage 0, kept while they are up to rank 1 of their partition",
                        f"{rows}, unit INT",
                    )
                },
            ),
            (
                "SELECT a.order_id, b.amount FROM orders a ASOF JOIN orders b ON a.customer = b.customer AND a.at > b.at",
                None,
                {
                    "orders": (
                        "2 rows of stage 0, kept until the watermark has passed at",
                        f"{rows}, at TIMESTAMP, unit INT",
                    ),
                    "orders_2": (
                        f"2 rows of stage 0, kept until the watermark has passed at{later}",
                        "amount BIGINT, customer BIGINT, at TIMESTAMP, final BOOLEAN, unit INT",
                    ),
                },
            ),
            (
                "SELECT order_id AS final, customer FROM orders WHERE at > now() - INTERVAL 1 HOUR",
                CHANGELOG,
                {
                    "orders": (
                        "2 rows of stage 0, kept until the watermark reaches goes",
                        f"{rows}, goes TIMESTAMP, unit INT",
                    )
                },
            ),
        ]
    ):
        own = folder / str(number)
        own.mkdir()
        job = document(own, sql, orders, more)
        lived(job, own)
        assert listed(job) == told


def test_questions(folder: Path) -> None:
    """A join of both sides; a column that is not kept is said to be none."""
    job = document(
        folder, ASOF, {"orders": [[order(1, customer=7)]], "payments": [[payment(7, paid=3)]]}, CHANGELOG
    )
    lived(job, folder)
    both = "SELECT o.order_id, p.paid FROM orders o JOIN payments p ON o.customer = p.order_id"
    assert asked(job, both)[1:-1] == [["1", "3"]]
    before = everything(folder)
    with pytest.raises(
        SpecError, match=r"column amount of orders is not kept: .* kept are order_id, customer, at, unit"
    ):
        asked(job, "SELECT amount FROM orders")
    assert everything(folder) == before


def test_a_query_that_stores_nothing(folder: Path) -> None:
    """The command says so."""
    job = document(folder, "SELECT order_id FROM orders", {"orders": [[order(1)]]})
    lived(job, folder)
    with pytest.raises(SpecError, match=r"^the query has no state: it takes each row by itself"):
        asked(job, None)
