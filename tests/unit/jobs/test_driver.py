"""What a driver takes from its environment, and how it says what went wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from jobs.driver.driver import DriverProcess, one_line
from jobs.driver.environment import driver_environment
from jobs.figures import Figures, Took, beginning
from joinlib.checkpoint.identity import inherit
from joinlib.errors import NotReady, SpecError
from joinlib.metric.heap import Heap
from joinlib.scale import ExecutorRequest
from joinlib.spark import executors
from joinlib.spec import load

POD = {
    "POD_NAME": "late-driver-0",
    "POD_NAMESPACE": "shop",
    "POD_IP": "10.0.0.7",
    "POD_UID": "uid-1",
    "STREAMJOIN_IMAGE": "streamjoin:1",
    "STREAMJOIN_EXECUTOR_TEMPLATE": "/etc/streamjoin/executor.yaml",
    "STREAMJOIN_RPC_FILE": "/etc/streamjoin-rpc/token",
    "TMPDIR": "/scratch",
}


def test_a_pod() -> None:
    """Each run has a name of its own, also in the same pod."""
    one, two = driver_environment(POD).place, driver_environment(POD).place
    assert one is not None
    assert two is not None
    assert (one.pod.name, one.pod.uid, one.temporary, one.cpu) == ("late-driver-0", "uid-1", "/scratch", None)
    assert one.secret == "/etc/streamjoin-rpc/token"
    assert len(one.run) == 8
    assert one.run != two.run


def test_no_pod() -> None:
    """No place, no token."""
    around = driver_environment({})
    assert (around.place, around.token(), around.port) == (None, None, 8080)


def test_half_a_pod() -> None:
    """What is missing is named."""
    with pytest.raises(SpecError, match="POD_IP, STREAMJOIN_IMAGE not set"):
        driver_environment({**POD, "POD_IP": "", "STREAMJOIN_IMAGE": ""})


def test_one_line() -> None:
    """Line breaks go, a Java stack trace is cut off, and the length is bounded."""
    assert (
        one_line(SpecError("a.yaml:3: wrong\na.yaml:4: wrong too")) == "a.yaml:3: wrong a.yaml:4: wrong too"
    )
    assert one_line(RuntimeError("it failed.\n: java.lang.X: no\n\tat a.b.C(D.java:1)\n\tat e.f")) == (
        "it failed. : java.lang.X: no"
    )
    assert one_line(KeyboardInterrupt()) == "KeyboardInterrupt"  # type: ignore[arg-type]
    assert len(one_line(SpecError("x" * 5000))) == 2000


SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: driven}
spec:
  sql: SELECT a.k FROM a JOIN b ON a.k = b.k
  inputs:
    a: {schema: "k BIGINT", generator: {rowsPerSecond: 5}}
    b: {schema: "k BIGINT", generator: {rowsPerSecond: 5}}
  output: {noop: {}}
  join: {units: 8}
  checkpoint: {path: checkpoint}
  executors: {min: 1, max: 4, cores: 2}
"""


@dataclass
class Query:
    """Stands for a flow whose query runs, and for its job."""

    partitions: int = 4
    patience_s: float = 60.0
    told: list[tuple[int, str]] = field(default_factory=list)  # partitions, and the executor of each
    placed: str = ""
    readers: str = ""
    flowing: Event = field(default_factory=Event)
    took: Took = field(default_factory=Took)
    lag: dict[str, Any] = field(default_factory=dict)
    loads: dict[str, Any] = field(default_factory=dict)
    route_skew: dict[str, float] = field(default_factory=dict)
    heap: Any = None
    hot: dict[str, float] = field(default_factory=dict)
    busy: bool = False
    patience: list[float] = field(default_factory=list)  # of each look

    def reports(self, seconds: float) -> list[Any]:
        """No batch has ended."""
        self.patience.append(seconds)
        return []

    @property
    def job(self) -> "Query":
        return self

    def spread(self, partitions: int, executors: Sequence[str], readers: Sequence[str]) -> None:
        placed, before = (partitions, "".join(executors)), (self.partitions, self.placed)
        assert (placed, "".join(readers)) != (before, self.readers), "it is said again"
        self.partitions, self.placed, self.readers = *placed, "".join(readers)
        if placed != before:
            self.told.append(placed)


