"""How many rows a batch may have that is run without Spark, and how many may wait."""

import pytest

from joinlib.direct.allowance import Allowance, Limits

LEAST = 1000
FIRST = Allowance.first(LEAST, 10, alone=False)  # work of 6 s is done sooner than by Spark
WORTH_S = 5 / (1 - 1 / 6)


def waiting(allowed: Allowance) -> float:
    return allowed.limits(spark=False).waiting


def test_batches_double_as_long_as_they_are_quick() -> None:
    """Up to some times the least; a slow one halves them, down to the least."""
    allowed, seen = FIRST, []
    for _ in range(5):
        seen.append(allowed.limits(spark=False).rows)
        allowed = allowed.after(allowed.rows, 0.1, left=True)
    assert seen == [1000, 2000, 4000, 8000, 8000]
    for seconds, rows in ((0.3, 8000), (0.6, 4000), (0.6, 2000), (0.6, 1000), (0.6, 1000)):
        allowed = allowed.after(allowed.rows, seconds, left=True)
        assert allowed.rows == rows


def test_while_spark_is_there() -> None:
    """Batches are small, and few of them may wait, whatever was seen."""
    seen = FIRST.after(1000, 0.1, left=True)
    assert seen.limits(spark=True) == FIRST.limits(spark=True) == Limits(1000, 1000, 8000)


def test_a_slice_may_be_larger_where_nothing_goes_from_level_to_level() -> None:
    """It cannot be divided."""
    assert FIRST.limits(spark=False).most == 8000
    assert Allowance.first(LEAST, 10, alone=True).limits(spark=False).most == 32_000


def test_rows_may_wait_that_are_joined_before_spark_has_joined_them() -> None:
    """A quick batch says only that more are joined than it had; any other says how many are."""
    assert waiting(FIRST) == pytest.approx(1e6 * WORTH_S)
    assert waiting(FIRST.after(1000, 0.1, left=True)) == waiting(FIRST)
    assert waiting(FIRST.after(1_000_000, 0.2, left=True)) == pytest.approx(5e6 * WORTH_S)
    assert waiting(FIRST.after(1000, 1.0, left=True)) == pytest.approx(1000 * WORTH_S)


@pytest.mark.parametrize(
    ("cores", "seconds"), [(1, float("inf")), (2, 30), (4, 60 / 7), (16, 5 / (1 - 1 / 9.6))]
)
def test_on_few_cores_more_may_wait(cores: int, seconds: float) -> None:
    """Spark is hardly faster there, and never on one."""
    assert waiting(Allowance.first(LEAST, cores, alone=True)) == pytest.approx(1e6 * seconds)


def test_none_may_wait_where_it_cannot_keep_up() -> None:
    """Whatever the figures say, after twice that time. A batch that leaves none begins anew."""
    allowed = FIRST
    for _ in range(11):
        allowed = allowed.after(1000, 1.0, left=True)
    assert waiting(allowed) > 0
    assert waiting(allowed.after(1000, 1.0, left=True)) == 0
    assert waiting(allowed.after(1000, 1.0, left=False)) > 0


def test_a_batch_that_leaves_none_says_nothing_of_the_rate() -> None:
    """It had the rows that there were."""
    assert FIRST.after(1, 1.0, left=False) == FIRST
