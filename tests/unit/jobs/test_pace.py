"""How fast rows come, and how fast they are read while a batch runs."""

from dataclasses import replace

import pytest

from jobs.pace import WINDOW_S, Lap, Pace, lap


def figures(read: int, rows: int) -> dict[str, dict[str, int]]:
    return {"orders": {"read": read, "rows": rows, "slices": 1}}


def done(at: float, read: int, rows: int, took: float = 2.0, executors: int = 2, of: int = 1000) -> Lap:
    return replace(lap(at, took, figures(read - of, 0), figures(read, rows)), executors=executors)


def after(*laps: Lap) -> Pace:
    pace = Pace()
    for each in laps:
        pace = pace.after(each)
    return pace


def test_rows_that_wait_have_come_too() -> None:
    """In ten seconds 1000 rows were read, and 2000 more wait: 300 come in a second."""
    pace = after(done(0, 1000, 0), done(10, 2000, 2000))
    assert pace.arrivals() == {"orders": 300}


def test_growth_counts_from_the_first_batch_that_knows_the_input() -> None:
    """The first batch of a run knows none."""
    pace = after(lap(0, 1, {}, {}), done(10, 1000, 0), done(20, 2000, 0))
    assert pace.arrivals() == {"orders": 100}


def test_the_true_rate_is_that_of_busy_time() -> None:
    """Two batches of 1000 rows took two seconds each; what was between them does not count."""
    assert after(done(0, 1000, 0), done(10, 2000, 0)).true_rate(2) == 500
    assert after(done(0, 1000, 0), done(10, 2000, 0, took=6)).true_rate(2) == 250


def test_batches_of_other_executors_say_nothing() -> None:
    """Until the first batch of those that are there, nothing is known; then that batch alone counts."""
    pace = after(done(0, 1000, 0), done(5, 2000, 0))
    assert pace.true_rate(4) is None
    assert pace.after(done(10, 3000, 0, took=1, executors=4)).true_rate(4) == 1000


def test_what_is_not_known_is_not_said() -> None:
    """One moment is no growth; a batch whose beginning an older version has logged has no rows."""
    assert Pace().arrivals() == {}
    assert Pace().true_rate(0) is None
    assert after(done(0, 1000, 0)).arrivals() == {}
    old = lap(0, 1, {"orders": {"rows": 3, "slices": 1}}, figures(10, 0))
    assert old.rows is None
    assert Pace().after(old).true_rate(0) is None
    assert lap(0, 1, {}, {}).rows is None


def test_a_stream_that_falls_silent() -> None:
    """Its rate falls to nothing; what the executors can do stays known."""
    pace = after(done(0, 1000, 0), done(10, 2000, 0))
    assert pace.idle(20).arrivals() == {"orders": 50}
    assert pace.idle(11 + WINDOW_S).arrivals() == {"orders": 0}
    assert pace.idle(11 + WINDOW_S).true_rate(2) == 500
    assert after(done(0, 1000, 0)).idle(10).arrivals() == {"orders": 0}


@pytest.mark.parametrize("later", [1.0, WINDOW_S, 10 * WINDOW_S])
def test_batches_may_take_longer_than_a_minute(later: float) -> None:
    """The last one is always known, so the next one says how much has come since."""
    pace = after(done(0, 1000, 0), done(later, 2000, 500, took=later))
    assert pace.arrivals() == {"orders": 1500 / later}
    assert len(pace.laps) == 2


def test_what_lies_back_is_forgotten() -> None:
    """A minute of batches, not more."""
    pace = after(*(done(second, 1000 * second, 0) for second in range(1, 200)))
    assert len(pace.laps) == WINDOW_S + 1
