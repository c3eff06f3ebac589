"""What `why` says that the result is made of is the result: random rows, late and NULL ones among them, by every kind of join."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from joinlib.spec.model import StreamJoin
from joinlib.why import answer
from joinlib.why.remade import Remade
from joinlib.why.scan import TooMany
from joinlib.why.verdict import (
    Counted,
    Found,
    GroupRefused,
    Late,
    Replaced,
    ResultRow,
    SourceRow,
    TooLate,
    Unqualified,
    Unsettled,
    Verdict,
    Withdrawn,
)
from tests.laws.changelog import Changelog
from tests.laws.product import own_folder
from tests.unit.why import lived as lives
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


def of_case(name: str, folder: Path, around: str = "{}") -> StreamJoin:
    """The job of a case, which has run. `around`: a query of it."""
    sql, strategy = CASES[name]
    draw = random.Random(f"4{name}")  # NULL keys of outer joins among them
    named = {table for table in given(draw) if f" {table} " in sql}
    files = {k: v for k, v in given(draw).items() if k in named}
    more = {"join": {"strategy": "auto" if strategy == "table" else strategy}}
    job = document(folder, around.format(sql), files, more, TABLE if strategy == "table" else None)
    lived(job, folder)
    return job


def explained(rows: Iterable[ResultRow]) -> Counter[tuple[object, ...]]:
    return Counter(tuple(value for _, value in row.values) for row in rows)


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_explained(name: str) -> None:
    """Each row of the result, as often as it is there, with what it was made of; and nothing else."""
    with own_folder() as folder:
        job = of_case(name, folder)
        question = "o.order_id IS NOT NULL OR TRUE" if " o " in CASES[name][0] else "a.order_id > 0 OR TRUE"
        rows, notes = answer.why(job, question)
        silent = [f for looked in answer.whynot(job, question) for f in looked.fates if not f.verdicts]
        assert silent == [], "nothing is said of a row"
        assert len(notes) == (name == "full"), "rows of the right alone are not asked for"
        result = results(folder)
    found = explained(rows)
    if name == "full":
        result = Counter({row: n for row, n in result.items() if row[0] is not None})
        found = Counter({row: n for row, n in found.items() if row[0] is not None})
    assert found == result
    assert result, "there is nothing to explain"


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_explained_by_any_of_its_columns(name: str) -> None:
    """Those of an input that may lack a row and those that are computed, too: exactly the rows that meet the condition."""
    around = "SELECT r.*, coalesce(r.order_id, 0) * 2 AS twice FROM ({}) r"
    with own_folder() as folder:
        job = of_case(name, folder, around)
        result, names = results(folder), pq.read_table(folder / "out", partitioning=None).column_names
        for at, column in enumerate(names):
            values = sorted({row[at] for row in result}, key=repr)
            for value in [*values[:2], *values[-1:]]:  # NULL is the first
                asked = f"{column} IS NULL" if value is None else f"{column} = {value!r}"
                rows, notes = answer.why(job, asked)
                meeting = Counter({row: n for row, n in result.items() if row[at] == value})
                assert (asked, explained(rows), notes) == (asked, meeting, [])


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
    "of sessions": (
        3,
        (
            "SELECT session_window.start AS s, o.customer AS c, session_window.end AS e, count(*) AS n FROM orders o"
            " GROUP BY session_window(o.at, '20 seconds'), o.customer"
        ),
    ),
    "of all rows": (0, f"SELECT count(*) AS n {JOINED}"),
}


@pytest.mark.parametrize("changing", [False, True], ids=["append", "changelog"])
@pytest.mark.parametrize("name", GROUPED)
def test_groups_are_explained(name: str, changing: bool) -> None:
    """Each row of the result, made of all rows that count in it; of every other row it is said why it does not."""
    sql = GROUPED[name][1]
    found = told(sql, given(random.Random(f"{name}"), disorder_s(sql)), changing)
    assert found.explained == found.result
    assert found.kinds & {TooLate, Late} or changing or " JOIN " in sql, "no row comes after its group"


@pytest.mark.parametrize("changing", [False, True], ids=["append", "changelog"])
@pytest.mark.parametrize("name", GROUPED)
def test_a_row_counts_once_in_each_of_its_groups(
    name: str, changing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where they have too many rows to look at; groups that come out once are those that have."""

    def too_many(*_: object) -> None:
        raise TooMany

    keys, sql = GROUPED[name]
    monkeypatch.setattr(Remade, "grouped", too_many)
    found = told(sql, given(random.Random(f"{name}"), disorder_s(sql)), changing)
    counted = [v for verdicts in found.said[0] for v in verdicts if isinstance(v, Counted)]
    assert all((v.limit is None) == changing for v in counted)
    groups = Counter(v.group for v in counted if v.limit is None or v.limit.over)
    count = Counter(naive(*(value for _, value in group.keys), n) for group, n in groups.items())
    assert count == Counter({naive(*row[:keys], row[-1]): n for row, n in found.result.items()})
    assert counted


