"""Time passes through parts that need none: what is final comes out while the stream goes on, not at its end.

Rows of parts that unite or only look up may be behind the watermark as far as the plan says, and no further.
"""

import random
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from joinlib.model.tuning import Tuning
from tests.laws.product import Course, Product
from tests.laws.test_windows import contents, document, events, expected, folder, whole  # noqa: F401 - a fixture

COURSE = Course(partitions=(2, 1), twice=frozenset({2}), restart=frozenset({3}))
HOUR = "date_trunc('minute', ts)"
FINAL = {
    "distinct below groups": (
        f"WITH d AS (SELECT DISTINCT k, {HOUR} AS m FROM a) SELECT m, count(*) AS n FROM d GROUP BY m",
        "SELECT date_trunc('minute', ts), count(DISTINCT coalesce(k, -1)) FROM a GROUP BY 1",
    ),
    "distinct times below groups": (
        (
            "WITH d AS (SELECT DISTINCT k, ts FROM a) SELECT date_trunc('minute', ts) AS m, count(*) AS n FROM d"
            " GROUP BY date_trunc('minute', ts)"
        ),
        "SELECT date_trunc('minute', ts), count(*) FROM (SELECT DISTINCT k, ts FROM a) GROUP BY 1",
    ),
}


@pytest.mark.parametrize("name", FINAL)
def test_comes_out_before_the_end(name: str, folder: Path) -> None:  # noqa: F811
    """The batch that closes the inputs brings the rest only."""
    sql, other = FINAL[name]
    given = events(random.Random(name), 8, nulls=False)
    run = Product(document(folder, sql, "append", given), Tuning(), COURSE)
    came: Counter[int] = Counter()
    for batch in run.batches():
        found = pq.read_table(folder / "out", partitioning=None).num_rows if (folder / "out").exists() else 0
        came[batch] = found
    assert contents(folder) == expected(other, whole(given))
    assert came[max(came) - 1] > 0, "nothing came before the inputs were closed"


EARLY = {
    "a filter above a filter by time": (
        "WITH r AS (SELECT k, v, ts FROM a WHERE ts > now() - INTERVAL 1 DAY) SELECT k, v FROM r WHERE v > 1",
        "SELECT k, v FROM a WHERE v > 1 AND ts IS NOT NULL",
    ),
    "what HAVING leaves out is not computed": (
        "SELECT k, 10 / sum(v - 1) AS x FROM a WHERE v IS NOT NULL GROUP BY k HAVING sum(v - 1) <> 0",
        "SELECT k, 10 / s FROM (SELECT k, sum(v - 1) AS s FROM a WHERE v IS NOT NULL GROUP BY k) WHERE s <> 0",
    ),
}


@pytest.mark.parametrize("name", EARLY)
def test_right_at_the_end(name: str, folder: Path) -> None:  # noqa: F811
    """With changes."""
    sql, other = EARLY[name]
    given = events(random.Random(name), 6, nulls=False)
    run = Product(document(folder, sql, "changelog", given), Tuning(), COURSE)
    assert sum(1 for _ in run.batches()) > 3
    assert contents(folder) == expected(other, whole(given))
