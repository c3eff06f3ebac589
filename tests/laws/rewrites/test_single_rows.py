"""A subquery of aggregates without GROUP BY has one row, also of no rows, unless HAVING or LIMIT takes it away."""

import pytest

from joinlib.errors import SqlError
from joinlib.sql.blocks import blocks
from tests.laws.rewrites.same import INPUTS, Judge, differences

ROWS = (
    "SELECT coalesce(max(x), 0) FROM u WHERE u.k = t.k",
    "SELECT CASE WHEN max(x) IS NULL THEN 1 ELSE 2 END FROM u WHERE u.k = t.k",
    "SELECT max(x) + coalesce(min(y), 1) FROM u WHERE u.k = t.k",
    "SELECT count(*) FROM u WHERE u.k = t.k",
    "SELECT max(x) FROM u WHERE u.k = t.k",
    "SELECT max(x) FROM u",
    "SELECT max(x) FROM u HAVING count(*) < 3",
    "SELECT max(x) FROM u WHERE u.k = t.k HAVING count(*) > 1",
    "SELECT count(*) FROM u WHERE u.k = t.k HAVING max(y) IS NULL",
    "SELECT coalesce(max(x), 1) FROM u WHERE u.k = t.k HAVING max(y) > 1",
    "SELECT 1 FROM u HAVING count(*) < 3",
    "SELECT 1 FROM u HAVING TRUE",
    "SELECT max(x) FROM u WHERE u.k = t.k LIMIT 0",
    "SELECT count(*) FROM u WHERE u.k = t.k LIMIT 0",
    "SELECT count(*) FROM u LIMIT 2",
    "SELECT max(x) FROM u OFFSET 1",
    "SELECT t.b + max(x) FROM u WHERE u.k = t.k",
    "SELECT t.b + count(*) FROM u WHERE u.x < t.b",
    "SELECT max(x) FROM u WHERE u.k = t.k HAVING coalesce(max(y), 1) >= t.b",
    "SELECT max(x + t.b) - t.b FROM u WHERE u.k = t.k HAVING count(*) < 2 OR t.a = 1",
    "SELECT count(*) FILTER (WHERE x > 1) FROM u WHERE u.k = t.k",
    "SELECT DISTINCT count(x) FROM u WHERE u.k = t.k",
)  # fmt: skip
USES = {
    "scalar": ("SELECT a FROM t WHERE b > ({})", "SELECT a FROM t WHERE b + 1 = ({}) + 1", "SELECT a, ({}) AS m FROM t",
               "SELECT a FROM t WHERE ({}) IS NULL", "SELECT a FROM t WHERE b BETWEEN ({}) AND 3"),
    "in": ("SELECT a FROM t WHERE b IN ({})", "SELECT a FROM t WHERE b NOT IN ({})",
           "SELECT a FROM t WHERE a = 1 OR b IN ({})", "SELECT a FROM t WHERE a = 1 OR b NOT IN ({})",
           "SELECT a, b IN ({}) AS m, b + 1 NOT IN ({}) AS n FROM t", "SELECT a FROM t WHERE b + 1 NOT IN ({})"),
    "exists": ("SELECT a FROM t WHERE EXISTS ({})", "SELECT a FROM t WHERE NOT EXISTS ({})",
               "SELECT a FROM t WHERE a = 1 OR EXISTS ({})", "SELECT a FROM t WHERE NOT (a = 1 AND EXISTS ({}))",
               "SELECT a, EXISTS ({}) AS m FROM t"),
    "any": ("SELECT a FROM t WHERE b <> ALL ({})", "SELECT a, b <> ALL ({}) AS m, b = ANY ({}) AS n FROM t",
            "SELECT a FROM t WHERE b > ALL ({})", "SELECT a, b <= ANY ({}) AS m FROM t",
            "SELECT a FROM t WHERE k = 1 OR b = ALL ({})"),
    "lateral": ("SELECT t.a, q.m FROM t, LATERAL ({}) q(m)", "SELECT t.a, q.m FROM t LEFT JOIN LATERAL ({}) q(m) ON TRUE",
                "SELECT t.a, q.m FROM t JOIN LATERAL ({}) q(m) ON q.m > 1",
                "SELECT t.a, q.m FROM t LEFT JOIN LATERAL ({}) q(m) ON q.m > 1",
                "SELECT t.a, q.m FROM t LEFT JOIN LATERAL ({}) q(m) ON q.m > t.b OR t.b IS NULL WHERE q.m IS NULL",
                "SELECT t.a, q.m, v.z FROM t JOIN LATERAL ({}) q(m) ON q.m < 2 LEFT JOIN v ON v.a = q.m"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_one_row_or_none(use: str) -> None:
    judge = Judge()
    for form in USES[use]:
        for row in ROWS:
            assert differences(form.replace("{}", row), judge, 5) == ""


def test_others() -> None:
    judge = Judge()
    for sql in (
        "SELECT a FROM t WHERE k = 1 OR b IN (SELECT x FROM u WHERE u.k = t.k ORDER BY x LIMIT 1)",
        "SELECT a, b NOT IN (SELECT x FROM u WHERE u.k = t.k ORDER BY x LIMIT 1) AS m FROM t",
        "SELECT a FROM t WHERE (a, b) IN (SELECT max(x), count(*) FROM u)",
        "SELECT a FROM t WHERE (a, b) NOT IN (SELECT max(x), count(*) FROM u HAVING max(y) > 1)",
        "SELECT a FROM t WHERE (SELECT max(x) FROM u WHERE u.k = t.k) IN (SELECT z FROM v)",
        "SELECT a, (SELECT max(x) FROM u WHERE u.k = t.k) NOT IN (SELECT z FROM v) AS m FROM t",
        "SELECT a FROM t WHERE b > (SELECT count(*) FROM u WHERE u.k = t.k) + (SELECT max(z) FROM v WHERE v.a = t.a)",
        "SELECT t.a, q.m FROM t LEFT JOIN LATERAL (SELECT t.b AS m FROM u WHERE u.k = t.k) q ON TRUE",
        "SELECT t.a, q.m FROM t LEFT JOIN LATERAL (SELECT coalesce(u.x, t.b, 7) AS m FROM u WHERE u.k = t.k) q ON q.m > 1",
        "SELECT t.a, q.m, v.z FROM t JOIN LATERAL (SELECT coalesce(u.x, t.b, 7) AS m FROM u WHERE u.k = t.k) q ON TRUE RIGHT JOIN v ON v.a = t.a",
        "SELECT t.a, q.m, v.z FROM t, LATERAL (SELECT max(u.x) AS m FROM u WHERE u.k = t.k) q FULL JOIN v ON v.a = t.a",
    ):  # fmt: skip
        assert differences(sql, judge, 8) == ""


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT a, (SELECT max(x) + u.k FROM u WHERE u.k = t.k) AS m FROM t", "neither within an aggregate nor in GROUP BY"),
        ("SELECT a, (SELECT max(x) FROM u HAVING count(*) > (SELECT count(*) FROM v)) AS m FROM t", "a subquery beside aggregates"),
        ("SELECT a, (SELECT rank() OVER (ORDER BY max(x)) FROM u WHERE u.k = t.k) AS m FROM t", "a window function over aggregates"),
        ("SELECT t.a, q.n FROM t, LATERAL (SELECT count(*) n FROM u WHERE u.k = t.k) q RIGHT JOIN v ON v.a = t.a", "before RIGHT JOIN"),
        ("SELECT a FROM t WHERE b IN (SELECT max(x), min(x) FROM u)", "IN compares 1 values with 2 columns"),
        ("SELECT t.a FROM t RIGHT JOIN LATERAL (SELECT x FROM u) q ON TRUE", "LATERAL is supported with JOIN and LEFT JOIN"),
    ],
)  # fmt: skip
def test_refused(sql: str, message: str) -> None:
    with pytest.raises(SqlError, match=message) as refused:
        blocks(sql, INPUTS)
    assert "line 1" in str(refused.value)