HAVING = {  # the groups, and what leaves some of them out
    "count": ("count(*) AS n", "count(*) > 4"),
    "sum": ("sum(o.amount) AS s", "sum(o.amount) < 90"),
    "two": ("count(*) AS n", "min(o.amount) > 2 AND max(o.amount) - min(o.amount) < 40"),
    "distinct": ("count(DISTINCT o.order_id) AS d", "count(DISTINCT o.order_id) > 2"),
}
READ_OF = {
    "count": "count(*)",
    "sum": "sum(o.amount)",
    "distinct": "count(DISTINCT o.order_id)",
    "two": "min(o.amount)",
}


@pytest.mark.parametrize("name", HAVING)
def test_groups_that_are_left_out_are_told_with_their_values(name: str) -> None:
    """Each group that DuckDB leaves out, with its count of rows and what the condition reads; and no other."""
    columns, condition = HAVING[name]
    of = "FROM orders o GROUP BY o.customer, o.amount % 2"
    drawn = given(random.Random(f"having {name}"), 200)
    found = told(
        f"SELECT o.customer AS c, o.amount % 2 AS m, {columns} {of} HAVING {condition}", drawn, changing=True
    )
    refused = {v for verdicts in found.said[0] for v in verdicts if isinstance(v, GroupRefused)}
    cells = (row.split(",")[:3] for file in drawn["orders"] for row in file)
    rows = [tuple(int(cell) if cell else None for cell in row) for row in cells]
    with duckdb.connect() as database:
        database.execute("CREATE TABLE orders (order_id BIGINT, customer BIGINT, amount BIGINT)")
        database.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
        out = database.execute(
            f"SELECT o.customer, o.amount % 2, count(*), {READ_OF[name]} {of} HAVING NOT coalesce({condition}, FALSE)"
        ).fetchall()
    of_groups = {tuple(v for _, v in one.group.keys): (one.rows, dict(one.values)) for one in refused}
    assert {keys: rows for keys, (rows, _) in of_groups.items()} == {row[:2]: row[2] for row in out}
    assert all(of_groups[row[:2]][1][READ_OF[name]] == row[3] for row in out)
    assert len(out) > 1


