"""All 22 queries of TPC-H as continuous ones: after every tenth of their rows their contents are DuckDB's answer."""

import pytest

from tests.queries.corpus import Query, queries
from tests.queries.run import wrong


@pytest.mark.slow
@pytest.mark.parametrize("asked", queries("tpch"), ids=lambda q: q.name)
def test_contents(asked: Query) -> None:
    assert not list(wrong(asked, seed=int(asked.name[1:])))
