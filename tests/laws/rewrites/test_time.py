"""Law: what a rewrite of time or lists writes returns the rows that the text asks for, told here in other words of SQL."""

import datetime as dt
import random

import pyarrow as pa
import pytest

from joinlib.errors import SqlError
from tests.laws.rewrites.duck import answer, rewritten

BEGIN = dt.datetime(2026, 1, 1)  # noqa: DTZ001


def rows(draw: random.Random, count: int, versions: bool = False) -> pa.Table:
    """Rows with NULLs and duplicates; of versions there is one for each key and time."""
    found, seen = [], set()
    for _ in range(count):
        # many at one time, a gap or a tolerance apart
        ts = None if draw.random() < 0.1 else BEGIN + dt.timedelta(seconds=5 * draw.randint(-24, 48))
        key = draw.choice([1, 2, 3, None])
        if versions and (key, ts) in seen:
            continue
        seen.add((key, ts))
        tags = draw.choice([None, [], ["x"], ["x", "y", None], ["z", "z"]])
        found.append({"k": key, "v": draw.choice([1, 2, 3, None]), "ts": ts, "tags": tags})
    kinds = [
        ("k", pa.int32()),
        ("v", pa.int32()),
        ("ts", pa.timestamp("us")),
        ("tags", pa.list_(pa.string())),
    ]
    return pa.Table.from_pylist(found, pa.schema(kinds))


def windows(slide: int, size: int, offset: int = 0) -> str:
    """All windows that any row may be in: s and e."""
    start = f"TIMESTAMP '2025-12-31 23:00:00' + INTERVAL ({offset}) SECOND"
    return (
        f"(SELECT s, s + INTERVAL {size} SECOND AS e FROM (SELECT unnest(range({start},"
        f" TIMESTAMP '2026-01-01 02:00:00', INTERVAL {slide} SECOND)) AS s))"
    )


def sessions(gap: str) -> str:
    """a with the number of each row's session; `gap` says what the time since the row before must be in one."""
    begun = (
        f"SELECT *, (ts - lag(ts) OVER (PARTITION BY k ORDER BY ts) {gap}) AS on_ FROM a WHERE ts IS NOT NULL"
    )
    numbered = f"SELECT *, count(*) FILTER (WHERE on_ IS NOT TRUE) OVER (PARTITION BY k ORDER BY ts) AS n FROM ({begun})"
    return f"({numbered})"


