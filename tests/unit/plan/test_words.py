"""A plan is drawn in the words of the text, and each operator whose state never shrinks is named."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from joinlib.plan import JoinOptions, SourceInput, pipeline, pipeline_of
from joinlib.plan.changes import Mode
from joinlib.plan.explain import cautions, explain
from joinlib.plan.explain.formats import as_mermaid
from joinlib.plan.explain.texts import bare
from tests.queries.corpus import query
from tests.queries.spec import document

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("t", pa.timestamp("us", "UTC"))])
INPUTS = dict.fromkeys("abc", SourceInput(SCHEMA, time="t")) | {
    "d": SourceInput(SCHEMA, time="t", changes=True)
}
NEAR = "b.t BETWEEN a.t - INTERVAL 1 HOUR AND a.t"
WINDOW = "TABLE(TUMBLE(TABLE a, DESCRIPTOR(t), INTERVAL '10' SECOND))"


def warned(sql: str, mode: Mode) -> list[str]:
    return list(cautions(pipeline(sql, INPUTS, JoinOptions(units=2), mode=mode)))


HOT_ITEMS = """\
result: changes
└─ inner join AuctionBids ⋈ MaxBids on starttime, endtime                  stage 2, changes
   │  if AuctionBids.num >= MaxBids.maxn
   ├─ AuctionBids: group by auction, window_start, window_end:  count(*)   stage 0, changes
   │  └─ bid  each of HOP(dateTime, 2s, 10s)  where dateTime IS NOT NULL
   └─ MaxBids: group by starttime, endtime:  max(num)                      stage 1, changes
      └─ CountBids: drawn above                                            stage 0, changes
"""
NEW_USERS = """\
result: changes
└─ inner join P ⋈ A on P.id = A.seller, starttime, endtime   stage 2, changes
   ├─ P: distinct id, name, TUMBLE(dateTime, 10s)            stage 0, changes
   │  └─ person  where person.dateTime IS NOT NULL
   └─ A: distinct seller, TUMBLE(dateTime, 10s)              stage 1, changes
      └─ auction  where auction.dateTime IS NOT NULL
"""
GLOBAL_SALES = """\
result: changes
└─ group by substring(customer.c_phone, 1, 2):  count(*), sum(customer.c_acctbal)                      stage 3, changes
   └─ anti join on customer.c_custkey = orders.o_custkey                                               stage 2, changes
      ├─ inner join customer ⋈ subquery  if customer.c_acctbal > avg(customer.c_acctbal)               stage 1, changes
      │  ├─ customer
"""


SALES_OF_SALES = """\
  To stage 2
    ws_item_sk INT
    d_date DATE
    sum(web_sales.ws_sales_price) DECIMAL(17,2)

