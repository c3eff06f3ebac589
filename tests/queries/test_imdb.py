"""Join queries like those of the Join Order Benchmark as continuous ones: after every tenth of their rows their contents are DuckDB's answer.

A few of them; STREAMJOIN_QUERIES=all: all.
"""

import pytest

from tests.queries.corpus import Query, chosen
from tests.queries.run import wrong


@pytest.mark.slow
@pytest.mark.parametrize("asked", chosen("imdb", 6), ids=lambda q: q.name)
def test_contents(asked: Query) -> None:
    assert not list(wrong(asked, seed=int(asked.name[1:])))