RANKED = "row_number() OVER (PARTITION BY {0}.customer ORDER BY {0}.at{1})"
OVER = {
    "the last of each": f"SELECT o.order_id, o.customer, o.amount FROM orders o QUALIFY {RANKED.format('o', ' DESC')} = 1",
    "a few of each, nested": (
        "SELECT order_id, amount, n FROM (SELECT o.order_id, o.amount, rank() OVER (PARTITION BY o.customer ORDER BY o.amount) AS n"
        " FROM orders o) q WHERE n <= 2"
    ),
    "before and so far": (
        "SELECT o.order_id, lag(o.amount) OVER (PARTITION BY o.customer ORDER BY o.at) AS b,"
        " sum(o.amount) OVER (PARTITION BY o.customer ORDER BY o.at) AS s FROM orders o"
    ),
    "of the whole partition": (
        "SELECT o.order_id, o.amount, max(o.amount) OVER (PARTITION BY o.customer, o.order_id) AS most FROM orders o"
    ),
    "of two orders": (
        "SELECT o.order_id, row_number() OVER (PARTITION BY o.customer ORDER BY o.at, o.amount) AS n,"
        " count(o.order_id) OVER (PARTITION BY o.customer ORDER BY o.at ROWS 2 PRECEDING) AS c FROM orders o"
    ),
    "all rows": "SELECT o.order_id, row_number() OVER (ORDER BY o.at) AS n FROM orders o",
    "above a join": f"SELECT o.order_id, p.paid, {RANKED.format('o', ', p.paid')} AS n {JOINED}",
    "below a join": (
        f"SELECT q.order_id, q.n, p.paid FROM (SELECT o.order_id, o.at, {RANKED.format('o', '')} AS n FROM orders o) q"
        " JOIN payments p ON q.order_id = p.order_id AND p.at BETWEEN q.at AND q.at + INTERVAL 1 MINUTE"
    ),
    "above a union": (
        "SELECT order_id, x, row_number() OVER (PARTITION BY order_id ORDER BY at) AS n FROM (SELECT o.order_id, o.amount AS x, o.at"
        " FROM orders o UNION ALL SELECT p.order_id, p.paid, p.at FROM payments p) u"
    ),
}


CHANGING = (  # what comes later changes them
    "the last of each",
    "a few of each, nested",
    "of the whole partition",
)


@pytest.mark.parametrize(
    ("name", "changing"),
    [(name, changing) for name in OVER for changing in (False, True) if changing or name not in CHANGING],
)
def test_rows_of_window_functions_are_explained(name: str, changing: bool) -> None:
    """Each row of the result, as often as it is there; of every other row it is said why it is not."""
    sql = OVER[name]
    found = told(sql, given(random.Random(f"{name}"), disorder_s(sql)), changing)
    assert found.explained == found.result
    if name.startswith(("the last", "a few")):
        assert Unqualified in found.kinds
    elif " JOIN " not in sql and not changing:
        assert {Late, Unsettled} <= found.kinds


NEAREST = "ON o.order_id = p.order_id AND o.at >= p.at"
RECENT = f"{NEAREST} AND p.at >= o.at - INTERVAL 1 MINUTE"
OF_BOTH = "SELECT o.order_id, o.amount, p.paid FROM orders o ASOF"
ASOF = {
    "left": f"{OF_BOTH} LEFT JOIN payments p {NEAREST}",
    "inner": f"{OF_BOTH} JOIN payments p {NEAREST}",
    "left, recent": f"{OF_BOTH} LEFT JOIN payments p {RECENT}",
    "inner, recent": f"{OF_BOTH} JOIN payments p {RECENT}",
    "of a WHERE": f"{OF_BOTH} LEFT JOIN payments p {NEAREST} WHERE coalesce(p.paid, 30) > o.amount",
    "of all rows": f"{OF_BOTH} JOIN payments p ON o.at >= p.at",
    "the next": f"{OF_BOTH} JOIN payments p {NEAREST.replace('>=', '<')}",
    "with a table": f"{OF_BOTH} LEFT JOIN payments p {NEAREST} JOIN customers c ON o.customer = c.id",
    "below a join": (
        f"SELECT q.order_id, q.amount, q.paid, r.paid AS other FROM ({OF_BOTH.replace('o.amount', 'o.amount, o.at')} JOIN payments p {NEAREST}) q"
        " JOIN payments r ON r.order_id = q.order_id AND r.at BETWEEN q.at AND q.at + INTERVAL 1 MINUTE"
    ),
    "below window functions": (
        "SELECT q.order_id, q.amount, q.paid, lag(q.paid) OVER (PARTITION BY q.order_id ORDER BY q.at) AS b"
        f" FROM ({OF_BOTH.replace('o.amount', 'o.amount, o.at')} LEFT JOIN payments p {NEAREST}) q"
    ),
}


