"""The composed text means what was written, and its places are those of what was written."""

from collections.abc import Mapping

import duckdb
import pyarrow as pa
import pytest

from joinlib.errors import SpecError, SqlError
from joinlib.spec.parameters import Parameter
from joinlib.sql import Table
from joinlib.sql.blocks import as_text, blocks
from joinlib.sql.pieces import Composed
from joinlib.sql.text import composed

DAY = Parameter(("2026-01-01",), "DATE")
CITIES = Parameter(("Oslo", "Rome"), many=True)
PARAMETERS: Mapping[str, Parameter] = {
    "day": DAY,
    "n": Parameter((5,)),
    "cities": CITIES,
    "city": Parameter(("Oslo",)),
}


def place(text: Composed, where: str) -> tuple[str, int, int]:
    """Where a mistake at a part of the composed text is told."""
    at = text.sql.index(where)
    line, column = text.sql.count("\n", 0, at) + 1, at - text.sql.rfind("\n", 0, at)
    with pytest.raises(SqlError) as error, text.telling():
        raise SqlError("no", line, column)
    return error.value.view, error.value.line, error.value.column


def test_a_plain_query_stays_as_it_is() -> None:
    """Views that it does not read are left out."""
    assert composed("SELECT 1", {"v": "SELECT 2"}, PARAMETERS).sql == "SELECT 1"


def test_mistakes_that_rows_show_are_told_where_they_were_written() -> None:
    """The place goes with the query, since nobody knows the composed text when the rows come."""
    tables = {"t": Table("t", pa.schema([("a", pa.int64())]), None)}
    views = {"v": "SELECT a,\n (SELECT a FROM t) AS b FROM t"}
    text = composed("SELECT b FROM v WHERE b > ${n} + (SELECT a FROM t)", views, PARAMETERS)
    with text.telling():
        found = as_text(blocks(text.sql, tables))
    assert "2, 10, 'v')" in found
    assert "1, 42, '')" in found


def test_parameters_are_literals() -> None:
    """Comments and other dollars stay as they are; places behind a literal are those before it was one."""
    text = composed(
        "SELECT ${n} -- ${n}\nFROM a WHERE d > ${day} AND c IN (${cities}) AND bad", {}, PARAMETERS
    )
    assert text.sql == (
        "SELECT 5 -- ${n}\nFROM a WHERE d > CAST('2026-01-01' AS DATE) AND c IN ('Oslo', 'Rome') AND bad"
    )
    assert place(text, "5") == ("", 1, 8)
    assert place(text, "AS DATE") == ("", 2, 18)
    assert place(text, "bad") == ("", 2, 50)


def test_views_stand_before_the_query_in_order() -> None:
    """Each behind those that it reads; a WITH of the query goes on; comments and semicolons end nothing."""
    views = {
        "total": "SELECT sum(x) AS s FROM big -- all",
        "big": "SELECT x\nFROM nums WHERE x > ${n};",
        "other": "SELECT 1",
    }
    sql = "WITH twice AS (SELECT s * 2 AS s FROM total)\nSELECT s FROM twice"
    text = composed(sql, views, PARAMETERS)
    nums = "CREATE TABLE nums AS SELECT unnest(range(10)) AS x"
    with duckdb.connect() as con:
        con.execute(nums)
        assert con.execute(text.sql.replace("`", '"')).fetchall() == [(60,)]
    assert text.sql.index("`big`") < text.sql.index("`total`")
    assert "other" not in text.sql
    assert place(text, "FROM nums") == ("big", 2, 1)
    assert place(text, "x > 5") == ("big", 2, 17)
    assert place(text, "FROM big") == ("total", 1, 20)
    assert place(text, "twice AS") == ("", 1, 6)
    assert place(text, "FROM twice") == ("", 2, 10)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM v",
        "FROM V SELECT x",
        "(SELECT x FROM v) UNION SELECT 1",
        "SELECT 1 AS y WHERE 1 IN (SELECT x FROM v)",
        "SELECT * FROM TUMBLE(v, at, INTERVAL 1 MINUTE)",
        "SELECT * FROM TABLE(TUMBLE(TABLE v, DESCRIPTOR(at), INTERVAL 1 MINUTE))",
        "SELECT * FROM a ASOF JOIN v ON a.x = v.x AND a.at >= v.at",
    ],
)
def test_a_view_is_found_wherever_a_table_can_stand(sql: str) -> None:
    """In subqueries, sets and table functions; it may be any query itself."""
    view = "WITH w AS (SELECT 1 AS x) SELECT x FROM w UNION ALL SELECT 2"
    assert composed(sql, {"v": view}, {}).sql.startswith(f"WITH `v` AS (\n{view}\n)\n")


