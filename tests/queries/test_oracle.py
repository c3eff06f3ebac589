"""The queries have answers to be compared: DuckDB reads all of them, and none is empty over its tables."""

from collections import Counter

import pytest

from tests.queries.compare import Expected, differences
from tests.queries.corpus import BENCHMARKS, Query, chosen, queries
from tests.queries.data import TENTHS, data
from tests.queries.oracle import expected

COUNTS = {"tpch": 22, "tpcds": 103, "imdb": 22, "nexmark": 23, "patterns": 58}


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_all_of_them(benchmark: str) -> None:
    assert len(queries(benchmark)) == COUNTS[benchmark]


@pytest.mark.slow
@pytest.mark.parametrize("asked", [q for b in BENCHMARKS for q in chosen(b, 5)], ids=lambda q: q.title)
def test_answer_is_not_empty(asked: Query) -> None:
    found = expected(asked, data(asked).after(TENTHS))
    assert found.rows or found.count


def test_numbers_differ_by_roundings_only() -> None:
    wanted = Expected([("a", 1.0000001, None), ("b", 2, None)])
    assert differences(wanted, Counter([("a", 1.0, None), ("b", 2, None)])) == ""
    assert "missing" in differences(wanted, Counter([("a", 1.1, None), ("b", 2, None)]))
    assert "missing" in differences(wanted, Counter([("a", 1.0, 0), ("b", 2, None)]))
    assert "3 rows for 2" in differences(wanted, Counter({("a", 1.0, None): 1, ("b", 2, None): 2}))


def test_any_of_those_that_a_limit_cuts_apart() -> None:
    wanted = Expected([("a",)], [("b",), ("b",), ("c",)], 2)
    assert differences(wanted, Counter({("a",): 1, ("b",): 2})) == ""
    assert differences(wanted, Counter([("a",), ("b",), ("c",)])) == ""
    assert differences(wanted, Counter({("a",): 1, ("c",): 2}))
    assert differences(wanted, Counter([("a",), ("b",)]))
    assert differences(wanted, Counter([("b",), ("b",), ("c",)]))