@dataclass
class Pool:
    """Stands for executors, each a letter of `there`, of which some have not rehearsed yet."""

    there: str = ""
    cold: str = ""
    gone: str = ""
    rehearsals: int = 0
    wanted: int = 0
    coming: bool = False
    told: dict[str, Heap] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)

    def want(self, total: int, held: Mapping[str, int]) -> None:
        self.asked.append(total)

    def ready(self) -> list[str]:
        return list(self.there)

    def heaps(self) -> dict[str, Heap]:
        return self.told

    def leaving(self) -> list[str]:
        return list(self.gone)

    def warm(self) -> list[str]:
        self.rehearsals += 1
        self.coming = bool(self.cold)
        return [e for e in self.there if e not in self.cold]


class Scene:
    """A driver and executors that come and go: what does it tell its job at each look?"""

    def __init__(self, folder: Path) -> None:
        file = folder / "spec.yaml"
        file.write_text(SPEC)
        self.driver, self.query, self.pool = (
            DriverProcess(file, load(file), driver_environment({})),
            Query(),
            Pool(),
        )
        self.driver._pool = self.pool  # type: ignore[assignment]

    def __call__(self, wanted: int, there: str, cold: str = "", gone: str = "") -> list[tuple[int, str]]:
        self.driver._tell(wanted=wanted)
        self.pool.there, self.pool.cold, self.pool.gone = there, cold, gone
        self.query.told.clear()
        self.driver._look(self.query)  # type: ignore[arg-type]
        return self.query.told.copy()


