"""What a driver takes from its environment, and how it says what went wrong."""

from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from jobs.driver import Driver, one_line
from jobs.figures import Took
from jobs.surroundings import surroundings
from joinlib.errors import SpecError
from joinlib.spec import load

POD = {
    "POD_NAME": "late-driver-0",
    "POD_NAMESPACE": "shop",
    "POD_IP": "10.0.0.7",
    "POD_UID": "uid-1",
    "STREAMJOIN_IMAGE": "streamjoin:1",
    "STREAMJOIN_EXECUTOR_TEMPLATE": "/etc/streamjoin/executor.yaml",
    "TMPDIR": "/scratch",
}


def test_a_pod() -> None:
    """Each run has a name of its own, also in the same pod."""
    one, two = surroundings(POD).place, surroundings(POD).place
    assert one is not None
    assert two is not None
    assert (one.pod.name, one.pod.uid, one.temporary, one.cpu) == ("late-driver-0", "uid-1", "/scratch", None)
    assert len(one.run) == 8
    assert one.run != two.run


def test_no_pod() -> None:
    """No place, no token."""
    around = surroundings({})
    assert (around.place, around.token(), around.port) == (None, None, 8080)


def test_half_a_pod() -> None:
    """What is missing is named."""
    with pytest.raises(SpecError, match="POD_IP, STREAMJOIN_IMAGE not set"):
        surroundings({**POD, "POD_IP": "", "STREAMJOIN_IMAGE": ""})


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
  scaling: {repartition: REPARTITION}
"""


@dataclass
class Query:
    """Stands for a flow whose query runs."""

    partitions: int
    asked: list[int] = field(default_factory=list)
    flowing: Event = field(default_factory=Event)
    took: Took = field(default_factory=Took)
    lag: dict[str, Any] = field(default_factory=dict)
    loads: dict[str, Any] = field(default_factory=dict)
    route_skew: Any = None
    hot: dict[str, float] = field(default_factory=dict)

    def reports(self, seconds: float) -> list[Any]:
        """No batch has ended."""
        return []

    @property
    def job(self) -> "Query":
        return self

    @property
    def repartitions(self) -> bool:
        return bool(self.asked)

    def repartition(self, partitions: int) -> None:
        self.asked.append(partitions)


@dataclass
class Pool:
    """Stands for executors, of which one has just come."""

    rehearsals: int = 0

    def ready(self) -> list[str]:
        return ["1", "2"]

    def leaving(self) -> list[str]:
        return []

    def warm(self) -> list[str]:
        self.rehearsals += 1
        return ["1"]


def test_a_new_executor_rehearses_at_once(tmp_path: Path) -> None:
    """In the midst of a batch: at its end it would be too late, as the next one begins at once."""
    driver, query = fitted(tmp_path, wanted=2)
    pool = driver._pool = Pool()  # type: ignore[assignment]
    driver._look(query)  # type: ignore[arg-type]
    assert (pool.rehearsals, driver.moment.there) == (1, ("1", "2"))


def fitted(tmp_path: Path, repartition: str = "true", **moment: Any) -> tuple[Driver, Query]:
    """A driver whose state has two partitions, after a look at its executors."""
    file, query = tmp_path / "spec.yaml", Query(2)
    file.write_text(SPEC.replace("REPARTITION", repartition))
    driver = Driver(file, load(file), surroundings({}))
    driver._tell(partitions=2, **moment)
    driver._fit(query)  # type: ignore[arg-type]
    return driver, query


def test_the_state_gets_a_partition_for_each_core(tmp_path: Path) -> None:
    """Once all executors are there: six cores, eight partitions. It is said while it goes on, and when it is over."""
    driver, query = fitted(tmp_path, wanted=3, there=("1", "2", "3"))
    assert query.asked == [8]
    assert driver.moment.message == "the state is repartitioned: 2 -> 8 partitions"
    driver._fit(query)  # type: ignore[arg-type]
    assert query.asked == [8], "once"
    query.asked, query.partitions = [], 8
    driver._fit(query)  # type: ignore[arg-type]
    assert (query.asked, driver.moment.partitions, driver.moment.message) == ([], 8, "")


@pytest.mark.parametrize(
    ("repartition", "moment"),
    [
        ("false", {"wanted": 3, "there": ("1", "2", "3")}),
        ("true", {"wanted": 3, "there": ("1", "2")}),
        ("true", {"wanted": 2, "there": ("1", "2"), "leaving": 1}),
        ("true", {"wanted": 1, "there": ("1",)}),
        ("true", {"wanted": 0}),
    ],
    ids=["not allowed", "still coming", "one leaves", "enough", "on this machine"],
)
def test_the_state_keeps_its_partitions(tmp_path: Path, repartition: str, moment: dict[str, Any]) -> None:
    """A query is not stopped without need."""
    assert fitted(tmp_path, repartition, **moment)[1].asked == []
