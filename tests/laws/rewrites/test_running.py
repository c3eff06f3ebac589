"""Random nested queries on the product's own path: right after every batch, in spite of trouble."""

from random import Random

import pytest

from tests.laws.rewrites.nested import Nested
from tests.laws.rewrites.running import wrong
from tests.laws.rewrites.same import Judge


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5000, 5008))
def test_nested(seed: int) -> None:
    sql = Nested(Random(seed)).text(3)
    assert list(wrong(sql, Judge(), seed)) == []


TEXTS = (
    "SELECT t.a, q.c FROM t RIGHT JOIN (VALUES (1, 10), (9, 20)) AS q(k, c) ON q.k = t.k",
    "SELECT q.c FROM (VALUES (1), (NULL)) AS q(c) UNION ALL SELECT a FROM t",
    "SELECT a FROM t WHERE k NOT IN (SELECT 1 UNION ALL SELECT b FROM t)",
    "SELECT q.n, q.c FROM (SELECT * FROM t WHERE a > 99) UNPIVOT (c FOR n IN (a, b)) AS q",
    "SELECT * FROM t LEFT JOIN (u LEFT JOIN v ON u.x = v.x) ON t.k = u.k AND v.z = t.a",
    "SELECT t.a, u.x FROM t LEFT JOIN u ON TRUE WHERE t.k > 1",
    "SELECT a, b, (k, a) NOT IN (SELECT k, x FROM u WHERE y > 1) AS m FROM t",
    "SELECT a FROM t WHERE a = 1 OR (k, a) NOT IN (SELECT k, count(*) FROM u GROUP BY k)",
    "SELECT t.a FROM t LEFT ANTI JOIN (SELECT x FROM u WHERE y > 3) q ON TRUE",
    "SELECT t.a, q.x FROM t FULL JOIN (SELECT x FROM u WHERE y > 1) q ON TRUE",
    "SELECT * FROM (SELECT k, a, b FROM t) PIVOT (sum(b) AS s, max(b) AS m FOR a IN (1 AS one, 2 AS two)) AS p WHERE p.one_s > 0",
    "SELECT q.name, sum(q.c) AS s FROM t UNPIVOT INCLUDE NULLS (c FOR name IN (a AS aa, b)) AS q GROUP BY q.name",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("sql", TEXTS)
def test_after_every_batch(sql: str) -> None:
    assert list(wrong(sql, Judge(), len(sql))) == []
