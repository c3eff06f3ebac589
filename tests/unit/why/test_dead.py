"""Rows that are dead letters, and what `whynot` says of them: why, and where they lie."""

from typing import Any

import pytest

from jobs.cli.summary import near
from jobs.cli.why import whynot
from tests.laws.product import own_folder
from tests.unit.why.lived import Files, document, lived
from tests.unit.why.test_whynot import INNER, LATER, ONE, SOON, also, order, payment

KEPT: dict[str, Any] = {"onError": "deadLetter"}
CAUSES: dict[str, tuple[str, Files, dict[str, Any], dict[str, Any], str]] = {
    "fails in a filter": (
        f"{INNER} WHERE 10 / o.amount > 0",
        also(ONE, orders=(0, order(4711, amount=0))),
        KEPT,
        {},
        (
            "orders/0.csv, row 3, batch 0\n    fails: (10 / o.amount) cannot be computed for some row: division by zero; use"
            " NULLIF on the divisor; it is a dead letter in DEAD"
        ),
    ),
    "fails in the select list": (
        INNER.replace("p.paid", "10 / p.paid AS x"),
        also(ONE, payments=(0, payment(4711, paid=0))),
        {},
        KEPT,
        (
            "fails: (10 / p.paid) cannot be computed for some row: division by zero; use NULLIF on the divisor; it is a dead"
            " letter in DEAD"
        ),
    ),
    "fails in a condition": (
        f"{INNER} WHERE o.amount / p.paid > 0",
        also(ONE, orders=(0, order(4711)), payments=(0, payment(4711, paid=0))),
        {},
        KEPT,
        (
            "fails: (o.amount / p.paid) cannot be computed for some row: division by zero; use NULLIF on the divisor; it is a"
            " dead letter in DEAD"
        ),
    ),
    "fails as a group": (
        f"SELECT g.order_id, 10 / sum(g.paid) AS s FROM ({INNER}) g GROUP BY g.order_id",
        also(ONE, orders=(0, order(4711)), payments=(0, payment(4711, paid=0))),
        {},
        {**KEPT, "mode": "changelog"},
        "division by zero; use NULLIF on the divisor; it is a dead letter in DEAD",
    ),
    "fails above a window function": (
        f"SELECT g.order_id, 10 / sum(g.paid) OVER (PARTITION BY g.order_id) AS s FROM ({INNER}) g",
        also(ONE, orders=(0, order(4711)), payments=(0, payment(4711, paid=0))),
        {},
        {**KEPT, "mode": "changelog"},
        "division by zero; use NULLIF on the divisor; it is a dead letter in DEAD",
    ),
    "late": (
        SOON,
        also(LATER, orders=(2, order(4711, "12:59:47"))),
        {"onLate": "deadLetter"},
        {},
        (
            "orders/2.csv, row 2, batch 2\n    late by 3s behind the watermark 2026-01-01 12:59:50, and left out; it is a dead"
            " letter in DEAD"
        ),
    ),
}


@pytest.mark.parametrize("name", CAUSES)
def test_names_the_letter(name: str) -> None:
    """Also of rows behind a line that cannot be read."""
    sql, given, of_orders, of_output, expected = CAUSES[name]
    if of_orders == KEPT:
        first, *rest = given["orders"]
        given = {**given, "orders": [[first[0], "bad", *first[2:]], *rest]}
    with own_folder() as folder:
        output = {"files": {"path": "out"}, **of_output}
        more = {"deadLetters": {"path": "dead"}, "output": output}
        job = document(folder, sql, given, more, {"orders": of_orders})
        lived(job, folder)
        answer = whynot(job, "order_id = 4711")
        assert expected.replace("DEAD", near(folder / "dead")) in answer, answer


@pytest.mark.parametrize("others", ["fail", "deadLetter"])
def test_a_row_that_fails_for_one_output(others: str) -> None:
    """On its way from a join that outputs share: it is a dead letter of the one that computes with it."""
    joined = "SELECT o.order_id, o.amount FROM orders o JOIN payments p ON o.order_id = p.order_id"
    further = "SELECT j.order_id, q.paid FROM joined j JOIN payments q ON 10 / j.amount = q.paid"
    sql = {"kept": (further, "deadLetter"), "plain": ("SELECT order_id, amount FROM joined", others)}
    given = also(ONE, orders=(0, order(4711, amount=0)), payments=(0, payment(4711)))
    with own_folder() as folder:
        outputs = {
            name: {"sql": text, "files": {"path": f"out/{name}"}, "onError": on_error}
            for name, (text, on_error) in sql.items()
        }
        more = {
            "sql": None,
            "output": None,
            "outputs": outputs,
            "views": {"joined": joined},
            "deadLetters": {"path": "dead"},
        }
        job = document(folder, "", given, more)
        lived(job, folder)
        answer = whynot(job, "order_id = 4711")
        assert (
            f"division by zero; use NULLIF on the divisor; it is a dead letter in {near(folder / 'dead')}"
            in answer
        ), answer
