"""Text of any length and depth is read, or refused in a word."""

import pickle

import pytest

from joinlib.errors import SqlError
from joinlib.sql import Query, analyse
from tests.unit.sql.tables import TABLES

JOIN = "FROM orders o JOIN ships s ON o.id = s.order_id"


def long(word: str) -> str:
    return f" {word} ".join(f"o.id + {n} <> s.id" for n in range(1000))


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT o.id {JOIN} WHERE {long('OR')}",
        f"SELECT o.id {JOIN} AND ({long('OR')})",
        f"SELECT o.id {JOIN} WHERE {long('AND')}",
        f"SELECT o.day {JOIN} GROUP BY o.day HAVING {long('OR').replace('o.id', 'max(o.id)').replace('s.id', 'min(s.id)')}",
        f"SELECT CASE WHEN {long('THEN 1 WHEN')} THEN 2 END AS x {JOIN}",
        f"SELECT {'(' * 140}o.id{')' * 140} AS x {JOIN}",
        f"SELECT {'o.id + ' * 140}1 AS x {JOIN}",
        f"SELECT {'abs(' * 140}o.id{')' * 140} AS x {JOIN} WHERE {'NOT ' * 140}(o.id = 1)",
        f"SELECT {'count(*) + ' * 140}1 AS x {JOIN} GROUP BY o.day",
    ],
    ids=["or", "on", "and", "having", "case", "parentheses", "sum", "calls", "groups"],
)
def test_long_and_deep(sql: str) -> None:
    """It can be read, and sent to workers, which have no more room than usual."""
    found: Query = analyse(sql, TABLES)

    assert pickle.loads(pickle.dumps(found)).select == found.select


@pytest.mark.parametrize("depth", [200, 3000])
@pytest.mark.parametrize("form", ["({})", "abs({})", "- {}", "1 + ({})", "CASE WHEN o.id = 1 THEN {} END"])
def test_too_deep(form: str, depth: int) -> None:
    """No traceback, however deep."""
    before, after = form.split("{}")

    with pytest.raises(SqlError, match="nested more than 150 levels deep"):
        analyse(f"SELECT {before * depth}o.id{after * depth} AS x {JOIN}", TABLES)