@pytest.mark.parametrize(
    ("name", "changing"),
    [
        (name, changing)
        for name in ASOF
        for changing in (False, True)
        if changing or not name.startswith(("the next", "below"))
    ],
)
def test_rows_of_as_of_joins_are_explained(name: str, changing: bool) -> None:
    """Each row of the result is made of the rows that its values are from; of every other row it is said why it is not."""
    sql, drawn = ASOF[name], given(random.Random(name), 200)
    found = told(sql, drawn, changing, TABLE if "customers" in sql else None)
    assert found.explained == found.result
    assert found.result
    for row in (
        row for verdicts in chain(*found.said) for v in verdicts if isinstance(v, Found) for row in v.results
    ):
        order, *partners = (values_of(drawn, one) for one in row.rows if one.source != "customers")
        number, amount, paid, *_ = (value for _, value in row.values)
        assert (order[0], order[2]) == ("" if number is None else str(number), str(amount))
        assert (str(paid) in [partner[1] for partner in partners]) if paid is not None else not partners


def values_of(drawn: Mapping[str, Sequence[Sequence[str]]], row: SourceRow) -> list[str]:
    return drawn[row.source][int(Path(row.file).stem)][row.at - 1].split(",")


COUNTS = "SELECT o.customer AS c, count(*) AS n, sum(o.amount) AS s, min(o.amount) AS m FROM orders o GROUP BY o.customer"
BY_ID = "SELECT p.order_id AS k, count(*) AS n, max(p.paid) AS m FROM payments p GROUP BY p.order_id"
MINUTELY = "SELECT date_trunc('minute', o.at) AS m, o.customer AS c, count(DISTINCT o.amount) AS n FROM orders o GROUP BY 1, 2"
INNER_GROUPS = {
    "below a filter": f"SELECT g.c, g.n FROM ({COUNTS}) g WHERE g.n > 5",
    "below a filter, minutes": f"SELECT g.m, g.n FROM ({MINUTELY}) g WHERE g.n > 1",
    "below a join, minutes": (
        f"SELECT g.m, g.n, p.paid FROM ({MINUTELY}) g JOIN payments p ON g.c = p.order_id AND p.at BETWEEN g.m AND g.m + INTERVAL 1 MINUTE"
    ),
    "below the first few": f"SELECT g.c, g.s FROM ({COUNTS}) g ORDER BY g.s DESC, g.c LIMIT 2",
    "with HAVING": f"SELECT g.c, g.s FROM ({COUNTS} HAVING min(o.amount) > 3) g WHERE g.s > 0",
    "partners": f"SELECT o.order_id, o.amount, g.n, g.m FROM orders o JOIN ({BY_ID}) g ON o.order_id = g.k",
    "partners that may lack": f"SELECT o.order_id, g.m FROM orders o LEFT JOIN ({BY_ID}) g ON o.order_id = g.k WHERE o.amount > 9",
    "of groups": f"SELECT g.n, sum(g.s) AS s FROM ({COUNTS}) g GROUP BY g.n",
    "of a join": f"SELECT g.c, g.n FROM (SELECT o.customer AS c, count(*) AS n {JOINED} GROUP BY o.customer) g WHERE g.n > 1",
}


@pytest.mark.parametrize("name", INNER_GROUPS)
def test_rows_made_of_groups_are_explained(name: str) -> None:
    """Groups whose rows go on within the query."""
    found = told(INNER_GROUPS[name], given(random.Random(f"{name}")), "minutes" not in name)
    assert found.explained == found.result
    assert found.result


