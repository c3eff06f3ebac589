"""The shapes that other systems document as continuous ones: after every tenth of their rows their contents are DuckDB's answer."""

import pytest

from tests.queries.corpus import Query, queries
from tests.queries.run import wrong


@pytest.mark.slow
@pytest.mark.parametrize("asked", queries("patterns"), ids=lambda q: q.name)
def test_contents(asked: Query) -> None:
    assert not list(wrong(asked, seed=len(asked.text)))
