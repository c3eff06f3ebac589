"""Random nested queries on the product's own path: right after every batch, in spite of trouble."""

from random import Random

import pytest

from tests.laws.rewrites.nested import Nested
from tests.laws.rewrites.running import wrong
from tests.laws.rewrites.same import Judge


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5000, 5008))
def test_nested(seed: int) -> None:
    sql = Nested(Random(seed)).text(3)
    assert list(wrong(sql, Judge(), seed)) == []