LOOKED_UP = "FROM orders o JOIN customers c ON o.customer = c.id"
MAYBE = "FROM orders o LEFT JOIN customers c ON o.customer = c.id + 1"
CROSSED = {  # what is followed alone, with each other
    "table groups": f"SELECT c.name, count(*) AS n, sum(o.amount) AS s {LOOKED_UP} GROUP BY c.name",
    "left table groups": f"SELECT c.name, count(*) AS n, count(c.id) AS m {MAYBE} GROUP BY c.name",
    "table groups having": f"SELECT c.name, count(*) AS n {LOOKED_UP} GROUP BY c.name HAVING count(*) > 6",
    "table where groups": f"SELECT c.name, max(o.amount) AS n {LOOKED_UP} WHERE o.amount > c.region * 20 GROUP BY c.name",
    "rollup": "SELECT o.customer AS c, o.order_id AS k, count(*) AS n FROM orders o GROUP BY ROLLUP (o.customer, o.order_id)",
    "cube table": f"SELECT c.name, o.order_id, count(*) AS n {LOOKED_UP} GROUP BY CUBE (c.name, o.order_id)",
    "grouping sets": "SELECT o.customer AS c, grouping(o.customer) AS g, sum(o.amount) AS n FROM orders o GROUP BY GROUPING SETS ((o.customer), ())",
    "table over": f"SELECT o.order_id, c.name, row_number() OVER (PARTITION BY c.name ORDER BY o.amount, o.order_id) AS n {LOOKED_UP}",
    "table qualify": f"SELECT o.order_id, c.name {LOOKED_UP} QUALIFY row_number() OVER (PARTITION BY c.name ORDER BY o.amount, o.order_id) <= 2",
    "over groups": "SELECT g.c, g.n, rank() OVER (ORDER BY g.n) AS r FROM (SELECT o.customer AS c, count(*) AS n FROM orders o GROUP BY o.customer) g",
    "groups over": "SELECT q.n, count(*) AS m FROM (SELECT o.order_id, row_number() OVER (PARTITION BY o.customer ORDER BY o.amount) AS n FROM orders o) q GROUP BY q.n",
    "groups joined table": "SELECT g.c, g.n, c.name FROM (SELECT o.customer AS c, count(*) AS n FROM orders o GROUP BY o.customer) g JOIN customers c ON g.c = c.id",
    "union of groups": "SELECT o.customer AS k, count(*) AS n FROM orders o GROUP BY o.customer UNION ALL SELECT p.order_id AS k, count(*) AS n FROM payments p GROUP BY p.order_id",
    "distinct": f"SELECT DISTINCT o.customer, p.paid {JOINED}",
    "distinct groups": "SELECT o.customer AS c, count(DISTINCT o.amount) AS n, count(*) FILTER (WHERE o.amount > 20) AS f FROM orders o GROUP BY o.customer",
    "exists groups": "SELECT o.customer AS c, count(*) AS n FROM orders o WHERE EXISTS (SELECT 1 FROM payments p WHERE p.order_id = o.order_id) GROUP BY o.customer",
    "anti groups": "SELECT o.customer AS c, count(*) AS n FROM orders o WHERE NOT EXISTS (SELECT 1 FROM payments p WHERE p.order_id = o.order_id) GROUP BY o.customer",
    "left groups": "SELECT o.customer AS c, count(p.paid) AS n, count(*) AS m FROM orders o LEFT JOIN payments p ON p.order_id = o.order_id GROUP BY o.customer",
    "full groups": "SELECT o.customer AS c, count(p.paid) AS n, count(*) AS m FROM orders o FULL JOIN payments p ON p.order_id = o.order_id GROUP BY o.customer",
    "full computed": "SELECT coalesce(o.order_id, p.order_id) AS k, count(*) AS n FROM orders o FULL JOIN payments p ON p.order_id = o.order_id GROUP BY 1",
    "right groups": "SELECT o.customer AS c, count(*) AS n FROM orders o RIGHT JOIN payments p ON p.order_id = o.order_id GROUP BY o.customer",
    "full over": "SELECT o.customer AS c, p.paid, row_number() OVER (PARTITION BY o.customer ORDER BY p.paid, o.amount) AS n FROM orders o FULL JOIN payments p ON p.order_id = o.order_id",
    "full all": "SELECT count(*) AS n, count(p.paid) AS m FROM orders o FULL JOIN payments p ON p.order_id = o.order_id",
    "left all": "SELECT count(*) AS n, count(p.paid) AS m FROM payments p LEFT JOIN orders o ON p.order_id = o.order_id",
    "full twice": "SELECT o.customer AS c, q.paid AS p, count(*) AS n FROM orders o FULL JOIN payments p ON p.order_id = o.order_id FULL JOIN payments q ON q.order_id = o.order_id GROUP BY o.customer, q.paid",
    "left of left": "SELECT q.paid AS c, count(*) AS n FROM orders o LEFT JOIN payments p ON p.order_id = o.order_id LEFT JOIN payments q ON q.order_id = p.paid GROUP BY q.paid",
    "right table": "SELECT c.name, count(*) AS n FROM orders o LEFT JOIN payments p ON p.order_id = o.order_id LEFT JOIN customers c ON c.id = p.paid GROUP BY c.name",
    "scalar": "SELECT o.order_id, o.amount FROM orders o WHERE o.amount > (SELECT avg(p.paid) FROM payments p)",
    "scalar corr": "SELECT o.order_id, o.amount FROM orders o WHERE o.amount > (SELECT avg(p.paid) FROM payments p WHERE p.order_id = o.order_id)",
    "not in": "SELECT o.order_id, o.amount FROM orders o WHERE o.order_id NOT IN (SELECT p.order_id FROM payments p WHERE p.order_id < 4)",
    "lateral": "SELECT o.order_id, x.paid FROM orders o CROSS JOIN LATERAL (SELECT p.paid FROM payments p WHERE p.order_id = o.order_id ORDER BY p.paid DESC LIMIT 1) x",
    "intersect": "SELECT o.order_id FROM orders o INTERSECT SELECT p.order_id FROM payments p",
    "except": "SELECT o.order_id FROM orders o EXCEPT SELECT p.order_id FROM payments p",
    "union distinct": "SELECT o.order_id FROM orders o UNION SELECT p.order_id FROM payments p",
}


