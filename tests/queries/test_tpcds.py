"""Queries of TPC-DS as continuous ones: after every tenth of their rows their contents are DuckDB's answer.

All 103 take half an hour: STREAMJOIN_TPCDS=all. Otherwise those that differ most in shape, and some more.
"""

import os

import pytest

from tests.queries.corpus import Query, queries
from tests.queries.run import wrong

SOME = (  # what is special about them
    "q1",  # a correlated average over a CTE
    "q2",  # weeks beside those of the year before
    "q3", "q6", "q7", "q8",  # INTERSECT within IN
    "q9",  # scalar subqueries in CASE
    "q10",  # EXISTS under OR
    "q12",  # shares by window functions
    "q13", "q14b", "q15", "q16",  # NOT EXISTS and count(DISTINCT)
    "q17",  # stddev over three facts
    "q21", "q27",  # ROLLUP with grouping()
    "q28", "q32", "q33", "q34", "q36",  # rank within levels of a ROLLUP
    "q37", "q38",  # INTERSECT three times
    "q41", "q44",  # rank from both ends
    "q47",  # rank, and rows beside the one before
    "q48", "q51",  # running sums of a FULL JOIN
    "q53", "q58", "q62", "q67", "q70", "q75", "q78", "q87",  # EXCEPT twice
    "q88", "q90", "q93", "q95", "q97", "q99",
)  # fmt: skip
ALL = os.environ.get("STREAMJOIN_TPCDS") == "all"
ASKED = [q for q in queries("tpcds") if ALL or q.name in SOME]


@pytest.mark.slow
@pytest.mark.parametrize("asked", ASKED, ids=lambda q: q.name)
def test_contents(asked: Query) -> None:
    assert not list(wrong(asked, seed=len(asked.text)))
