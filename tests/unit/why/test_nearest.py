"""What `why` and `whynot` say of as-of joins, and of the rows that window functions read."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.cli.summary import near
from jobs.cli.why import why, whynot
from joinlib.errors import SpecError
from joinlib.spec.model import StreamJoin
from tests.laws.product import own_folder
from tests.unit.why.lived import document, lived
from tests.unit.why.test_whynot import order, payment

ASOF = "SELECT o.order_id, p.paid FROM orders o ASOF {0} payments p ON o.order_id = p.order_id AND o.at >= p.at{1}"
INNER, LEFT = ASOF.format("JOIN", ""), ASOF.format("LEFT JOIN", "")
SOON = " AND p.at >= o.at - INTERVAL 30 MINUTES"
BACK = LEFT.replace(">=", "<=")
NOON = [order(1), order(4711), order(4712)]
PAID = [payment(4711, "11:00:00", 8), payment(4711, "11:30:01", 9), payment(4711, "12:30:00", 10)]
LATER = [[order(2, "23:00:00")], [payment(2, "23:00:00")]]
INTERNAL = re.compile(r"\bright\b|\bk0\b|_value\(|\$|\bat_2\b|_left\b|\b_\w")


@pytest.fixture
def folder() -> Iterator[Path]:
    with own_folder() as own:
        yield own


def ran(folder: Path, sql: str, mode: str = "append") -> StreamJoin:
    files = {"orders": [NOON, LATER[0]], "payments": [PAID, LATER[1]]}
    lived(job := document(folder, sql, files, {"output": {"mode": mode, "files": {"path": "out"}}}), folder)
    return job


def told(folder: Path, sql: str, mode: str = "append") -> tuple[str, str]:
    """What is said of the orders 4711 and 4712, and of the payments; none of it is a name of a rewrite."""
    job = ran(folder, sql, mode)
    both = whynot(job, "o.order_id >= 4711"), whynot(job, "p.paid > 0 AND p.order_id = 4711")
    assert not [
        line
        for said in both
        for line in said.splitlines()
        if INTERNAL.search(line.replace(str(near(folder)), ""))
    ]
    return both


def place(folder: Path, name: str, row: int) -> str:
    return f"{name} {name[0]} at {near(folder / name)}/0.csv, row {row}, batch 0"


@pytest.mark.parametrize(
    ("sql", "mode", "row", "paid"),
    [(INNER, "append", 2, 9), (LEFT, "append", 2, 9), (BACK, "changelog", 3, 10)],
)
def test_the_partner_is_what_a_row_was_made_of(
    folder: Path, sql: str, mode: str, row: int, paid: int
) -> None:
    """Asked by either side, and by the result."""
    orders, payments = told(folder, sql, mode)
    both = f"from {place(folder, 'orders', 2)}; {place(folder, 'payments', row)}"
    assert both in orders and both in payments


@pytest.mark.parametrize(
    ("sql", "mode", "row", "paid"),
    [(INNER, "append", 2, 9), (LEFT, "append", 2, 9), (BACK, "changelog", 3, 10)],
)
def test_why_lists_the_partner(folder: Path, sql: str, mode: str, row: int, paid: int) -> None:
    lines = why(ran(folder, sql, mode), "order_id = 4711").splitlines()
    assert lines[0] == f"order_id = 4711, paid = {paid}"
    assert lines[1:] == [
        f"  from {place(folder, *one).replace(' at ', ': ')}" for one in (("orders", 2), ("payments", row))
    ]


def test_a_row_of_the_right_side_that_is_the_partner_of_none(folder: Path) -> None:
    """Another one came before any row of the left side, or nothing has come after it."""
    _, payments = told(folder, INNER)
    first, _, last = payments.split(", batch 0\n    ")[1:]
    assert first.startswith("it is not the nearest row for any of o so far; the next one of its key is at ")
    assert first.partition("\n")[0].endswith("payments/0.csv, row 2, batch 0")
    assert last == "it is not the nearest row for any of o so far"


def test_a_row_of_the_left_side_without_a_partner(folder: Path) -> None:
    """An inner join leaves it out; an outer one does not."""
    orders, _ = told(folder, INNER)
    assert "no partner in p: no row with its key is before it, or of its time" in orders


def test_a_partner_that_is_too_old(folder: Path) -> None:
    orders, payments = told(folder, ASOF.format("JOIN", SOON.replace("30", "20")))
    clause = "left out by `p.at >= o.at - INTERVAL 20 MINUTES` with its partner, "
    assert clause + place(folder, "payments", 2) in orders
    assert clause + place(folder, "orders", 2) in payments


def test_a_partner_that_is_too_old_for_an_outer_join(folder: Path) -> None:
    """The row comes out, and was not made of it."""
    orders, payments = told(folder, ASOF.format("LEFT JOIN", SOON.replace("30", "20")))
    clause = "a further condition of the as-of join is not true with its nearest partner, "
    assert clause + place(folder, "payments", 2) in orders
    assert clause + place(folder, "orders", 2) in payments
    assert "is in the result" in orders and "is in the result" not in payments


def test_a_tolerance_that_a_later_join_has(folder: Path) -> None:
    """It is computed where its partner is no longer known, and the answer says so."""
    left = ASOF.format("LEFT JOIN", SOON.replace("30", "20"))
    job = ran(folder, f"{left} JOIN payments q ON q.order_id = o.order_id")
    note = (
        "note: of an as-of join with a tolerance that is joined further, the nearest row is told also where"
    )
    assert note in why(job, "order_id = 4711") and note in whynot(job, "o.order_id = 4711")


def test_rows_that_window_functions_read(folder: Path) -> None:
    """The row before, the rows of a frame, not those that are only counted by their places."""
    columns = (
        "o.amount - lag(o.amount) OVER w AS d, count(o.amount) OVER (PARTITION BY o.customer ORDER BY o.at ROWS 2 PRECEDING) AS c,"
        " row_number() OVER w AS n"
    )
    over = "FROM orders o WINDOW w AS (PARTITION BY o.customer ORDER BY o.at)"
    files = {"orders": [[order(n, f"12:00:0{n}", n * n) for n in range(1, 6)], LATER[0]]}
    for number, (text, read) in enumerate(
        [(columns, (2, 3)), ("lag(o.amount) OVER w AS d", (3,)), ("row_number() OVER w AS n", ())]
    ):
        (own := folder / str(number)).mkdir()
        lived(job := document(own, f"SELECT o.order_id, {text} {over}", files), own)
        at = f"{near(own / 'orders')}/0.csv, row"
        lines = [
            f"  from orders o: {at} 4, batch 0",
            *(f"  by window functions from orders o: {at} {n}, batch 0" for n in read),
        ]
        assert why(job, "order_id = 4").splitlines()[1:] == lines
        assert ("; by window functions from orders o at" in whynot(job, "o.order_id = 4")) == bool(read)


def test_more_rows_of_a_frame_than_are_told(folder: Path) -> None:
    rows = [order(n, f"12:{n // 60:02d}:{n % 60:02d}", n) for n in range(150)]
    sql = "SELECT o.order_id, sum(o.amount) OVER (PARTITION BY o.customer ORDER BY o.at) AS s FROM orders o"
    lived(job := document(folder, sql, {"orders": [rows, LATER[0]]}), folder)
    assert why(job, "order_id = 140").endswith("\n  and at least 80 rows more")
    assert why(job, "order_id = 40").endswith("\n  and 20 rows more")


@pytest.mark.parametrize("word", ["INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
def test_set_operations_are_called_so(folder: Path, word: str) -> None:
    sql = f"SELECT o.order_id FROM orders o {word} SELECT p.order_id FROM payments p"
    orders, payments = told(folder, sql, "changelog")
    assert f"left out by `{word}`" in orders + payments


def test_values_of_a_subquery_are_called_so(folder: Path) -> None:
    sql = "SELECT o.order_id FROM orders o WHERE o.amount > (SELECT sum(p.paid) * 9 FROM payments p WHERE p.order_id = o.order_id)"
    orders, _ = told(folder, sql, "changelog")
    assert "`o.amount > (sum(p.paid) * 9)` is not true with its partner" in orders


def test_why_a_join_that_looks_ahead_is_no_append(folder: Path) -> None:
    with pytest.raises(
        SpecError, match="but the partner in asof left join orders ⟕ payments on order_id and "
    ):
        ran(folder, BACK)
