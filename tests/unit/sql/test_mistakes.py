"""All names of a text that mean nothing are told at once, in their order, and nothing that only follows from one of them."""

import pickle

import pytest

from joinlib.errors import SqlError
from joinlib.sql.blocks import blocks
from joinlib.sql.mistakes import together, unknown_functions, with_functions
from tests.laws.rewrites.same import INPUTS

TOLD = {
    "SELECT t.aa, u.z FROM t JOIN u ON t.k = u.kk WHERE t.b > c": [
        (8, "t has no column aa"),
        (14, "u has no column z"),
        (41, "u has no column kk"),
        (58, "column c is in no input"),
    ],
    # any column may be that of an input that is unknown, by its name and without
    "SELECT t.aa, w.z, y FROM t JOIN w ON t.k = w.kk WHERE c > 1": [(8, "t has no column aa"), (33, "there is no input w")],
    "SELECT q.a, q.b FROM (SELECT * FROM w) q JOIN t ON t.x = q.c": [(37, "there is no input w"), (52, "t has no column x")],
    "SELECT q.a FROM (SELECT w.* FROM w JOIN t ON w.k = t.k) q": [(34, "there is no input w")],
    "WITH c AS (SELECT x FROM t), d AS (SELECT a FROM w) SELECT c.x, d.a, d.b FROM c JOIN d ON c.x = d.a": [
        (19, "column x is in no input"),
        (50, "there is no input w"),
        (70, "d has no column b"),
    ],
    "SELECT a FROM t JOIN u USING (k, z) GROUP BY m HAVING sum(n) > 1 ORDER BY o LIMIT 2": [
        (34, "column z is in no input"),
        (46, "column m is in no input"),
        (59, "column n is in no input"),
        (75, "column o is in no input"),
    ],
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.z = t.z) AND k IN (SELECT q FROM w)": [
        (53, "u has no column z"),
        (59, "t has no column z; there is: k, a, b"),
        (88, "there is no input w"),
    ],
    "SELECT w.*, t.z FROM t": [(8, "w is not an input of this query"), (13, "t has no column z")],
    "SELECT a FROM w UNION ALL SELECT z FROM t": [(15, "there is no input w"), (34, "column z is in no input")],
    "SELECT z AS m, m + 1 AS n, m AS o FROM t": [(8, "column z is in no input")],
    "SELECT t.a FROM t ASOF JOIN u ON t.z >= u.y AND t.k = u.z": [(34, "t has no column z"), (55, "u has no column z")],
    # what is wrong besides may follow from these
    "SELECT z FROM t UNION ALL SELECT a, b FROM t": [(8, "column z is in no input")],
}  # fmt: skip


@pytest.mark.parametrize("sql", TOLD)
def test_all_names_that_are_unknown(sql: str) -> None:
    with pytest.raises(SqlError) as told:
        blocks(sql, INPUTS)
    every = (told.value, *told.value.more)
    assert [
        (one.column, one.message[: len(said)]) for one, (_, said) in zip(every, TOLD[sql], strict=True)
    ] == TOLD[sql]
    assert str(told.value).splitlines() == [f"line 1, column {one.column}: {one.message}" for one in every]


def test_functions_that_are_unknown() -> None:
    """Of SQL; those that it has are no mistake, whatever they are."""
    sql = "SELECT nope(a) AS x, uppr(sum(b)) AS y, rank() OVER (ORDER BY a) AS z, explode(c) AS e FROM TUMBLE(t, a, INTERVAL 1 DAY)"
    found = unknown_functions(sql)
    assert [(one.column, one.message) for one in found] == [
        (8, "function nope is not supported"),
        (22, "function uppr is not supported; did you mean upper?"),
    ]
    assert unknown_functions("SELECT nope(") == []
    assert unknown_functions("SELECT /*+ BROADCAST(p) */ a FROM t") == []


def test_other_mistakes_stay_alone() -> None:
    """What they are about may look like a function."""
    for message, column in (("no", 1), ("function nope is not supported", 8)):
        with pytest.raises(SqlError) as told, with_functions("SELECT nope(a) AS x, nope(b) AS y FROM t"):
            raise SqlError(message, 1, column)
        assert len(told.value.more) == (column == 8)


def test_mistakes_are_in_the_order_of_their_places_and_each_once() -> None:
    one, two = (
        SqlError("one", 1, 9),
        SqlError("two", 2, 1, more=(SqlError("one", 1, 9), SqlError("three", 2, 4))),
    )
    found = together([two, one])
    assert str(found).splitlines() == [
        "line 1, column 9: one",
        "line 2, column 1: two",
        "line 2, column 4: three",
    ]
    assert str(pickle.loads(pickle.dumps(found))) == str(found)
