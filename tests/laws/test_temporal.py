"""Law: rows that are compared with now() come and go as the watermark of their input passes their time.

{a} and {b} stand for now() of that input in what DuckDB is asked.
"""

import datetime as dt
import random
from pathlib import Path

import pytest

from joinlib.errors import SpecError, SqlError
from joinlib.model.tuning import Tuning
from tests.laws.product import Product
from tests.laws.test_windows import BEGIN, COURSE, FILES, contents, document, events, expected

NEVER = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
QUERIES = [
    "SELECT k, v, ts FROM a WHERE ts > {a} - INTERVAL 30 SECONDS",
    "SELECT k, count(*) AS n FROM a WHERE ts >= {a} - INTERVAL 30 SECONDS AND v > 1 GROUP BY k",
    "SELECT k, v FROM a WHERE ts + INTERVAL 10 SECONDS < {a}",
    "SELECT k, v, ts FROM a WHERE ts BETWEEN {a} - INTERVAL 90 SECONDS AND {a} - INTERVAL 20 SECONDS",
    "SELECT k FROM a WHERE {a} - INTERVAL 40 SECONDS < ts AND {a} <= ts + INTERVAL 50 SECONDS",
    "SELECT a.k, a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k WHERE {a} - a.ts <= INTERVAL 1 MINUTE",
    (
        "SELECT a.k, a.v, b.v AS w FROM a JOIN b ON a.k = b.k WHERE {a} - a.ts <= INTERVAL 1 MINUTE"
        " AND b.ts > {b} - INTERVAL 80 SECONDS AND b.v > 1"
    ),
]


@pytest.mark.parametrize("sql", QUERIES)
def test_rows_come_and_go(sql: str, tmp_path: Path) -> None:
    given = events(random.Random(sql), FILES, nulls=True)
    run = Product(document(tmp_path, sql.format(a="now()", b="now()"), "changelog", given), Tuning(), COURSE)
    for _ in run.batches():
        read, now = {}, {}
        for name, files in given.items():
            rows = [row for part in files for row in part]
            read[name] = rows[: run.read(name)] if name in run.composer.inputs else []
            highest = max((row[2] for row in read[name] if isinstance(row[2], dt.datetime)), default=NEVER)
            moment = highest.replace(tzinfo=None) - dt.timedelta(seconds=60)
            now[name] = f"TIMESTAMP '{moment}'"
        assert contents(tmp_path) == expected(sql.format(**now), read)
    assert run.batch == FILES


@pytest.mark.parametrize("sign", [">", ">=", "<", "<="])
def test_a_row_that_arrives_at_its_moment(sign: str, tmp_path: Path) -> None:
    """It is there, or not, in its own batch."""
    rows = [[(n, n, BEGIN + dt.timedelta(seconds=n), None) for n in (29, 30, 31, 120)]]
    sql = f"SELECT k FROM a WHERE ts {sign} {{a}} - INTERVAL 30 SECONDS"
    run = Product(document(tmp_path, sql.format(a="now()"), "changelog", {"a": rows}), Tuning(), COURSE)
    assert len(list(run.batches())) == 1
    assert contents(tmp_path) == expected(sql.format(a="TIMESTAMP '2026-01-01 00:01:00'"), {"a": rows[0]})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k FROM a WHERE ts > now() - INTERVAL 1 MINUTE OR v = 1",
        "SELECT k FROM a WHERE ts = now()",
        "SELECT k FROM a WHERE ts > now() - INTERVAL 1 MINUTE AND now() > now() - ts",
        "SELECT a.k FROM a JOIN b ON a.k = b.k WHERE a.ts - b.ts < now() - a.ts",
        "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k WHERE b.ts > now() - INTERVAL 1 MINUTE",
    ],
)
def test_other_comparisons_are_refused(sql: str, tmp_path: Path) -> None:
    given = events(random.Random(1), 1, nulls=False)
    with pytest.raises(SqlError, match=r"now\(\)"):
        Product(document(tmp_path, sql, "changelog", given), Tuning(), COURSE)


def test_rows_that_go_cannot_only_be_appended(tmp_path: Path) -> None:
    given = events(random.Random(1), 1, nulls=False)
    with pytest.raises(SpecError, match=r"compared with now\(\)"):
        Product(document(tmp_path, QUERIES[0].format(a="now()"), "append", given), Tuning(), COURSE)
