"""Which queries are planned. One that becomes acceptable is to be taken off the list; one that is not any more is a fault."""

import pytest

from tests.queries.accept import table, verdict
from tests.queries.corpus import BENCHMARKS, queries

REFUSED: dict[str, str] = {}  # query: a part of what the refusal says


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_acceptance(benchmark: str) -> None:
    found = [verdict(query) for query in queries(benchmark)]
    print(table(found))
    refused = {v.query.title: v.why for v in found if not v.stages}
    known = {title: why for title, why in REFUSED.items() if title.startswith(benchmark)}
    assert refused.keys() == known.keys(), table(found)
    assert {v.query.title: v.untold for v in found if v.untold} == {}
    for title, why in known.items():
        assert why in refused[title]