Stage 2
  Inputs
    the result of stage 1
      reads   ws_item_sk, d_date, sum(web_sales.ws_sales_price)
      with    item_sk = ws_item_sk

  Window functions
    for     item_sk
    of      sum(sum(web_sales.ws_sales_price)) OVER (PARTITION BY item_sk ORDER BY d_date \
ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) DECIMAL(27,2)
"""


@pytest.mark.parametrize(
    "title", ["tpcds-q51", "tpcds-q6", "tpcds-q20", "tpcds-q27", "tpcds-q50", "tpcds-q54"]
)
def test_columns_without_names_are_called_by_what_they_are(title: str, tmp_path: Path) -> None:
    """What rewrites call a column is of no help to who wrote none; `_gid` is what the text calls grouping_id()."""
    told = explain(pipeline_of(document(query(title), tmp_path)))
    assert not re.findall(r"(?<![\w.])_\w+", told)
    assert title != "tpcds-q51" or SALES_OF_SALES in told


def test_a_long_text_keeps_a_name() -> None:
    """A text of texts would grow with every query around it; columns of results keep their names."""
    long = " + ".join(f"k * {n}" for n in range(20))
    sql = f"SELECT max(k + 1) + 1 AS _m, max({long}) * sum(v) OVER () AS s FROM a GROUP BY k, v"
    told = explain(pipeline(sql, INPUTS, JoinOptions(units=2), mode="changelog"))
    assert re.search(r"_c\d = max\(", told)
    assert re.search(r"Result\n +_m ", told)


@pytest.mark.parametrize(
    ("title", "drawn"), [("nexmark-q5", HOT_ITEMS), ("nexmark-q8", NEW_USERS), ("tpch-q22", GLOBAL_SALES)]
)
def test_a_plan_begins_with_a_drawing(title: str, drawn: str, tmp_path: Path) -> None:
    """Each operator stands above what it reads, with its stage."""
    assert explain(pipeline_of(document(query(title), tmp_path))).startswith(drawn)


@pytest.mark.parametrize(
    "title",
    [
        "nexmark-q0",
        "nexmark-q5",
        "nexmark-q8",
        "nexmark-q9",
        "tpch-q2",
        "tpch-q15",
        "tpch-q17",
        "tpch-q21",
        "tpcds-q8",
        "tpcds-q44",
    ],
)
def test_a_plan_has_no_words_of_the_planner(title: str, tmp_path: Path) -> None:
    """No alias that it made, no function that only it calls, no microseconds."""
    told = explain(pipeline_of(document(query(title), tmp_path)))
    assert not [
        line for line in told.splitlines() if "$" in line or "MICROSECONDS" in line or "bid_2" in line
    ]


def test_what_is_read_twice_is_drawn_once() -> None:
    """A CTE under two names says whose they are."""
    sql = "WITH m AS (SELECT k, count(*) AS n FROM a GROUP BY k) SELECT x.k FROM m x JOIN m y ON x.n = y.n AND x.k < y.k"
    told = explain(pipeline(sql, INPUTS, JoinOptions(units=2), mode="changelog"))
    assert "├─ x = m: group by k:  count(*)" in told and "└─ y = m: drawn above" in told


def test_inputs_that_are_called_the_same_stay_apart() -> None:
    """Within a stage; what is in quotes is left as it is."""
    sql = "SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM a WHERE a.v = 7) OR EXISTS (SELECT 1 FROM b WHERE 'a_2.v' = CAST(b.v AS STRING) AND b.k = a.k)"
    told = explain(pipeline(sql, INPUTS, JoinOptions(units=2), mode="changelog"))
    assert "'a_2.v'" in told


DRAWN = {
    "SELECT k, v + 1 AS w FROM a WHERE (v > 1) AND (k < 3)": "project k, w",
    "SELECT k FROM a WHERE v > 1 AND (k < 3 OR k = 7)": "a  where v > 1 AND (k < 3 OR k = 7)",
    "SELECT a.k FROM a WHERE v > (SELECT v + 1 FROM b LIMIT 1)": "if a.v > v + 1",
    "SELECT k FROM a WHERE v > (SELECT b.v FROM b)": "single_value(",
    "SELECT k, count(*) AS n FROM a GROUP BY k, session_window(t, '5 minutes')": "sessions by t, 5m apart of each k",
    "SELECT k, max(v) AS m FROM a GROUP BY k HAVING (max(v) > 1) OR (min(v) < 2)": "having max(v) > 1 OR min(v) < 2",
    "SELECT k, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM a ORDER BY r, k LIMIT 3": "first 3 rows by r, k",
    "SELECT a.k, b.v FROM a ASOF JOIN b MATCH_CONDITION (a.t >= b.t) ON a.k = b.k": "asof join a ⋈ b on k and b.t <= a.t ",
    "SELECT x.k, y.v FROM a x ASOF LEFT JOIN b y ON x.k + 1 = y.k AND x.t < y.t": "asof left join a ⟕ b on k + 1 = b.k and b.t > a.t ",
    "SELECT a.k FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.t >= b.t": "project k",
    "SELECT a.k, q.w FROM a RIGHT JOIN (VALUES (1, 'x'), (2, 'y')) AS q(k, w) ON a.k = q.k": "q: one row  each of array(0, 1)",
    "SELECT k FROM a WHERE v NOT IN (SELECT max(v) FROM b GROUP BY k)": "takes the rows of the result of stage 0 that",
    "SELECT * FROM (SELECT k, v FROM a) PIVOT (max(v) FOR k IN (1 AS one, 2 AS two))": "aggregate:",
    "SELECT * FROM (SELECT k, v, t FROM a LIMIT 3) UNPIVOT (w FOR n IN (k, v)) AS q": "first 3 rows by",
    "SELECT v + 1 AS w, rank() OVER (ORDER BY k) AS r FROM a ORDER BY CASE WHEN r > 1 THEN w END, r LIMIT 3": "first 3 rows by CASE WHEN r > 1 THEN w ",
    "SELECT k FROM a INTERSECT SELECT k FROM b": "having sum(in_left) > 0 AND sum(in_right) > 0",
    "SELECT count(*) AS n FROM (SELECT k + 1 FROM a UNION SELECT v + 2 FROM b) q": "distinct k + 1",
    f"SELECT k, {' + '.join(['v'] * 90)} AS w FROM a WHERE {' + '.join(['v'] * 90)} > 1": " …",
}


ASOF = {  # what a stage of it says, and the result
    "SELECT x.k, y.v FROM a x ASOF JOIN b y MATCH_CONDITION (x.t >= y.t) ON x.k = y.k AND y.k > 1": [
        "    where   k > 1 AND k IS NOT NULL AND t IS NOT NULL",
        "As-of join",
        "  join    asof join a ⋈ b",
        "  on      k and b.t <= a.t, the nearest",
        "  takes   b.v BIGINT",
        "  k BIGINT",
        "  v BIGINT",
    ],
    "SELECT x.k, y.t, y.v + x.v AS s FROM a x ASOF JOIN b y ON x.k + 1 = y.k AND x.t > y.t AND y.t > x.t - INTERVAL 1 HOUR WHERE y.v > 3": [
        "  on      k + 1 = b.k and b.t < a.t, the nearest",
        "  takes   b.t TIMESTAMP",
        "  only    b.v > 3 AND b.t > a.t - INTERVAL 1 HOURS",
        "  t TIMESTAMP",
        "  s = b.v + a.v, BIGINT",
    ],
    "SELECT x.k, y.v, y.t FROM a x ASOF LEFT JOIN a y MATCH_CONDITION (x.t < y.t) ON x.k = y.v": [
        "  join    asof left join a ⟕ a_2",
        "  on      a.k = a_2.v and a_2.t > a.t, the nearest",
        "  takes   a_2.v BIGINT",
    ],
    "SELECT x.k, max(y.v) AS m FROM a x ASOF JOIN b y MATCH_CONDITION (x.t >= y.t) ON x.k = y.k GROUP BY x.k": [
        "  As-of join",
        "  To stage 1",
        "    v BIGINT",
    ],
    "SELECT x.k, q.n FROM a x ASOF JOIN (SELECT k, count(*) AS n, max(t) AS t FROM b GROUP BY k) q MATCH_CONDITION (x.t >= q.t) ON x.k = q.k": [
        "    join    asof join a ⋈ stage0",
        "    on      k and stage0.t <= a.t, the nearest",
        "    takes   stage0.n BIGINT",
    ],
}


@pytest.mark.parametrize("sql", ASOF)
def test_an_as_of_join_is_told_as_that(sql: str) -> None:
    """Not as the window function that it is rewritten to, over keys and sides that the text does not name."""
    plan = pipeline(sql, INPUTS, JoinOptions(units=2), mode="changelog")
    told = explain(plan)
    assert [line for line in ASOF[sql] if line not in told.splitlines()] == [], told
    for text in (told, as_mermaid(plan)):
        assert not re.findall(r"\$\w+|\bk0\b|\bright\b|last_value|OVER|\bt_2\b", text)


@pytest.mark.parametrize("sql", DRAWN)
def test_no_word_of_the_planner_is_left(sql: str) -> None:
    """Nor parentheses that nobody needs, nor texts without end."""
    told = explain(pipeline(sql, INPUTS, JoinOptions(units=2), mode="changelog"))
    assert DRAWN[sql] in told
    assert not re.findall(r"\$[\w]+|(?<![\w.])_\w+|(?:where|if|having|with) .*\(\(|MICROSECONDS", told)
    assert max(map(len, told.partition("\n\n")[0].splitlines())) < 200


def test_what_a_reader_names_is_called_so() -> None:
    """A text that is longer than a line has a name in the text, which its reader gives."""
    long = " + ".join(f"v * {n}" for n in range(30))
    sql = f"SELECT k, max({long}) AS most FROM a GROUP BY k ORDER BY most LIMIT 3"
    told = explain(pipeline(sql, INPUTS, JoinOptions(units=2), mode="changelog"))
    assert re.search(r"To stage 1\n +k BIGINT\n +most = max\(", told), told


@pytest.mark.parametrize(
    ("sql", "plain"),
    [("((a + b))", "a + b"), ("(a) + (b)", "(a) + (b)"), ("(a = ')')", "a = ')'"), ("a", "a")],
)
def test_parentheses_around_all_of_it_go(sql: str, plain: str) -> None:
    assert bare(sql) == plain


WARNED = [
    ("SELECT a.k FROM a JOIN b ON a.k = b.k", "append", {"INNER JOIN of a, b": "a and b are kept forever"}),
    (f"SELECT a.k FROM a JOIN b ON a.k = b.k AND {NEAR}", "append", {}),
    ("SELECT a.k FROM a JOIN b ON a.k = b.k AND b.t >= a.t", "append",
     {"INNER JOIN of a, b": "bound the event times in ON (b.t <= a.t + INTERVAL 1 HOUR)"}),
    ("SELECT d.k FROM d JOIN a ON d.k = a.k", "changelog", {"INNER JOIN of d, a": "a is kept forever"}),
    ("SELECT k, count(*) AS n FROM a GROUP BY k", "changelog", {"groups by k": "every group is kept forever"}),
    ("SELECT DISTINCT k FROM a", "changelog", {"distinct k": "a window of an event time among its columns"}),
    ("SELECT a.k, (SELECT max(b.v) FROM b WHERE b.v < a.v) AS m FROM a", "changelog",
     {"stage 0, outer_a": "every different row", "stage 1, INNER JOIN of b, outer_a": "about 33% of all pairs",
      "stage 2, subquery": "every group", "stage 3, LEFT JOIN of a, subquery": "a is kept forever"}),
    ("SELECT k, count(*) AS n FROM d GROUP BY k", "changelog", {}),
    ("SELECT count(*) AS n FROM a", "changelog", {}),
    ("SELECT count(DISTINCT v) AS n FROM a", "changelog", {"groups by nothing": "each different value"}),
    (f"SELECT k, window_start, count(*) AS n FROM {WINDOW} GROUP BY k, window_start, window_end", "append", {}),
    ("SELECT k, count(*) AS n FROM a WHERE t > now() - INTERVAL 1 DAY GROUP BY k", "changelog", {}),
    ("SELECT a.k FROM (SELECT k FROM a WHERE t > now() - INTERVAL 1 DAY) a JOIN d ON a.k = d.k", "changelog", {}),
    ("SELECT k, v FROM a ORDER BY v DESC LIMIT 3", "changelog", {}),
    ("SELECT k, v FROM a QUALIFY row_number() OVER (PARTITION BY k ORDER BY v) <= 3", "changelog",
     {"first 3 rows of each k by v": "the first rows of each k are kept forever"}),
    ("SELECT a.k FROM a JOIN (SELECT k, max(v) AS m FROM b GROUP BY k) g ON a.k = g.k", "changelog",
     {"stage 0, g": "every different row", "stage 1, INNER JOIN of a, g": "a is kept forever"}),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "mode", "expected"), WARNED)
def test_each_operator_whose_state_never_shrinks_is_named(
    sql: str, mode: Mode, expected: dict[str, str]
) -> None:
    """With the clause that would bound it; and no other."""
    found = dict(caution.split(": ", 1) for caution in warned(sql, mode))
    assert found.keys() == expected.keys()
    assert all(said in found[operator] for operator, said in expected.items()), found


def test_what_joins_compare() -> None:
    """A column that is called the same on both sides is named once; what is computed has no name."""
    drawn = explain(
        pipeline(
            "SELECT a.k AS k FROM a JOIN b ON a.k = b.k AND date_trunc('hour', a.t) = date_trunc('hour', b.t)",
            INPUTS,
            JoinOptions(units=2),
        )
    )
    assert "inner join a ⋈ b on k, date_trunc('hour', a.t) = date_trunc('hour', b.t)" in drawn


def test_not_in_of_lists() -> None:
    """They have no key: there is nothing to say of rows that go to one unit, where all of them meet."""
    inputs = dict.fromkeys("ab", SourceInput(pa.schema([("k", pa.int64()), ("l", pa.list_(pa.int64()))])))
    told = explain(
        pipeline(
            "SELECT a.k FROM a WHERE a.l NOT IN (SELECT b.l FROM b)",
            inputs,
            JoinOptions(units=2),
            mode="changelog",
        )
    )
    assert "anti join a" in told
