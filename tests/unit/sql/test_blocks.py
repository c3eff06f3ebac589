"""How a text is cut, what its blocks are called, and where a mistake in it is."""

import pyarrow as pa
import pytest

from joinlib.errors import SqlError
from joinlib.sql import Table
from joinlib.sql.blocks import as_text, blocks
from joinlib.sql.parse import place

COLUMNS = {"t": ("k", "a", "b"), "u": ("k", "x", "y"), "v": ("a", "x", "z")}
TABLES = {n: Table(n, pa.schema([(c, pa.int64()) for c in columns]), None) for n, columns in COLUMNS.items()}
VIEWS = {"late": "SELECT k, a FROM t WHERE b > 1", "again": "SELECT late.a FROM late JOIN u ON late.k = u.k"}


@pytest.mark.parametrize(
    ("sql", "where", "words"),
    [
        ("SELECT q.zz FROM (SELECT a FROM t) q", (1, 8), "q has no column zz; there is: a"),
        ("SELECT a FROM tt", (1, 15), "there is no input tt; did you mean 't'?"),
        ("SELECT a\nFROM t ORDER BY a LIMIT b", (2, 25), "LIMIT takes a whole number"),
        ("SELECT a FROM t UNION SELECT a, b FROM t", (1, 30), "equally many columns: 1 and 2"),
        ("SELECT k FROM t, u", (1, 8), "column k is ambiguous; write t.k or u.k"),
        ("SELECT k FROM t GROUP BY 2", (1, 26), "GROUP BY 2: there are 1 output columns"),
        ("SELECT t.a FROM t, t", (1, 20), "the name t is used twice"),
        ("SELECT a FROM t WHERE a > (SELECT x, y FROM u)", (1, 35), "has one column"),
        ("SELECT 1 AS a", (1, 8), "there is no FROM"),
        ("SELECT a FROM t UNION ALL VALUES (1, 2), (3)", (1, 43), "VALUES takes rows of equally many columns: 2 and 1"),
        ("SELECT * FROM t PIVOT (sum(b) FOR a IN (1, k))", (1, 44), "PIVOT takes constants for a"),
        ("SELECT * FROM t PIVOT (abs(b) FOR a IN (1))", (1, 24), "PIVOT takes aggregates, not abs(b)"),
        ("SELECT * FROM t PIVOT (sum(c) FOR a IN (1))", (1, 28), "column c is in no input"),
        ("SELECT * FROM t UNPIVOT (c FOR n IN (a, d))", (1, 41), "column d is in no input"),
        ("SELECT * FROM t UNPIVOT ((c, d) FOR n IN ((a, b)))", (1, 27), "UNPIVOT takes one value for each name"),
        ("SELECT a FROM t JOIN (t JOIN v ON t.a = v.x) ON t.k = v.z", (1, 23), "the name t is used twice"),
        ("SELECT a FROM t JOIN (u JOIN v ON u.x = v.x) USING (k)", (1, 23), "take one input on the right"),
        ("SELECT DISTINCT a FROM t ORDER BY b LIMIT 1", (1, 35), "takes columns of its select list"),
        ("SELECT sum(a) OVER w AS s FROM t WINDOW v AS (ORDER BY a)", (1, 8), "there is no WINDOW w"),
        ("SELECT q.k FROM (SELECT t.k, u.k FROM t JOIN u ON t.a = u.x) q", (1, 8), "column k is ambiguous: q has several"),
        ("SELECT z.k FROM (SELECT q.* FROM (SELECT t.k, u.k FROM t, u) q) z", (1, 8), "z has several"),
        ("SELECT z.k FROM (SELECT t.k, u.k FROM t, u UNION ALL SELECT a, x FROM v) z", (1, 8), "z has several"),
        ("SELECT t.k, u.k FROM t JOIN u ON t.a = u.x ORDER BY k LIMIT 2", (1, 53), "several of that name"),
        ("WITH q AS (SELECT a FROM t), q AS (SELECT x FROM u) SELECT * FROM q", (1, 30), "WITH names q twice"),
        ("SELECT q.m FROM t AS q(m, m, n)", (1, 17), "two columns are called m"),
        ("SELECT k, grouping() AS g FROM t GROUP BY ROLLUP (k)", (1, 11), "grouping takes one key"),
        ("SELECT 1 AS c, sum(a) AS s FROM t GROUP BY ROLLUP (c)", (1, 8), "a constant is no key of ROLLUP"),
        ("SELECT k, (SELECT count(*) FROM u WHERE u.y = max(t.a)) AS n FROM t GROUP BY ROLLUP (k)", (1, 47), "in a query below"),
        ("SELECT 5 AS c FROM t GROUP BY ALL", (1, 8), "write SELECT DISTINCT"),
        ("SELECT sum(rank() OVER (ORDER BY a)) FROM t", (1, 8), "an aggregate of a window function"),
        ("SELECT rank() OVER v AS r FROM t WINDOW w AS (v PARTITION BY k), v AS (w ORDER BY a)", (1, 41), "v by w by v"),
        ("SELECT rank() OVER (ORDER BY a) AS f FROM t WHERE a IN (SELECT rank() OVER w FROM u) WINDOW w AS (ORDER BY a)", (1, 64), "there is no WINDOW w"),
        ("WITH RECURSIVE c AS (SELECT a FROM t UNION SELECT a + 1 FROM c) SELECT a FROM c", (1, 16), "c reads itself"),
        ("WITH RECURSIVE c AS (SELECT a FROM d), d AS (SELECT a FROM t) SELECT a FROM c", (1, 16), "reads itself"),
        ("SELECT a FROM t ORDER BY b FETCH FIRST 5 PERCENT ROWS ONLY", (1, 40), "write a number of rows"),
        ("SELECT a FROM t LIMIT 5 PERCENT", (1, 23), "write a number of rows"),
        ("SELECT a FROM t FETCH FIRST 5 ROWS WITH TIES", (1, 29), "WITH TIES needs ORDER BY"),
        ("SELECT * REPLACE (1 AS c) FROM t", (1, 19), "REPLACE: * has no column c; there is: k, a, b"),
        ("SELECT * REPLACE (1 AS k) FROM t, u", (1, 19), "REPLACE: several columns are called k"),
        ("SELECT t.* RENAME (x AS y) FROM t, u", (1, 20), "RENAME: * has no column x"),
        ("SELECT k, first(a ORDER BY b, k) AS f FROM t GROUP BY k", (1, 17), "write min_by(value, key)"),
        ("SELECT array_agg(a ORDER BY b) AS f FROM t", (1, 18), "is in the order of its values"),
        ("SELECT sum(a ORDER BY b) AS f FROM t", (1, 12), "sum does not depend on an order"),
        ("SELECT CAST(a AS STRING COLLATE UNICODE_CI) AS c FROM t", (1, 33), "COLLATE is not supported"),
        ("SELECT explode(array(a)) AS e, count(*) AS n FROM t", (1, 8), "explode stands beside groups"),
        ("SELECT count(*) AS n FROM t GROUP BY explode(array(a))", (1, 38), "explode makes rows"),
        ("SELECT k FROM t WHERE explode(array(a)) = 1", (1, 23), "explode makes rows"),
        ("SELECT k FROM t@v1", (1, 15), "@v1 stands for nothing"),
        ("SELECT k FROM (SELECT k FROM t) @v", (1, 23), "spec.parameters"),
        ("SELECT k FROM t WHERE k = ?", (1, 23), "? stands for nothing"),
        ("SELECT k FROM t WHERE k = :x", (1, 23), "is written ${name}"),
        ("SELECT TOP 5 k FROM t", (1, 8), "write ORDER BY ... LIMIT n"),
        ("SELECT k FROM t\nMATCH_RECOGNIZE (ORDER BY a PATTERN (A) DEFINE A AS b > 1)", (2, 1), "lag(x) OVER"),
        ("SELECT k FROM t VERSION AS OF 3", (1, 31), "a stream is read from its beginning, and has no versions"),
        ("SELECT k FROM t WHERE a = 1 OR (k, a) NOT IN (SELECT x FROM u)", (1, 33), "IN compares 2 values with 1 columns"),
        ("SELECT a = 1 OR (k, a) IN (SELECT x, y FROM u WHERE u.k = t.k ORDER BY y LIMIT 1) AS m FROM t", (1, 18), "EXISTS (SELECT ..."),
        ("SELECT k FROM t WHERE a > ALL (SELECT x FROM u WHERE u.k <> t.k)", (1, 23), "[NOT] EXISTS"),
    ],
)  # fmt: skip
def test_mistakes(sql: str, where: tuple[int, int], words: str) -> None:
    with pytest.raises(SqlError) as caught:
        blocks(sql, TABLES)
    assert words in caught.value.message
    assert (caught.value.line, caught.value.column) == where


