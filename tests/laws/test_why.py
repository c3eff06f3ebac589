"""What `why` says that the result is made of is the result: random rows, late and NULL ones among them, by every kind of join."""

import random
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from joinlib.why import answer
from tests.laws.product import own_folder
from tests.unit.why.lived import document, lived
from tests.unit.why.test_whynot import ANTI, CHAIN, INNER, LEFT, SEMI, SOON, THREE

PAIR = "SELECT a.order_id, a.amount, b.amount AS other FROM orders a JOIN orders b ON a.customer = b.customer"
MINUTES = "BETWEEN a.at - INTERVAL 2 MINUTES AND a.at + INTERVAL 2 MINUTES"
PAIRS = (
    f"SELECT a.order_id, b.order_id AS other, p.paid FROM orders a JOIN orders b ON a.customer = b.customer AND b.at {MINUTES}"
    " LEFT JOIN payments p ON b.order_id = p.order_id AND p.at BETWEEN b.at AND b.at + INTERVAL 1 MINUTE"
)
UNION = (
    "WITH u AS (SELECT order_id, paid AS x, at FROM payments UNION ALL SELECT order_id, amount, at FROM orders WHERE amount > 25)"
    " SELECT o.order_id, u.x FROM orders o LEFT JOIN u"
    " ON o.order_id = u.order_id AND u.at BETWEEN o.at AND o.at + INTERVAL 1 MINUTE"
)
TABLE = {"customers": {"role": "table", "files": {"path": "customers", "format": "csv"}}}
CASES = {
    "inner": (INNER, "auto"),
    "a time bound": (SOON, "auto"),
    "left": (LEFT, "auto"),
    "left with WHERE": (f"{LEFT} WHERE coalesce(p.paid, 20) < o.amount", "auto"),
    "full": (SOON.replace("JOIN", "FULL JOIN"), "auto"),
    "semi": (SEMI, "auto"),
    "anti": (ANTI, "auto"),
    "a self-join": (f"{PAIR} AND a.amount < b.amount", "auto"),
    "a theta join": (f"{INNER.partition(' ON ')[0]} ON o.amount < p.paid", "auto"),
    "three": (THREE, "auto"),
    "a chain of stages": (CHAIN, "auto"),
    "a chain by paths": (CHAIN, "paths"),
    "a table": (
        f"{INNER.replace('p.paid', 'c.name')} JOIN customers c ON o.customer = c.id AND p.paid > c.region * 20",
        "table",
    ),
    "a table that may lack rows": (
        f"{LEFT} LEFT JOIN customers c ON o.customer = c.id + 1 WHERE c.name IS NOT NULL OR p.paid > 9",
        "table",
    ),
    "left of pairs that share a row": (PAIRS, "auto"),
    "a union": (UNION, "auto"),
    "left above a chain": (
        f"{THREE} LEFT JOIN regions r ON c.region = r.id WHERE r.id IS NULL OR p.paid > 30",
        "auto",
    ),
}


def given(draw: random.Random) -> dict[str, list[list[str]]]:
    """A few files of each input, whose times go on, with rows that are out of order."""

    def clock(file: int) -> str:
        seconds = file * 90 + draw.randint(-60, 60) + 100
        return f"12:{seconds // 60:02d}:{seconds % 60:02d}"

    def key(most: int) -> str:
        return "" if draw.random() < 0.1 else str(draw.randint(1, most))

    def orders(file: int) -> list[str]:
        return [f"{key(8)},{key(3)},{draw.randint(1, 50)},2026-01-01T{clock(file)}Z" for _ in range(6)]

    def payments(file: int) -> list[str]:
        return [f"{key(8)},{draw.randint(1, 50)},2026-01-01T{clock(file)}Z" for _ in range(6)]

    return {
        "orders": [orders(file) for file in range(4)],
        "payments": [payments(file) for file in range(4)],
        "customers": [[f"{n},{key(2)},name{n}" for n in range(1, 4)]],
        "regions": [["1,north"], ["2,south"]],
    }


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_explained(name: str) -> None:
    """Each row of the result, as often as it is there, with what it was made of; and nothing else."""
    sql, strategy = CASES[name]
    draw = random.Random(f"4{name}")  # NULL keys of outer joins among them
    named = {table for table in given(draw) if f" {table} " in sql}
    with own_folder() as folder:
        files = {k: v for k, v in given(draw).items() if k in named}
        more = {"join": {"strategy": "auto" if strategy == "table" else strategy}}
        job = document(folder, sql, files, more, TABLE if strategy == "table" else None)
        lived(job, folder)
        question = "o.order_id IS NOT NULL OR TRUE" if " o " in sql else "a.order_id > 0 OR TRUE"
        rows, notes = answer.why(job, question)
        silent = [f for looked in answer.whynot(job, question) for f in looked.fates if not f.verdicts]
        assert silent == [], "nothing is said of a row"
        assert notes == []
        result = results(folder)
    explained = Counter(tuple(value for _, value in row.values) for row in rows)
    if name == "full":  # rows of the right alone are not asked for
        result = Counter({row: n for row, n in result.items() if row[0] is not None})
        explained = Counter({row: n for row, n in explained.items() if row[0] is not None})
    assert explained == result
    assert result, "there is nothing to explain"


def results(folder: Path) -> Counter[tuple[object, ...]]:
    found = pq.read_table(folder / "out", partitioning=None)
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))
