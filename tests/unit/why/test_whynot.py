"""Rows that are missing for a reason that is known, and what `whynot` says of them."""

import pyarrow.parquet as pq
import pytest

from jobs.cli.why import whynot
from tests.laws.product import own_folder
from tests.unit.why.lived import Files, document, lived

INNER = "SELECT o.order_id, p.paid FROM orders o JOIN payments p ON o.order_id = p.order_id"
SOON = f"{INNER} AND p.at BETWEEN o.at AND o.at + INTERVAL 1 MINUTE"
LEFT = SOON.replace("JOIN", "LEFT JOIN")
ANTI = "SELECT o.order_id FROM orders o ANTI JOIN payments p ON o.order_id = p.order_id AND p.at BETWEEN o.at AND o.at + INTERVAL 1 MINUTE"
SEMI = ANTI.replace("ANTI", "SEMI")
THREE = f"{INNER.replace('p.paid', 'p.paid, c.name')} JOIN customers c ON o.customer = c.id"
CHAIN = THREE.replace("c.name", "c.name, r.label") + " JOIN regions r ON c.region = r.id"


def day(clock: str) -> str:
    return f"2026-01-01T{clock}Z"


def order(number: int | str, clock: str = "12:00:00", amount: int = 50, customer: int = 7) -> str:
    return f"{number},{customer},{amount},{day(clock)}"


def payment(number: int | str, clock: str = "12:00:05", paid: int = 50) -> str:
    return f"{number},{paid},{day(clock)}"


ONE: Files = {"orders": [[order(1), order(4711)]], "payments": [[payment(1)]]}
LATER: Files = {  # everybody's time has moved on by an hour when the third batch has come
    "orders": [[order(1), order(4711)], [order(2, "13:00:00")], [order(3, "13:00:10")]],
    "payments": [[payment(1)], [payment(2, "13:00:05")], [payment(3, "13:00:15")]],
}


def also(given: Files, **more: tuple[int, str]) -> Files:
    """The same files with a line more in one of an input's."""
    return {
        name: [
            [*lines, *([more[name][1]] if name in more and more[name][0] == n else [])]
            for n, lines in enumerate(files)
        ]
        for name, files in given.items()
    }


CUSTOMER: Files = {"customers": [["7,1,Ada"]]}
CAUSES: dict[str, tuple[str, Files, list[str]]] = {
    "never came": (
        INNER,
        {"orders": [[order(1)]], "payments": [[payment(1)]]},
        ["orders o: none of 1 row meet the condition", "payments p: none of 1 row meet the condition"],
    ),
    "filtered by WHERE": (
        f"{INNER} WHERE o.amount > 60 AND o.customer = 7",
        also(ONE, payments=(0, payment(4711))),
        ["row 2, batch 0\n    left out by `o.amount > 60`"],
    ),
    "filtered in a view": (
        (
            "WITH big AS (SELECT order_id, amount * 2 AS twice FROM orders) "
            "SELECT b.order_id, p.paid FROM big b JOIN payments p ON b.order_id = p.order_id WHERE b.twice > 200"
        ),
        also(ONE, payments=(0, payment(4711))),
        ["left out by `", "amount * 2", "> 200"],
    ),
    "its key is NULL": (
        THREE,
        {"orders": [["4711,,50," + day("12:00:00")]], "payments": [[payment(4711)]], **CUSTOMER},
        ["its key is NULL (o.customer)"],
    ),
    "late": (
        SOON,
        also(LATER, orders=(2, order(4711, "12:59:47"))),
        ["orders/2.csv, row 2, batch 2\n    late by 3s behind the watermark 2026-01-01 12:59:50"],
    ),
    "no partner": (
        INNER,
        also(ONE, payments=(0, payment(4800))),
        [
            "no partner in payments with p.order_id = 4711 (nearest: 1, 4800); it waits for one until the inputs end"
        ],
    ),
    "no partner, and expired": (
        SOON,
        LATER,
        ["no partner in payments", "it expired when the watermark passed 2026-01-01 12:01:00"],
    ),
    "its partner is filtered": (
        f"{INNER} AND p.paid > 60",
        also(ONE, payments=(0, payment(4711))),
        [
            "no partner in payments with p.order_id = 4711 that counts",
            "payments/0.csv, row 2, batch 0: left out by `p.paid > 60`",
        ],
    ),
    "its partner is late": (
        SOON,
        also(LATER, payments=(2, payment(4711))),
        ["no partner in payments", "payments/2.csv, row 2, batch 2: late by 59m45s"],
    ),
    "its partner is outside of the time bound": (
        SOON,
        also(ONE, payments=(0, payment(4711, "12:01:30"))),
        ["its partner is 30s outside of", "payments/0.csv, row 2, batch 0"],
    ),
    "a condition over both fails": (
        f"{INNER} AND p.paid >= o.amount",
        also(ONE, payments=(0, payment(4711, paid=20))),
        ["`p.paid >= o.amount` is not true with its partner, payments p at"],
    ),
    "WHERE above an outer join": (
        f"{LEFT} WHERE coalesce(p.paid, 0) < 10",
        also(ONE, payments=(0, payment(4711))),
        ["`coalesce(p.paid, 0) < 10` is not true with its partner"],
    ),
    "waits for the watermark": (
        LEFT,
        also(ONE, payments=(0, payment(2, "12:30:00"))),
        [
            "comes out without one later: it waits until the watermark passes 2026-01-01 12:01:00",
            "the watermark is 2026-01-01 11:59:50, held back by orders",
            "no partner in payments with p.order_id = 4711",
        ],
    ),
    "has a partner that an anti join looks for": (
        ANTI,
        also(ONE, payments=(0, payment(4711))),
        ["has a partner, so the anti join leaves it out: payments p at"],
    ),
    "has no partner that a semi join looks for": (SEMI, LATER, ["no partner in payments", "expired"]),
    "one of two partners is missing": (
        THREE,
        {**also(ONE, payments=(0, payment(4711))), "customers": [["8,1,Bob"]]},
        ["no partner in customers with c.id = 7 (nearest: 8)"],
    ),
    "a partner of its partner is missing": (
        CHAIN,
        {**also(ONE, payments=(0, payment(4711))), **CUSTOMER, "regions": [["2,north"]]},
        ["no partner in regions with r.id = 1 (nearest: 2)"],
    ),
}


@pytest.mark.parametrize("name", CAUSES)
def test_names_the_cause(name: str) -> None:
    """Each cause is named, with the place of the rows that it is about."""
    sql, given, expected = CAUSES[name]
    with own_folder() as folder:
        job = document(folder, sql, given)
        lived(job, folder)
        found = (
            pq.read_table(folder / "out", partitioning=None) if list(folder.glob("out/batch=*/*")) else None
        )
        assert found is None or 4711 not in found["order_id"].to_pylist(), "the row is not missing"
        answer = whynot(job, "order_id = 4711")
    assert [part for part in expected if part not in answer] == [], answer
