"""New executors rehearse before units move to them; nobody waits for ever for that."""

import threading
import time

from joinlib.spark.rehearsal import Rehearsals


def until(true: object) -> None:
    end = time.monotonic() + 10
    while not true():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_new_executor_is_warm_once_it_has_rehearsed() -> None:
    """One rehearsal for all that are new; none where nobody is."""
    going, sizes = threading.Event(), list[int]()

    def rehearse(executors: int) -> None:
        sizes.append(executors)
        going.wait(10)

    rehearsals = Rehearsals(rehearse, ["1"])
    assert rehearsals.done(["1"]) == ["1"]
    assert rehearsals.done(["1", "2", "3"]) == ["1"]
    assert rehearsals.done(["1", "2", "3"]) == ["1"]
    going.set()
    until(lambda: rehearsals.done(["1", "2", "3"]) == ["1", "2", "3"])
    assert rehearsals.done(["2", "3"]) == ["2", "3"]
    assert sizes == [3]


def test_a_rehearsal_that_fails_keeps_nobody_away() -> None:
    """It only saves time."""

    def rehearse(executors: int) -> None:
        raise RuntimeError(executors)

    rehearsals = Rehearsals(rehearse, [])
    until(lambda: rehearsals.done(["1"]) == ["1"])


def test_a_rehearsal_that_hangs_is_not_waited_for() -> None:
    """After a minute executors count as warm."""
    now, going = [0.0], threading.Event()

    def rehearse(executors: int) -> None:
        del executors
        going.wait(10)

    rehearsals = Rehearsals(rehearse, [], lambda: now[0])
    assert rehearsals.done(["1"]) == []
    now[0] = 59
    assert rehearsals.done(["1"]) == []
    now[0] = 61
    assert rehearsals.done(["1"]) == ["1"]
    going.set()
