"""What `why` says that the result is made of is the result: random rows, late and NULL ones among them, by every kind of join."""

import random
from collections import Counter
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from joinlib.why import answer
from joinlib.why.verdict import Counted, TooLate
from tests.laws.changelog import Changelog
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


def given(draw: random.Random, disorder_s: int = 60) -> dict[str, list[list[str]]]:
    """A few files of each input, whose times go on, with rows that are out of order."""

    def clock(file: int) -> str:
        seconds = file * 90 + draw.randint(-disorder_s, disorder_s) + disorder_s + 40
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


WITHIN = "p.at BETWEEN o.at AND o.at + INTERVAL 1 MINUTE"
JOINED = f"FROM orders o JOIN payments p ON o.order_id = p.order_id AND {WITHIN}"
GROUPED = {  # by the columns of groups: the text
    "of the whole time": (1, f"SELECT o.customer AS c, count(*) AS n {JOINED} GROUP BY o.customer"),
    "of minutes": (
        2,
        f"SELECT date_trunc('minute', o.at) AS m, o.customer AS c, count(*) AS n {JOINED} GROUP BY 1, 2",
    ),
    "of one input": (1, "SELECT date_trunc('minute', o.at) AS m, count(*) AS n FROM orders o GROUP BY 1"),
    "of windows that overlap": (
        2,
        (
            "SELECT o.window_start AS s, o.window_end AS e, count(*) AS n FROM HOP(TABLE orders, DESCRIPTOR(at), INTERVAL 30 SECONDS,"
            " INTERVAL 2 MINUTES) o GROUP BY o.window_start, o.window_end"
        ),
    ),
    "of all rows": (0, f"SELECT count(*) AS n {JOINED}"),
}


@pytest.mark.parametrize("changing", [False, True], ids=["append", "changelog"])
@pytest.mark.parametrize("name", GROUPED)
def test_a_row_counts_once_in_each_of_its_groups(name: str, changing: bool) -> None:
    """The rows that count in a group are as many as it counts; where groups come out once, in those that have."""
    keys, sql = GROUPED[name]
    draw = random.Random(f"{name}")
    with own_folder() as folder:
        drawn = given(draw, disorder_s=60 if " JOIN " in sql else 200)
        files = {k: v for k, v in drawn.items() if f" {k} " in sql or f" {k}," in sql}
        more = {"output": {"mode": "changelog", "files": {"path": "out"}}} if changing else None
        job = document(folder, sql, files, more)
        lived(job, folder)
        looked, *_ = answer.whynot(job, "order_id > 0 OR TRUE")
        counted = [v for fate in looked.fates for v in fate.verdicts if isinstance(v, Counted)]
        result = (totals if changing else results)(folder) if list(folder.glob("out/batch=*")) else Counter()
    assert all((v.limit is None) == changing for v in counted)
    groups = Counter(v.group for v in counted if v.limit is None or v.limit.over)
    told = Counter(naive(*(value for _, value in group.keys), n) for group, n in groups.items())
    assert told == Counter({naive(*row[:keys], row[-1]): n for row, n in result.items()})
    assert counted
    late = [v for fate in looked.fates for v in fate.verdicts if isinstance(v, TooLate)]
    assert late or changing or " JOIN " in sql, "no row comes after its group"


def naive(*row: object) -> tuple[object, ...]:
    """With times as those of the changelog are: in UTC, without saying so."""
    return tuple(v.replace(tzinfo=None) if isinstance(v, datetime) else v for v in row)


def totals(folder: Path) -> Counter[tuple[object, ...]]:
    """What a changelog adds up to."""
    log = Changelog(folder / "out")
    for number in sorted(int(batch.name[6:]) for batch in log.out.glob("batch=*")):
        log.batch(number, units_apart=False)
    return log.answer


def results(folder: Path) -> Counter[tuple[object, ...]]:
    found = pq.read_table(folder / "out", partitioning=None)
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))
