"""Generators over the types that lists and maps have, from the text to the rows."""

import pyarrow as pa
import pytest

from joinlib.route.maps import mapped
from joinlib.sql import Table
from joinlib.sql.blocks import blocks
from joinlib.sql.maps import map_of

ITEM = pa.struct([("name", pa.string()), ("n", pa.int32())])
SCHEMA = pa.schema(
    [("id", pa.int32()), ("items", pa.list_(ITEM)), ("pairs", pa.map_(pa.string(), pa.int32()))]
)
ROWS = pa.RecordBatch.from_pylist(
    [
        {"id": 1, "items": [{"name": "p", "n": 1}, None], "pairs": [("k", 1), ("l", None)]},
        {"id": 2, "items": [], "pairs": None},
    ],
    SCHEMA,
)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id, a, b FROM t LATERAL VIEW inline(items) x AS a, b", [(1, "p", 1), (1, None, None)]),
        ("SELECT t.id, x.a, x.b FROM t, UNNEST(t.items) AS x (a, b)", [(1, "p", 1), (1, None, None)]),
        ("SELECT id, x.name AS a FROM t LATERAL VIEW explode(items) AS x", [(1, "p"), (1, None)]),
        ("SELECT id, k, v FROM t LATERAL VIEW OUTER explode(pairs) x AS k, v", [(1, "k", 1), (1, "l", None), (2, None, None)]),
        ("SELECT id, posexplode(pairs) AS (n, k, v) FROM t", [(1, 0, "k", 1), (1, 1, "l", None)]),
        ("SELECT t.id, x.a, x.n FROM t CROSS JOIN UNNEST(t.items) WITH ORDINALITY AS x (a, n)",
         [(1, {"name": "p", "n": 1}, 1), (1, None, 2)]),
        ("SELECT id, flatten(array(array(1), array(2, 3))) AS f FROM t", [(1, [1, 2, 3]), (2, [1, 2, 3])]),
        ("SELECT id FROM t WHERE size(flatten(array(array(id), array(id)))) = id", [(2,)]),
        ("SELECT id, v.name AS a FROM t, LATERAL flatten(items) AS v", [(1, "p"), (1, None)]),
        ("SELECT id, unnest(items) AS v FROM t", [(1, {"name": "p", "n": 1}), (1, None)]),
    ],
)  # fmt: skip
def test_rows(sql: str, expected: list[tuple]) -> None:
    rows, table = ROWS, Table("t", SCHEMA, None)
    for part in blocks(sql, {"t": table}):
        step = map_of(sql, part.query, table)
        rows, table = mapped(rows, (step,)), Table(part.name, step.schema, None)
    assert [tuple(row.values()) for row in rows.to_pylist()] == expected