@pytest.mark.parametrize("name", CROSSED)
def test_what_is_crossed_is_explained(name: str) -> None:
    """Tables, joins of all kinds, groups, grouping sets, window functions and subqueries above each other."""
    sql = CROSSED[name]
    found = told(sql, given(random.Random(f"{name}"), 200), True, TABLE if "customers" in sql else None)
    assert found.explained == found.result
    assert found.result


VIEW = (
    "SELECT o.order_id, o.customer, o.amount, p.paid FROM orders o JOIN payments p ON o.order_id = p.order_id"
)
SEVERAL = {  # by their names: the queries of the outputs of one file
    "of one view": {
        "rows": "SELECT order_id, paid FROM paid",
        "groups": "SELECT customer, count(*) AS n FROM paid GROUP BY customer",
        "few": "SELECT order_id, amount FROM paid WHERE amount > 25",
    },
    "of a table, too": {
        "named": "SELECT q.order_id, c.name FROM paid q JOIN customers c ON q.customer = c.id",
        "names": "SELECT c.name, sum(q.paid) AS s FROM paid q JOIN customers c ON q.customer = c.id GROUP BY c.name",
        "few": "SELECT order_id, amount FROM orders WHERE amount < 30",
    },
}


@pytest.mark.parametrize("name", SEVERAL)
def test_rows_of_several_outputs_are_explained(name: str) -> None:
    """Each output has its rows, made of what made them."""
    outputs = {
        output: {"sql": sql, "mode": "changelog", "files": {"path": f"{output}/out"}}
        for output, sql in SEVERAL[name].items()
    }
    more = {"sql": None, "output": None, "outputs": outputs, "views": {"paid": VIEW}}
    drawn = given(random.Random(name))
    named = [*("orders", "payments"), *(["customers"] if "table" in name else [])]
    with own_folder() as folder:
        for output in outputs:
            (folder / output).mkdir()
        job = document(folder, "", {k: drawn[k] for k in named}, more, TABLE if "table" in name else None)
        lived(job, folder)
        rows, _ = answer.why(job, "order_id > 0 OR TRUE")
        result = {output: totals(folder / output) for output in outputs}
    explained = {
        output: Counter(tuple(v for _, v in row.values) for row in rows if row.output == output)
        for output in outputs
    }
    assert explained == result
    assert all(result.values())