@pytest.fixture
def seen(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_folder_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    """Until it is there, or until asked to stop; the message names the input."""
    file, orders = tmp_path / "spec.yaml", tmp_path / "orders"
    file.write_text(SPEC.replace("generator: {rowsPerSecond: 5}", f"files: {{path: {orders}}}", 1))
    driver = DriverProcess(file, load(file), driver_environment({}))
    waiting = Thread(target=lambda: found.append(driver._inputs()))
    found: list[bool] = []
    waiting.start()
    while not driver.moment.message:
        assert waiting.is_alive()
    assert (driver.moment.phase, driver.answers().healthy()) == ("Waiting", True)
    assert driver.moment.message.startswith(f"input a: {orders} is not there yet")
    driver.stopping.set()
    waiting.join()
    assert found == [False]

    orders.mkdir()
    assert driver._inputs()


def test_a_fork_knows_whose_it_is(seen: Scene, tmp_path: Path) -> None:
    """Once it runs; a checkpoint that was forked before names were noted says nothing."""
    (tmp_path / "checkpoint").mkdir()
    for known, origin in (({"name": "first"}, ("first", 7)), ({}, None)):
        forked = {"id": "1-2", "batch": 7, "inputs": {}, **known}
        inherit(tmp_path / "checkpoint", "driven", seen.driver.pipeline, forked, synced=False)
        seen.driver._begin(seen.query)  # type: ignore[arg-type]
        assert (seen.driver.moment.phase, seen.driver.moment.origin) == ("Running", origin)


def test_what_executors_tell_of_their_heaps_is_passed_on(seen: Scene) -> None:
    """At each look."""
    seen.pool.told = {"1": Heap(3, 8, 0.5)}
    seen(1, "1")
    assert seen.driver.moment.heaps == {"1": Heap(3, 8, 0.5)}


@dataclass
class Dying:
    """Stands for a flow whose Spark has died: what is asked of it raises."""

    error: Exception | None
    alive: bool = True

    def is_alive(self) -> bool:
        return self.alive

    def join(self, seconds: float) -> None:
        self.alive = False

    def reports(self, seconds: float) -> list[Any]:
        raise AttributeError("'NoneType' object has no attribute 'sc'")


def test_the_last_words_are_those_of_the_flow(seen: Scene) -> None:
    """Not of a look at executors that are gone with it; without any, the look's own error is told."""
    seen.driver._watch(Dying(NotReady("Spark's JVM died")))  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        seen.driver._watch(Dying(None))  # type: ignore[arg-type]


def test_a_new_executor_rehearses_at_once(seen: Scene) -> None:
    """In the midst of a batch: at its end it would be too late, as the next one begins at once."""
    seen(2, "12", cold="2")
    assert (seen.pool.rehearsals, seen.driver.moment.there) == (1, ("1", "2"))


def test_while_executors_come_it_looks_more_often(seen: Scene) -> None:
    """Until the last of them has rehearsed."""
    for cold in ("", "2", "2", "", ""):
        seen(2, "12", cold=cold)
    usual, _, soon, again, last = seen.query.patience
    assert soon == again < usual == last


def test_there_is_a_partition_for_each_core(seen: Scene) -> None:
    """Two cores an executor, eight units: two, four, eight partitions, and two again. Nothing is said twice."""
    assert seen(1, "1") == [(2, "11")]
    assert seen(1, "1") == []
    assert seen(2, "12") == [(4, "1122")]
    assert seen(3, "123") == [(8, "11221323")]
    assert seen(4, "1234") == [(8, "11224343")]
    assert seen(4, "1234") == []
    assert seen.driver.moment.partitions == 8
    assert seen(1, "1") == [(2, "11")]


def test_who_has_not_rehearsed_gets_none(seen: Scene) -> None:
    """And as many as there were stay until all that are wanted have."""
    seen(1, "1")
    assert seen(3, "12", cold="2") == []
    assert seen(3, "123", cold="23") == []
    assert seen(3, "123", cold="3") == [(2, "12")]
    assert seen(3, "123") == [(8, "12121233")]


def test_who_has_not_rehearsed_does_not_read(seen: Scene) -> None:
    """The others do, those that are spare too; once all that are wanted have rehearsed, any executor may."""
    for there, cold, readers in (
        ("1", "", ""),
        ("12", "2", "1"),
        ("123", "23", "1"),
        ("123", "3", "12"),
        ("123", "", ""),
    ):
        seen(1, there, cold=cold)
        assert seen.query.readers == readers
    seen.pool.wanted = 4
    seen(1, "123")
    assert seen.query.readers == "123", "one may come at any moment"


def test_who_leaves_gets_none(seen: Scene) -> None:
    """From the next batch on; the others share what it had, and once it has gone there are fewer."""
    assert seen(2, "12") == [(4, "1212")]
    assert seen(1, "1", gone="2") == [(4, "1111")]
    assert seen(1, "1") == [(2, "11")]


def test_a_spare_executor_gets_none_until_it_is_wanted(seen: Scene) -> None:
    """It rehearses all the same; then it has its units at once, and the next one that comes is spare."""
    assert seen(1, "12", cold="2") == [(2, "11")]
    assert (seen.driver.moment.there, seen.driver.moment.spare) == (("1",), 1)
    assert seen(1, "12") == []
    assert seen(2, "12") == [(4, "1122")]
    assert seen(2, "123", cold="3") == []
    assert (seen.driver.moment.there, seen.driver.moment.spare) == (("1", "2"), 1)


def test_a_spare_executor_takes_over(seen: Scene) -> None:
    """From one that is lost, and from the next batch on; the one that comes instead is spare."""
    seen(1, "12")
    assert seen(1, "2") == [(2, "22")]
    assert seen(1, "23") == []
    assert (seen.driver.moment.there, seen.driver.moment.spare) == (("2",), 1)


def test_who_took_over_keeps_its_units(seen: Scene) -> None:
    """When the one that was away is back, though it is older: units would only move."""
    seen(1, "12")
    seen(1, "2")
    assert seen(1, "12") == []
    assert (seen.driver.moment.there, seen.driver.moment.spare) == (("2",), 1)


def test_the_spare_executor_that_has_rehearsed_is_first(seen: Scene) -> None:
    """When more are wanted than have units."""
    seen(1, "123", cold="2")
    assert seen(2, "123", cold="2") == [(4, "1133")]


class Holding(Figures):
    """Of executors of which the second holds most."""

    def held_by_executor(self) -> dict[str, int]:
        return {"1": 5, "2": 9}


def test_whoever_holds_least_becomes_spare(seen: Scene) -> None:
    """When fewer are wanted."""
    seen(2, "12")
    seen.driver._tell(figures=Holding(**vars(beginning(2, 0.0))))
    seen(1, "12")
    assert seen.driver.moment.there == ("2",)


def test_so_many_are_asked_for(seen: Scene) -> None:
    """Those that are wanted and those in reserve, as many as the file allows when they are asked for."""
    seen.driver.file.write_text(SPEC.replace("max: 4", "max: 4, spare: 2"))
    for total in (1, 2, 3, 4):
        seen.driver.scale(ExecutorRequest(total, "rows wait"))
    assert seen.pool.asked == [3, 4, 4, 4]
    assert seen.driver.moment.wanted == 4


@pytest.mark.parametrize("phase", ["Starting", "Running"])
def test_why_there_are_too_few_is_told(seen: Scene, monkeypatch: pytest.MonkeyPatch, phase: str) -> None:
    """As long as it is so, and while Spark starts, too; the others work. Where executors are no pods nobody is asked."""
    refusals = iter(["exceeded quota: small", ""])
    monkeypatch.setattr(executors, "refused", lambda: next(refusals))
    seen.driver._tell(phase=phase)
    if phase == "Starting":
        seen.driver._pool = None
    seen(2, "1")
    seen.driver.around = driver_environment(POD)
    for told in ("exceeded quota: small", None):
        seen(2, "1")
        assert seen.driver.answers().status()["executors"]["refused"] == told


def test_why_they_are_asked_for_is_told(seen: Scene, caplog: pytest.LogCaptureFixture) -> None:
    """On the page and in the log, once; a number out of bounds is not."""
    with caplog.at_level("INFO", "streamjoin.driver"):
        for asked in (ExecutorRequest(3, "τ 1.77 is over 0.8"), ExecutorRequest(3, "again")):
            seen.driver.scale(asked)
        with pytest.raises(SpecError, match="between min, 1, and max, 4"):
            seen.driver.scale(ExecutorRequest(5, "too many"))
    (note,) = seen.driver.answers().page()["notes"]
    assert (note["level"], note["text"]) == ("info", "1 -> 3 executors are wanted: τ 1.77 is over 0.8")
    assert caplog.messages == [note["text"]]


def test_a_batch_without_executors_is_not_waited_for(seen: Scene) -> None:
    """When the driver stops: it could not end. One that somebody works on may."""
    seen(2, "1")
    seen.driver._hurry(seen.query)  # type: ignore[arg-type]
    assert seen.query.patience_s == 60
    seen(2, "")
    seen.driver._hurry(seen.query)  # type: ignore[arg-type]
    assert seen.query.patience_s == 0


def test_who_is_lost_is_awaited(seen: Scene) -> None:
    """What it had goes to the others meanwhile; with nobody there is nothing to say where."""
    seen(2, "12")
    assert seen(2, "2") == [(4, "2222")]
    assert seen(2, "") == [(4, "")]
    assert seen(2, "34") == [(4, "3434")]


def test_on_this_machine_nothing_is_said(seen: Scene) -> None:
    """There are no executors; the number of partitions is told all the same."""
    seen.driver._pool = None
    assert seen(1, "") == []
    assert seen.driver.moment.partitions == 4
