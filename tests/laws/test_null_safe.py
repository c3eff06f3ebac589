"""Law: joins in which NULL equals NULL give DuckDB's answer, and rows are found by a key, whatever the type and the kind."""

from collections import Counter
from random import Random

import pytest

from joinlib.plan import pipeline_of
from tests.laws.product import own_folder
from tests.laws.test_followed_groups import Row, World, answers, document, runs

SAME = "a.{0} IS NOT DISTINCT FROM b.{0}"
COLUMNS = "a.k, a.v, a.s, b.v AS bv, b.s AS bs"
QUERIES = {
    **{
        f"inner by {c}": f"SELECT {COLUMNS} FROM a JOIN b ON {SAME.format(c)}"
        for c in ("k", "v", "x", "m", "s")
    },
    "several": f"SELECT {COLUMNS} FROM a JOIN b ON {SAME.format('k')} AND {SAME.format('s')} AND a.v < b.v",
    "rows of values": f"SELECT {COLUMNS} FROM a JOIN b ON (a.k, a.v) = (b.k, b.v)",
    "of two types": f"SELECT {COLUMNS} FROM a JOIN b ON a.k IS NOT DISTINCT FROM b.v",
    "spelt out": f"SELECT {COLUMNS} FROM a JOIN b ON (a.s IS NULL AND b.s IS NULL OR a.s = b.s) AND a.v <= b.v",
    "left": f"SELECT {COLUMNS} FROM a LEFT JOIN b ON {SAME.format('k')} AND a.v <> b.v",
    "full": f"SELECT {COLUMNS} FROM a FULL JOIN b ON {SAME.format('k')} AND {SAME.format('v')}",
    "three": f"SELECT {COLUMNS}, c.v AS cv FROM a JOIN b ON a.k = b.k JOIN c ON c.s IS NOT DISTINCT FROM b.s AND c.v > 1",
    "semi": "SELECT a.k, a.v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k IS NOT DISTINCT FROM a.k AND b.v < a.v)",
    "anti": "SELECT a.k, a.v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k IS NOT DISTINCT FROM a.k AND b.v < a.v)",
}


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("name", QUERIES)
def test_null_equals_null(name: str, deleted: bool) -> None:
    draw, sql = Random(f"{name} {deleted}"), QUERIES[name]
    theirs = sql.replace("(a.k, a.v) = (b.k, b.v)", f"{SAME.format('k')} AND {SAME.format('v')}")
    with own_folder() as folder:
        world = World(folder, draw, "abc" if name == "three" else "ab", deleted)
        plan = pipeline_of(document(folder, sql, "changelog", deleted))
        assert all(given.keys for stage in plan.stages for given in stage.inputs)
        told = Counter[Row]()
        for _, batch in runs(folder, [sql], "changelog", deleted, 1):
            answers(told, folder, batch, world, theirs)