UPSERTS = {
    "alone": "SELECT o.order_id, o.amount FROM orders o WHERE o.amount > 20",
    "a join": "SELECT o.order_id, o.amount, p.paid FROM orders o JOIN payments p ON o.order_id = p.order_id",
    "a left join": "SELECT o.order_id, p.paid FROM orders o LEFT JOIN payments p ON o.order_id = p.order_id",
    "by another column": "SELECT a.order_id, b.order_id AS other FROM orders a JOIN orders b ON a.customer = b.customer",
    "groups": "SELECT o.customer, count(*) AS n FROM orders o JOIN payments p ON o.order_id = p.order_id GROUP BY o.customer",
    "numbers": (
        "SELECT o.order_id, row_number() OVER (PARTITION BY o.customer ORDER BY o.amount, o.order_id) AS n FROM orders o"
    ),
}


@pytest.mark.parametrize("deleting", [False, True])
@pytest.mark.parametrize("name", UPSERTS)
def test_rows_of_upserts_are_explained(name: str, deleting: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last row of each key; of every other event it is said what has replaced it."""
    sql = UPSERTS[name]
    monkeypatch.setitem(lives.SCHEMAS, "orders", "order_id BIGINT, customer BIGINT, amount BIGINT, op STRING")
    monkeypatch.setitem(lives.SCHEMAS, "payments", "order_id BIGINT, paid BIGINT")
    draw = random.Random(f"{name}")
    drawn = {
        "orders": [[_event(draw, deleting) for _ in range(8)] for _ in range(4)],
        "payments": [[f"{draw.randint(1, 8)},{draw.randint(1, 50)}" for _ in range(3)] for _ in range(4)],
    }
    upserts = {"orders": {"upsert": {"key": ["order_id"]}, "changes": {"op": "op"}}}
    found = told(sql, drawn, changing=True, of_inputs=upserts)
    assert found.explained == found.result
    assert found.result
    assert {Replaced, *([Withdrawn] if deleting else [])} <= found.kinds


def _event(draw: random.Random, deleting: bool) -> str:
    op = "D" if deleting and draw.random() < 0.3 else "I"
    return f"{draw.randint(1, 8)},{draw.randint(1, 3)},{draw.randint(1, 50)},{op}"


@dataclass(frozen=True)
class Told:
    """What is said of a job's rows, and its result."""

    explained: Counter[tuple[object, ...]]
    said: list[list[tuple[Verdict, ...]]]  # by input and row
    result: Counter[tuple[object, ...]]

    @property
    def kinds(self) -> set[type[Verdict]]:
        return {type(verdict) for rows in self.said for verdicts in rows for verdict in verdicts}


def told(
    sql: str,
    drawn: Mapping[str, Sequence[Sequence[str]]],
    changing: bool,
    of_inputs: Mapping[str, Mapping[str, Any]] | None = None,
) -> Told:
    """Run a job, and ask of all rows."""
    with own_folder() as folder:
        files = {k: v for k, v in drawn.items() if f" {k} " in sql or f" {k}," in sql}
        more = {"output": {"mode": "changelog", "files": {"path": "out"}}} if changing else None
        job = document(folder, sql, files, more, of_inputs)
        lived(job, folder)
        rows, notes = answer.why(job, "order_id > 0 OR TRUE")
        said = [[f.verdicts for f in looked.fates] for looked in answer.whynot(job, "order_id > 0 OR TRUE")]
        result = (totals if changing else results)(folder) if list(folder.glob("out/batch=*")) else Counter()
    explained = Counter(naive(*(value for _, value in row.values)) for row in rows)
    found = Told(explained, said, Counter({naive(*row): n for row, n in result.items()}))
    assert all(verdicts for rows in said for verdicts in rows), "nothing is said of a row"
    assert not notes or Counted in found.kinds
    return found


def disorder_s(sql: str) -> int:
    """By how much rows are out of order, so that some are late."""
    return 60 if " JOIN " in sql else 200


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