IN = "a.ts >= w.s AND a.ts < w.e"
CASES = {
    "tumble, as a table": (
        ("SELECT k, window_start, window_end, count(*) AS n, sum(v) AS s FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts),"
        " INTERVAL '1' MINUTE)) GROUP BY k, window_start, window_end"),
        f"SELECT k, s, e, count(*), sum(v) FROM a JOIN {windows(60, 60)} w ON {IN} GROUP BY k, s, e",
    ),
    "tumble, with an offset and named arguments, all columns": (
        ("SELECT * FROM TABLE(TUMBLE(DATA => TABLE a, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '1' MINUTE,"
        " OFFSET => INTERVAL '-7' SECONDS))"),
        f"SELECT a.*, s, e, e - INTERVAL 1 MILLISECOND FROM a JOIN {windows(60, 60, -7)} w ON {IN}",
    ),
    "tumble, the shorter form, with an alias": (
        "SELECT t.k, t.window_start FROM TUMBLE(a, ts, INTERVAL '30' SECONDS) AS t WHERE t.v > 1",
        f"SELECT k, s FROM a JOIN {windows(30, 30)} w ON {IN} WHERE v > 1",
    ),
    "tumble, over a query": (
        "SELECT k, window_end FROM TUMBLE((SELECT k, ts FROM a WHERE v = 1), ts, INTERVAL '30' SECONDS)",
        f"SELECT k, e FROM a JOIN {windows(30, 30)} w ON {IN} WHERE v = 1",
    ),
    "hop": (
        ("SELECT k, window_start, window_time, count(*) AS n FROM TABLE(HOP(TABLE a, DESCRIPTOR(ts),"
        " INTERVAL '20' SECONDS, INTERVAL '1' MINUTE)) GROUP BY k, window_start, window_time"),
        f"SELECT k, s, e - INTERVAL 1 MILLISECOND, count(*) FROM a JOIN {windows(20, 60)} w ON {IN} GROUP BY k, s, e",
    ),
    "hop, whose slide is no part of its size": (
        "SELECT k, v, window_start FROM HOP(a, ts, INTERVAL '25' SECONDS, INTERVAL '1' MINUTE)",
        # windows begin at 1970-01-01, 5 s before the first of these
        f"SELECT k, v, s FROM a JOIN {windows(25, 60, (-3600 * 24 * 20453 + 3600) % 25)} w ON {IN}",
    ),
    "hop, with holes": (
        "SELECT k, v, window_start FROM HOP(a, ts, INTERVAL '60' SECONDS, INTERVAL '20' SECONDS)",
        f"SELECT k, v, s FROM a JOIN {windows(60, 20)} w ON {IN}",
    ),
    "cumulate": (
        "SELECT * FROM TABLE(CUMULATE(TABLE a, DESCRIPTOR(ts), INTERVAL '20' SECONDS, INTERVAL '1' MINUTE))",
        (f"SELECT a.*, s, to_e, to_e - INTERVAL 1 MILLISECOND FROM a JOIN (SELECT s, s + to_seconds(u.n) AS to_e FROM"
        f" {windows(60, 60)}, (VALUES (20), (40), (60)) u (n)) w ON a.ts >= w.s AND a.ts < w.to_e"),
    ),
    "window join": (
        ("SELECT x.k, x.v AS xv, y.v AS yv, x.window_end FROM TUMBLE(a, ts, INTERVAL '1' MINUTE) x"
        " LEFT JOIN TUMBLE(b, ts, INTERVAL '1' MINUTE) y ON x.k = y.k AND x.window_start = y.window_start"
        " AND x.window_end = y.window_end"),
        (f"SELECT x.k, x.v, y.v, x.e FROM (SELECT * FROM a JOIN {windows(60, 60)} w ON {IN}) x"
        f" LEFT JOIN (SELECT * FROM b a JOIN {windows(60, 60)} w ON {IN}) y ON x.k = y.k AND x.s = y.s"),
    ),
    "window(), with its fields": (
        ("SELECT window.start, k, window.end AS e, count(*) AS n FROM a WHERE v = 1 OR v IS NULL"
        " GROUP BY window(ts, '1 minute'), k HAVING window.end < '2026-01-01 00:03:00'"),
        (f"SELECT s, k, e, count(*) FROM a JOIN {windows(60, 60)} w ON {IN} WHERE v = 1 OR v IS NULL GROUP BY s, k, e"
        " HAVING e < '2026-01-01 00:03:00'"),
    ),
    "window() that slides, over a join": (
        ("SELECT window(a.ts, '1 minute', '20 seconds').start AS s, count(*) AS n, sum(b.v) AS t FROM a JOIN b ON"
        " a.k = b.k WHERE a.v > 1 AND b.v < a.v GROUP BY window(a.ts, '1 minute', '20 seconds')"),
        (f"SELECT s, count(*), sum(b.v) FROM a JOIN {windows(20, 60)} w ON {IN} JOIN b ON a.k = b.k"
        " WHERE a.v > 1 AND b.v < a.v GROUP BY s"),
    ),
    "windows of Flink's groups": (
        ("SELECT HOP_START(ts, INTERVAL '20' SECOND, INTERVAL '40' SECOND) AS s, HOP_END(ts, INTERVAL '20' SECOND,"
        " INTERVAL '40' SECOND) AS e, HOP_ROWTIME(ts, INTERVAL '20' SECOND, INTERVAL '40' SECOND) AS r, max(v) AS m"
        " FROM a GROUP BY HOP(ts, INTERVAL '20' SECOND, INTERVAL '40' SECOND), k"),
        f"SELECT s, e, e - INTERVAL 1 MILLISECOND, max(v) FROM a JOIN {windows(20, 40)} w ON {IN} GROUP BY s, e, k",
    ),
    "session_window()": (
        ("SELECT k, session_window.start AS s, session_window.end AS e, count(*) AS n FROM a"
        " GROUP BY session_window(ts, '10 seconds'), k"),
        ("SELECT k, min(ts), max(ts) + INTERVAL 10 SECOND, count(*) FROM"
        f" {sessions('<= INTERVAL 10 SECOND')} GROUP BY k, n"),
    ),
    "session_window() by a computed key, over a join": (
        ("SELECT a.k % 2 AS p, session_window.start AS s, count(*) AS n FROM a JOIN b ON a.k = b.k WHERE b.v = 1"
        " GROUP BY a.k % 2, session_window(a.ts, '10 seconds') HAVING count(*) > 1"),
        ("SELECT k, min(ts), count(*) FROM (SELECT *, count(*) FILTER (WHERE on_ IS NOT TRUE) OVER (PARTITION BY k"
        " ORDER BY ts) AS n FROM (SELECT *, ts - lag(ts) OVER (PARTITION BY k ORDER BY ts) <= INTERVAL 10 SECOND AS on_"
        " FROM (SELECT a.k % 2 AS k, a.ts FROM a JOIN b ON a.k = b.k WHERE b.v = 1 AND a.ts IS NOT NULL)))"
        " GROUP BY k, n HAVING count(*) > 1"),
    ),
    "session, as a table": (
        ("SELECT k, window_start, window_end, count(*) AS n FROM TABLE(SESSION(TABLE a PARTITION BY k,"
        " DESCRIPTOR(ts), INTERVAL '10' SECONDS)) GROUP BY k, window_start, window_end"),
        ("SELECT k, min(ts), max(ts) + INTERVAL 10 SECOND, count(*) FROM"
        f" {sessions('<= INTERVAL 10 SECOND')} GROUP BY k, n"),
    ),
    "LATERAL VIEW": (
        "SELECT k, tag FROM a LATERAL VIEW explode(tags) t AS tag WHERE v > 1 AND tag <> 'z'",
        "SELECT k, tag FROM (SELECT k, v, unnest(tags) AS tag FROM a) WHERE v > 1 AND tag <> 'z'",
    ),
    "LATERAL VIEW OUTER, with positions": (
        "SELECT k, n, tag FROM a LATERAL VIEW OUTER posexplode(tags) t AS n, tag",
        ("SELECT k, n - 1, tag FROM a LEFT JOIN LATERAL (SELECT generate_subscripts(tags, 1) AS n, unnest(tags) AS tag)"
        " ON TRUE"),
    ),
    "two LATERAL VIEWs over a join, in groups": (
        ("SELECT x, count(*) AS n, count(DISTINCT y) AS d FROM a JOIN b ON a.k = b.k LATERAL VIEW explode(a.tags) AS x"
        " LATERAL VIEW explode_outer(b.tags) AS y WHERE a.v = 1 AND (x = 'x' OR b.v = 2) GROUP BY x"),
        ("SELECT x, count(*), count(DISTINCT y) FROM a JOIN b ON a.k = b.k JOIN LATERAL (SELECT unnest(a.tags) AS x) ON"
        " TRUE LEFT JOIN LATERAL (SELECT unnest(b.tags) AS y) ON TRUE WHERE a.v = 1 AND (x = 'x' OR b.v = 2) GROUP BY x"),
    ),
    "UNNEST between joins": (
        "SELECT a.k, u.tag, b.v FROM a, UNNEST(a.tags) AS u (tag) LEFT JOIN b ON b.k = a.k AND u.tag = 'x'",
        "SELECT a.k, u.tag, b.v FROM a, UNNEST(a.tags) AS u (tag) LEFT JOIN b ON b.k = a.k AND u.tag = 'x'",
    ),
    "LEFT JOIN UNNEST after a join": (
        "SELECT a.k, b.v, u.tag FROM a JOIN b ON a.k = b.k LEFT JOIN UNNEST(b.tags) AS u (tag) ON TRUE WHERE a.v = 1",
        ("SELECT a.k, b.v, u.tag FROM a JOIN b ON a.k = b.k LEFT JOIN LATERAL (SELECT unnest(b.tags)) AS u (tag) ON TRUE"
        " WHERE a.v = 1"),
    ),
    "UNNEST WITH ORDINALITY": (
        "SELECT a.k, u.tag, u.n FROM a CROSS JOIN UNNEST(a.tags) WITH ORDINALITY AS u (tag, n)",
        "SELECT k, unnest(tags), generate_subscripts(tags, 1) FROM a",
    ),
    "a generator in the select list": (
        "SELECT DISTINCT k, explode(tags) AS tag FROM a",
        "SELECT DISTINCT k, unnest(tags) FROM a",
    ),
    "as of": (
        "SELECT a.k, a.v AS x, b.v AS y, b.ts FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts",
        "SELECT a.k, a.v AS x, b.v AS y, b.ts FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts",
    ),
    "as of, left, strictly before, with the rows of a query": (
        "SELECT a.k, a.v AS x, q.v AS y FROM a ASOF LEFT JOIN (SELECT * FROM b WHERE v > 1) q ON q.k = a.k AND q.ts < a.ts",
        "SELECT a.k, a.v AS x, q.v AS y FROM a ASOF LEFT JOIN (SELECT * FROM b WHERE v > 1) q ON q.k = a.k AND q.ts < a.ts",
    ),
    "as of, nothing read of the right side": (
        "SELECT count(*) AS n FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts",
        "SELECT count(*) AS n FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts",
    ),
    "as of, left, nothing read of the right side": (
        "SELECT a.k, a.v AS x FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts >= b.ts JOIN b c ON c.k = a.k",
        "SELECT a.k, a.v AS x FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts >= b.ts JOIN b c ON c.k = a.k",
    ),
    "as of, the next": (
        "SELECT a.k, a.v AS x, b.v AS y FROM a ASOF LEFT JOIN b MATCH_CONDITION (a.ts <= b.ts) ON a.k = b.k WHERE a.v > 1",
        "SELECT a.k, a.v AS x, b.v AS y FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts <= b.ts WHERE a.v > 1",
    ),
    "as of, USING, then a join and groups": (
        "SELECT k, count(*) AS n, sum(b.v + c.v) AS s FROM a ASOF JOIN b USING (k, ts) JOIN b c USING (k) GROUP BY k",
        "SELECT a.k, count(*) AS n, sum(b.v + c.v) AS s FROM a ASOF JOIN b USING (k, ts) JOIN b c ON a.k = c.k GROUP BY a.k",
    ),
    "as of, without a key, after a join": (
        "SELECT a.k, c.v AS w, b.v AS y FROM a JOIN a c ON a.k = c.k AND c.v = 1 ASOF JOIN b ON a.ts >= b.ts + INTERVAL 1 SECOND",
        ("SELECT a.k, c.v AS w, b.v AS y FROM a JOIN a c ON a.k = c.k AND c.v = 1 ASOF JOIN (SELECT *, ts + INTERVAL 1 SECOND AS t"
        " FROM b) b ON a.ts >= b.t"),
    ),
    "as of, with a tolerance": (
        ("SELECT a.k, a.v AS x, b.v AS y FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts >= b.ts"
        " AND b.ts >= a.ts - INTERVAL 15 SECONDS AND a.v < 3"),
        ("SELECT a.k, a.v, CASE WHEN b.ts >= a.ts - INTERVAL 15 SECONDS AND a.v < 3 THEN b.v END FROM a ASOF LEFT JOIN b"
        " ON a.k = b.k AND a.ts >= b.ts"),
    ),
    "versions": (
        "SELECT a.k, a.v AS x, r.v AS y FROM a LEFT JOIN b FOR SYSTEM_TIME AS OF a.ts AS r ON a.k = r.k",
        "SELECT a.k, a.v AS x, r.v AS y FROM a ASOF LEFT JOIN b r ON a.k = r.k AND a.ts >= r.ts",
    ),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", CASES)
def test_rewritten_is_the_same(name: str, seed: int) -> None:
    ours, theirs = CASES[name]
    draw = random.Random(f"{name} {seed}")
    without_key = "without a key" in name
    versions = rows(draw, 30, versions=True)
    if without_key:  # then one row for each time
        versions = versions.group_by("ts").aggregate([("k", "min"), ("v", "min"), ("tags", "count")])
        versions = versions.rename_columns(["ts", "k", "v", "tags"])
    tables = {"a": rows(draw, 40), "b": versions}
    expected = answer(theirs, tables)
    assert expected
    assert answer(rewritten(ours, tables), tables) == expected


REFUSED = [
    ("SELECT k FROM TUMBLE(a, ts)", "SIZE is missing"),
    ("SELECT k FROM TUMBLE(a, ts, INTERVAL 1 MONTH)", "months differ"),
    ("SELECT k FROM TUMBLE(a, ts, k)", "a constant such as INTERVAL 10 MINUTES, not k"),
    ("SELECT k FROM TUMBLE(a, ts, INTERVAL 0 SECONDS)", "positive"),
    ("SELECT k FROM CUMULATE(a, ts, INTERVAL 7 SECONDS, INTERVAL 1 MINUTE)", "a multiple of its STEP"),
    (
        "SELECT k FROM TABLE(TUMBLE(TABLE a PARTITION BY k, DESCRIPTOR(ts), INTERVAL 1 MINUTE))",
        "no PARTITION BY",
    ),
    ("SELECT count(*) AS n FROM a GROUP BY window(ts, '1 minute', '2 minutes')", "would be in none"),
    ("SELECT count(*) AS n FROM a GROUP BY window(ts)", "takes a time and lengths"),
    ("SELECT window.first FROM a GROUP BY window(ts, '1 minute')", "the fields start and end"),
    ("SELECT session_window(ts, '1 minute').start AS s FROM a", "write GROUP BY"),
    ("SELECT k, explode(tags) AS x, count(*) AS n FROM a GROUP BY k", "write it in a query around them"),
    ("SELECT upper(explode(tags)) AS x FROM a", "stands alone in the select list"),
    ("SELECT a.k FROM a RIGHT JOIN UNNEST(a.tags) AS u (x) ON TRUE", "CROSS JOIN or LEFT JOIN"),
    (
        "SELECT a.k FROM a ASOF RIGHT JOIN b ON a.k = b.k AND a.ts >= b.ts",
        "write ASOF JOIN or ASOF LEFT JOIN",
    ),
    ("SELECT a.k FROM a ASOF JOIN b ON a.k = b.k", "one inequality of times"),
    ("SELECT a.k FROM a ASOF JOIN b ON a.ts >= b.ts AND (a.v = 1 OR b.v = 2)", "one inequality of times"),
    ("SELECT a.k FROM a JOIN b FOR SYSTEM_TIME AS OF PROCTIME() ON a.k = b.k", "role: table"),
    ("SELECT a.k FROM a FOR SYSTEM_TIME AS OF a.ts JOIN b ON a.k = b.k", "follows the input of a JOIN"),
]


@pytest.mark.parametrize(("sql", "message"), REFUSED, ids=[sql for sql, _ in REFUSED])
def test_refused(sql: str, message: str) -> None:
    draw = random.Random(1)
    tables = {"a": rows(draw, 1), "b": rows(draw, 1)}
    with pytest.raises(SqlError) as e:
        rewritten(sql, tables)
    assert message in str(e.value)
    assert e.value.line == 1, "it has a place"