def test_a_view_is_computed_once_and_keeps_its_name() -> None:
    found = blocks("SELECT again.a, late.k FROM again JOIN late ON again.a = late.a", TABLES, VIEWS)
    assert [(b.kind, b.title, b.view) for b in found] == [
        ("map", "late", "late"),
        ("select", "again", "again"),
        ("select", "", ""),
    ]


def test_views_in_a_circle() -> None:
    with pytest.raises(SqlError, match="view a reads itself: a reads b reads a"):
        blocks("SELECT x FROM a", TABLES, {"a": "SELECT x FROM b", "b": "SELECT x FROM a"})


def test_a_mistake_in_a_view_is_told_with_its_name() -> None:
    with pytest.raises(
        SqlError, match="in view a: line 1, column 8: column xx is in no input; did you mean 'x'"
    ):
        blocks("SELECT x FROM a", TABLES, {"a": "SELECT xx FROM u"})


def test_parts_keep_their_places() -> None:
    sql = "SELECT q.n\nFROM (SELECT k, a + b AS n\n      FROM t) q\nWHERE q.n > 2"
    (block,) = blocks(sql, TABLES)
    assert place(sql, block.query.args["where"]) == (2, 17)
    assert place(sql, block.query.args["from_"]) == (3, 12)


def test_columns_that_nobody_reads_are_dropped() -> None:
    first, _ = blocks("SELECT n FROM (SELECT k, count(*) n, sum(a) s, max(b) m FROM t GROUP BY k) q", TABLES)
    assert [item.alias for item in first.query.expressions] == ["k", "n"]


