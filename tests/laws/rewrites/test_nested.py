"""Random nested queries: the blocks return what the text returns."""

from random import Random

import pytest

from tests.laws.rewrites.nested import Nested
from tests.laws.rewrites.same import Judge, differences


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_nested(seed: int) -> None:
    judge = Judge()
    for number in range(10):
        sql = Nested(Random(1000 * seed + number)).text(3)
        assert differences(sql, judge, 5) == ""
