"""Queries of many joins by other plans than the planner's own: after every tenth of their rows their contents are DuckDB's answer.

The 11 of TPC-H that UMJoin's table 3 has, 20 of TPC-DS that join four inputs or more at once, and all of `imdb`, by each
`join.strategy` of those below. A few of these; STREAMJOIN_QUERIES=all: all. The planner's own plans: test_tpch.py and its like.
"""

import itertools
from random import Random
from unittest.mock import Mock

import pytest

from joinlib.checkpoint import planned
from joinlib.plan import order
from joinlib.plan.options import STRATEGIES
from joinlib.plan.source import InputStatistics
from tests.queries.corpus import Query, drawn, queries
from tests.queries.run import wrong

ASKED = tuple(word for word in ("binary", "stages", "paths") if word in STRATEGIES)
MANY_JOINS = {
    "tpch": "q2 q3 q5 q7 q8 q9 q10 q11 q15 q18 q21",
    "tpcds": "q6 q7 q13 q17 q18 q19 q24a q25 q26 q27 q29 q45 q48 q50 q64 q72 q84 q85 q91 q99",
    "imdb": " ".join(q.name for q in queries("imdb")),
}
REFUSED = {("tpch-q11", "binary"), ("tpcds-q24a", "binary")}  # a part relates its inputs by > only
CASES = [
    (query, strategy)
    for benchmark, names in MANY_JOINS.items()
    for query, strategy in itertools.product(queries(benchmark), ASKED)
    if query.name in names.split() and (query.title, strategy) not in REFUSED
]
BY_PATHS = [query for query in queries("tpch") if query.name in MANY_JOINS["tpch"].split()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "strategy"),
    [pytest.param(*c, id=f"{c[1]}-{c[0].title}") for c in drawn("strategies", CASES, 6)],
)
def test_contents(asked: Query, strategy: str) -> None:
    assert not list(wrong(asked, seed=len(asked.text), strategy=strategy))


@pytest.mark.slow
@pytest.mark.parametrize("asked", drawn("auto", BY_PATHS, 3), ids=lambda asked: asked.title)
def test_contents_of_paths_that_auto_takes(asked: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    """By figures that the data has not; paths are taken whatever they cost."""
    random, took = Random(asked.text), Mock(wraps=order.as_paths)
    monkeypatch.setattr(planned, "_found", lambda _: InputStatistics(10 ** random.randint(3, 6)))
    monkeypatch.setattr(order, "WORTH", float("inf"))
    monkeypatch.setattr(order, "as_paths", took)

    assert not list(wrong(asked, seed=len(asked.text)))
    assert took.called
