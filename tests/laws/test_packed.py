"""Law: values that have parts, and intervals, are grouped and aggregated as any others, also where rows are deleted.

DuckDB answers after each batch, over the parts. There NULL is more than every value, and here less, as in Spark.
"""

from collections import Counter
from random import Random

import pytest

from tests.laws.product import own_folder
from tests.laws.test_followed_groups import Row, World, answers, runs

BEGIN = "TIMESTAMP '2026-01-01 00:00:00'"
QUERIES = {  # here, and for DuckDB
    "greatest of structs": (
        "SELECT k, max(struct(v, s)).s AS m FROM a GROUP BY k",
        "SELECT k, last(s ORDER BY v NULLS FIRST, s NULLS FIRST) FROM a GROUP BY k",
    ),
    "least of arrays": (
        "SELECT k, min(array(v, k))[0] AS m FROM a GROUP BY k",
        "SELECT k, first(v ORDER BY v NULLS FIRST) FROM a GROUP BY k",
    ),
    "the row of the last time": (
        "SELECT r.k, r.x, r.s FROM (SELECT k, max_by(struct(k, x, s), struct(ts, x, s)) AS r FROM a GROUP BY k)",
        "SELECT k, last(x ORDER BY {o}), last(s ORDER BY {o}) FROM a GROUP BY k".replace("{o}", "ts, x NULLS FIRST, s NULLS FIRST"),
    ),
    "different structs": ("SELECT k, count(DISTINCT struct(v, s)) AS n FROM a GROUP BY k", "SELECT k, count(DISTINCT (v, s)) FROM a GROUP BY k"),
    "groups of arrays": (
        "SELECT y[0] AS p, y[1] AS q, n FROM (SELECT array(v, k) AS y, count(*) AS n FROM a GROUP BY array(v, k))",
        "SELECT v, k, count(*) FROM a GROUP BY v, k",
    ),
    "fields of a group": (
        "SELECT y.v, y.z.s, count(*) AS n FROM (SELECT struct(v, struct(s) AS z) AS y FROM a) GROUP BY y HAVING y.v > 0",
        "SELECT v, s, count(*) FROM a GROUP BY v, s HAVING v > 0",
    ),
    "distinct structs": ("SELECT y.v, y.s FROM (SELECT DISTINCT struct(v, s) AS y FROM a)", "SELECT DISTINCT v, s FROM a"),
    "a union": (
        "SELECT y.v FROM (SELECT struct(v, s) AS y FROM a UNION SELECT struct(v, s) FROM b)",
        "SELECT v FROM (SELECT v, s FROM a UNION SELECT v, s FROM b)",
    ),
    "a path": (
        "SELECT k, array_join(transform(collect_list(struct(ts, s)), r -> coalesce(r.s, '-')), ',') AS p FROM a GROUP BY k",
        "SELECT k, string_agg(coalesce(s, '-'), ',' ORDER BY ts, s NULLS FIRST) FROM a GROUP BY k",
    ),
    "of some rows": (
        "SELECT k, max(struct(s)) FILTER (WHERE v > 1).s AS m FROM a GROUP BY k",
        "SELECT k, max(s) FILTER (WHERE v > 1) FROM a GROUP BY k",
    ),
    "a condition": (
        "SELECT k, count(*) AS n FROM a GROUP BY k HAVING max(struct(v, s)).v > 2",
        "SELECT k, count(*) FROM a GROUP BY k HAVING max(v) > 2",
    ),
    "joined rows": (
        "SELECT a.k, max(struct(b.v, a.s)).v AS m FROM a JOIN b ON a.k = b.k GROUP BY a.k",
        "SELECT a.k, max(b.v) FROM a JOIN b ON a.k = b.k GROUP BY a.k",
    ),
    "intervals": (
        f"SELECT k, max(ts - {BEGIN}) > INTERVAL 2 MINUTES AS late, count(DISTINCT ts - {BEGIN}) AS n FROM a GROUP BY k",
        f"SELECT k, max(ts - {BEGIN}) > INTERVAL 2 MINUTES, count(DISTINCT ts) FROM a GROUP BY k",
    ),
}  # fmt: skip


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("name", QUERIES)
def test_values_with_parts(name: str, deleted: bool) -> None:
    draw, (sql, theirs) = Random(f"{name} {deleted}"), QUERIES[name]
    with own_folder() as folder:
        world = World(folder, draw, "ab" if " b" in theirs else "a", deleted)
        told = Counter[Row]()
        for _, batch in runs(folder, [sql], "changelog", deleted, 1):
            answers(told, folder, batch, world, theirs)