def test_a_query_may_name_its_own_tables_as_views_are() -> None:
    """Its WITH hides the view."""
    assert composed("WITH v AS (SELECT 1 AS x) SELECT x FROM v", {"v": "SELECT 2"}, {}).sql.count("AS (") == 1


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT\n ${dya}", "line 2, column 2: there is no parameter dya; did you mean 'day'?"),
        ("SELECT $x", "line 1, column 8: a parameter is written as ${name}"),
        (
            "SELECT 1 FROM ${n}",
            "line 1, column 15: ${n} stands for a value, and here a name is needed; write it out",
        ),
        (
            "SELECT 1 AS ${n}",
            "line 1, column 13: ${n} stands for a value, and here a name is needed; write it out",
        ),
        ("SELECT ${cities}", "line 1, column 8: ${cities} is a list; write it as in x IN (${cities})"),
        (
            "SELECT '${day}'",
            "line 1, column 8: within quotes, ${day} is text and not the parameter; write it without quotes",
        ),
        (
            "SELECT * FROM v",
            "view v, line 2, column 1: there is no parameter x; spec.parameters has: day, n, cities, city",
        ),
    ],
)
def test_where_no_parameter_can_stand(sql: str, said: str) -> None:
    """Told at its place."""
    with pytest.raises(SqlError) as error:
        composed(sql, {"v": "SELECT\n${x} AS x"}, PARAMETERS)
    assert str(error.value).startswith(said)


def test_views_in_a_circle() -> None:
    """Are named in their order."""
    with pytest.raises(SpecError, match=r"^views\.a: a reads b reads a: a view cannot read itself"):
        composed("SELECT * FROM a", {"a": "SELECT * FROM b", "b": "SELECT * FROM a"}, {})


def test_a_view_that_is_no_query() -> None:
    """Is told in its own text, although the query would be in order without it."""
    with pytest.raises(SqlError, match=r"^view v, line 1"):
        composed("SELECT 1 AS x", {"v": "SELECT 1 FROM (SELECT 2"}, {})


NAME = "stands for a value, and here a name is needed"
OWN = "is a value of its own"
LIST = "is a list; write it as in x IN"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT 1 FROM a, ${city}", NAME),
        ("SELECT 1 FROM a ${city}", NAME),
        ("SELECT 1 FROM a JOIN b USING (${city})", NAME),
        ("SELECT EXTRACT(${city} FROM x) FROM a", NAME),
        ("SELECT CAST(x AS DECIMAL(${n}, 2)) FROM a", NAME),
        ("SELECT INTERVAL 5 ${city} FROM a", NAME),
        ("SELECT * EXCEPT (${city}) FROM a", NAME),
        ("WITH ${city} AS (SELECT 1) SELECT 1", NAME),
        ("SELECT col${n} FROM a", OWN),
        ("SELECT 1${n} FROM a", OWN),
        ("SELECT r${city} FROM a", OWN),
        ("SELECT X${city} FROM a", OWN),
        ("SELECT `a`${city} FROM a", OWN),
        ("SELECT ${n}L FROM a", OWN),
        ("SELECT ${n}.5 FROM a", OWN),
        ("SELECT ${city}${city} FROM a", OWN),
        ("SELECT f(${cities}) FROM a", LIST),
        ("SELECT x IN (f(1, ${cities})) FROM a", LIST),
        ("SELECT sum ${below} FROM a", "near '${below}'"),
        ("SELECT 1 ${city} FROM a", 'near "${city}"'),
        ("SELECT x ${day} FROM a", "near '('"),
    ],
)
def test_a_parameter_is_never_a_piece_of_sql(sql: str, said: str) -> None:
    """No name, no part of a word, no list of arguments, and no call either, as `sum (-5)` would be."""
    with pytest.raises(SqlError) as error:
        composed(sql, {}, {**PARAMETERS, "below": Parameter((-5,))})
    assert said in error.value.message
    assert sql[error.value.column - 1 :].startswith("${")


@pytest.mark.parametrize(
    ("sql", "filled"),
    [
        ("SELECT x>${n} AND x<-${n}", "SELECT x>5 AND x<-5"),
        ("SELECT x[${n}], f(${n},${city})", "SELECT x[5], f(5,'Oslo')"),
        ("SELECT INTERVAL ${n} DAY", "SELECT INTERVAL 5 DAY"),
        ("SELECT INTERVAL ${text} DAY", "SELECT INTERVAL '5' DAY"),
        ("SELECT a > INTERVAL ${amount} AND b", "SELECT a > INTERVAL '5 minutes' AND b"),
        ("SELECT a > b - ${patience} AND c", "SELECT a > b - INTERVAL '90 minutes' AND c"),
        ("SELECT ${n}::STRING, DATE ${date}", "SELECT 5::STRING, DATE '2026-01-01'"),
        ("SELECT x NOT IN (1, ${cities}, ${city})", "SELECT x NOT IN (1, 'Oslo', 'Rome', 'Oslo')"),
        ("SELECT x LIKE ${city} ESCAPE '!', ${yes}", "SELECT x LIKE 'Oslo' ESCAPE '!', TRUE"),
        ("SELECT x FROM a LIMIT ${n}", "SELECT x FROM a LIMIT 5"),
        ("SELECT ${quote}, ${end}", r"SELECT 'it\'s -- \\', '\\'"),
    ],
)
def test_a_value_stands_wherever_a_literal_can(sql: str, filled: str) -> None:
    """Its own quotes and backslashes end nothing."""
    more = {
        "text": Parameter(("5",)),
        "amount": Parameter(("5 minutes",)),
        "patience": Parameter(("90 minutes",), "INTERVAL"),
        "date": Parameter(("2026-01-01",)),
        "yes": Parameter((True,)),
        "quote": Parameter(("it's -- \\",)),
        "end": Parameter(("\\",)),
    }
    assert composed(sql, {}, {**PARAMETERS, **more}).sql == filled
