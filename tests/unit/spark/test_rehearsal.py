"""New executors rehearse before units move to them; nobody waits forever for that."""

import threading
from collections.abc import Sequence

from joinlib.spark.rehearsal import Rehearsals
from tests.patience import HUNG_S, until


def test_a_new_executor_is_warm_once_it_has_rehearsed() -> None:
    """One rehearsal for all that are new; none where nobody is."""
    going, new = threading.Event(), list[Sequence[str]]()

    def rehearse(executors: Sequence[str]) -> None:
        new.append(executors)
        going.wait(HUNG_S)

    rehearsals = Rehearsals(rehearse, ["1"])
    assert rehearsals.done(["1"]) == ["1"]
    assert rehearsals.done(["1", "2", "3"]) == ["1"]
    assert rehearsals.done(["1", "2", "3"]) == ["1"]
    going.set()
    until(lambda: rehearsals.done(["1", "2", "3"]) == ["1", "2", "3"])
    assert rehearsals.done(["2", "3"]) == ["2", "3"]
    assert new == [["2", "3"]]


def test_a_rehearsal_that_fails_keeps_nobody_away() -> None:
    """It only saves time."""

    def rehearse(executors: Sequence[str]) -> None:
        raise RuntimeError(executors)

    rehearsals = Rehearsals(rehearse, [])
    until(lambda: rehearsals.done(["1"]) == ["1"])


def test_a_rehearsal_that_hangs_is_not_waited_for() -> None:
    """After a minute executors count as warm."""
    now, going = [0.0], threading.Event()

    def rehearse(executors: Sequence[str]) -> None:
        del executors
        going.wait(HUNG_S)

    rehearsals = Rehearsals(rehearse, [], lambda: now[0])
    assert rehearsals.done(["1"]) == []
    now[0] = 59
    assert rehearsals.done(["1"]) == []
    now[0] = 61
    assert rehearsals.done(["1"]) == ["1"]
    going.set()


def test_units_move_once() -> None:
    """Who has rehearsed waits for those that have come meanwhile."""
    last, new = threading.Event(), list[Sequence[str]]()

    def rehearse(executors: Sequence[str]) -> None:
        new.append(executors)
        if "3" in executors:
            last.wait(HUNG_S)

    rehearsals = Rehearsals(rehearse, ["1"])
    rehearsals.done(["1", "2"])
    until(lambda: rehearsals.done(["1", "2", "3"]) == ["1"] and new == [["2"], ["3"]])
    last.set()
    until(lambda: rehearsals.done(["1", "2", "3"]) == ["1", "2", "3"])


def test_a_rehearsal_waits_for_those_that_are_coming() -> None:
    """One rehearsal for executors that come together; one that never comes holds nobody back for ever."""
    now, new = [0.0], list[Sequence[str]]()
    rehearsals = Rehearsals(new.append, ["1"], lambda: now[0])
    assert rehearsals.done(["1", "2"], coming=True) == ["1"]
    assert rehearsals.done(["1", "2", "3"], coming=True) == ["1"]
    assert new == []
    until(lambda: rehearsals.done(["1", "2", "3", "4"]) == ["1", "2", "3", "4"])
    assert new == [["2", "3", "4"]]
    assert rehearsals.done(["1", "2", "3", "4", "5"], coming=True) == ["1", "2", "3", "4"]
    now[0] = 61
    assert rehearsals.done(["1", "2", "3", "4", "5"], coming=True) == ["1", "2", "3", "4", "5"]
    assert new == [["2", "3", "4"]]


def test_executors_that_come_again_and_again_hold_nobody_back() -> None:
    """Those that stay have units after a minute."""
    now, going, told = [0.0], threading.Event(), list[str]()

    def rehearse(executors: Sequence[str]) -> None:
        del executors
        going.wait(HUNG_S)

    rehearsals = Rehearsals(rehearse, ["1"], lambda: now[0])
    for another in range(3, 35):
        now[0] += 2
        told = rehearsals.done(["1", "2", str(another)])
    going.set()
    assert told[:2] == ["1", "2"]
