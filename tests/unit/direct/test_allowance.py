"""How many rows a batch may have that is run without Spark, and how many may wait, while Spark is not there."""

from joinlib.direct.allowance import Allowance

LEAST = 1000


def test_batches_double_as_long_as_they_are_quick() -> None:
    """Up to some times the least; a slow one halves them, down to the least."""
    allowed, seen = Allowance.first(LEAST), []
    for _ in range(5):
        seen.append(allowed.rows)
        allowed = allowed.after(allowed.rows, 0.1, left=True)
    assert seen == [1000, 2000, 4000, 8000, 8000]
    for seconds, rows in ((0.3, 8000), (0.6, 4000), (0.6, 2000), (0.6, 1000), (0.6, 1000)):
        allowed = allowed.after(allowed.rows, seconds, left=True)
        assert allowed.rows == rows


def test_rows_may_wait_that_are_joined_before_spark_is_there() -> None:
    """A quick batch says only that more are joined than it had; any other says how many are."""
    allowed = Allowance.first(LEAST)
    assert allowed.waiting == 5e6
    assert allowed.after(1000, 0.1, left=True).waiting == 5e6
    assert allowed.after(1_000_000, 0.2, left=True).waiting == 25e6
    assert allowed.after(1000, 1.0, left=True).waiting == 5000


def test_none_may_wait_where_it_cannot_keep_up() -> None:
    """Whatever the figures say: after twice the time in which Spark starts. A batch that leaves none begins anew."""
    allowed = Allowance.first(LEAST)
    for _ in range(99):
        allowed = allowed.after(1000, 0.1, left=True)
    assert allowed.waiting > 0
    assert allowed.after(1000, 0.2, left=True).waiting == 0
    assert allowed.after(1000, 0.2, left=False).waiting > 0


def test_a_batch_that_leaves_none_says_nothing_of_the_rate() -> None:
    """It had the rows that there were."""
    allowed = Allowance.first(LEAST)
    assert allowed.after(1, 1.0, left=False) == allowed