def test_names_of_output_columns_are_unique() -> None:
    (block,) = blocks("SELECT *, count(*) OVER () FROM t JOIN u ON t.k = u.k", TABLES)[-1:]
    names = [item.alias for item in block.query.expressions]
    assert names == ["k", "a", "b", "k_2", "x", "y", "count(*) OVER ()"]


def test_any_is_an_aggregate_where_it_compares_nothing() -> None:
    whole = as_text(
        blocks("SELECT k, any(a > 1) AS n, any(b > 1) FILTER (WHERE a > 0) AS m FROM t GROUP BY k", TABLES)
    )
    assert whole.count("BOOL_OR(") + whole.count("bool_or(") == 2
    assert blocks("SELECT k FROM t WHERE a = ANY (SELECT x FROM u)", TABLES)


def test_what_a_generator_makes_is_returned_once() -> None:
    """The source that holds it is the rewrite's own: neither * nor a plain name sees it."""
    tables = {"t": Table("t", pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.int64()))]), None)}
    texts = {
        "SELECT *, explode(tags) AS tag FROM t": ["id", "tags", "tag"],
        "SELECT explode(tags) AS tags, size(tags) AS n FROM t": ["tags", "n"],
        "SELECT *, posexplode(tags) FROM t": ["id", "tags", "pos", "col"],
    }
    for sql, columns in texts.items():
        assert [item.alias for item in blocks(sql, tables)[-1].query.expressions] == columns
    with pytest.raises(SqlError, match="column tag is in no input"):
        blocks("SELECT explode(tags) AS tag FROM t WHERE tag > 1", tables)


@pytest.mark.parametrize(
    "condition",
    [
        "ts > now() - INTERVAL 1 MONTH",
        "ts + INTERVAL 1 DAY > now() - INTERVAL 2 YEARS",
        "now() - ts < INTERVAL 1 YEAR",
    ],
)
def test_now_is_not_moved_by_months(condition: str) -> None:
    """A day less a month and a month more is another day."""
    tables = {"t": Table("t", pa.schema([("ts", pa.timestamp("us", "UTC"))]), "ts")}
    with pytest.raises(SqlError, match="days or less"):
        blocks(f"SELECT ts FROM t WHERE {condition}", tables)
    assert blocks("SELECT ts FROM t WHERE ts + INTERVAL 1 MONTH > now()", tables)
