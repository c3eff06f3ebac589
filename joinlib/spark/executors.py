"""Changes the number of executors of a running query, without a restart.

    want(n) ─► Spark's allocator gets the new total and starts the missing executors
            ─► surplus executors are decommissioned: they finish their tasks, hand over their shuffle files
               and end. Their units are rebuilt elsewhere from segments.

Only executors that have registered and are not leaving are counted.
"""

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from joinlib.metric.heap import Heap, heaps
from joinlib.spark.boot import jar
from joinlib.spark.rehearsal import Rehearsals, rehearse

_NOTHING: Mapping[str, int] = {}


def leavers(ready: Iterable[str], total: int, held: Mapping[str, int] = _NOTHING) -> list[str]:
    """Choose the executors to remove so that `total` stay: least state first, the newest among equals.

    `held` is the bytes of state by executor; one that is missing there has not held a unit yet.
    """
    order = sorted(ready, key=lambda e: (held.get(e, 0), -int(e)))
    return order[: max(0, len(order) - total)]


def refused() -> str:
    """Return why the API server makes no pod of an executor; empty if it does, or no pods are made.

    It is known before there is a session: Spark waits for executors first.
    """
    jvm = SparkContext._jvm
    return str(jar.known(jvm, "PatientAllocator").refusal()) if jvm is not None and jar.there() else ""


class ExecutorPool:
    """The executors of a session. Thread-safe."""

    def __init__(self, spark: SparkSession, total: int, cores: int) -> None:
        """Ask for `total` executors of so many cores each."""
        self._context = spark.sparkContext
        self._leaving, self._warm = set[str](), set[str]()
        self._lock = threading.Lock()
        self._plugin = self._class("WarmExecutor", "spark.plugins")
        self._heaps = self._class("Heaps", "spark.plugins")
        self._rehearsals = Rehearsals(lambda new: rehearse(spark, new, cores), self._staying())
        self.wanted = total
        self.coming = False  # whether some have registered and not rehearsed, as of the last `warm`
        self._request(total)  # otherwise Spark counts from 0 when the first one leaves

    def ready(self) -> list[str]:
        """Return the ids of the executors that take tasks: those that are warm, see `WarmExecutor.java`."""
        return self._ready(self._registered())

    def leaving(self) -> list[str]:
        """Return the ids of the executors that are finishing their tasks before they leave."""
        with self._lock:
            self._staying()
            return sorted(self._leaving, key=int)

    def warm(self) -> list[str]:
        """Return the ids of ready executors that have loaded what tasks need. The others rehearse."""
        there = self._registered()
        ready = self._ready(there)
        warm = self._rehearsals.done(ready, coming=ready != there)
        self.coming = warm != there
        return warm

    def heaps(self) -> dict[str, Heap]:
        """Return the heap of each executor that has told of it; some may have left."""
        return heaps(str(self._heaps.told())) if self._heaps else {}

    def want(self, total: int, held: Mapping[str, int] = _NOTHING) -> None:
        """Set the number of executors to `total`. `held` is the bytes of state by executor."""
        with self._lock:
            self._request(total)
            self.wanted = total
            for executor in leavers(self._staying(), total, held):
                self._decommission(executor)

    def _registered(self) -> list[str]:
        with self._lock:
            return self._staying()

    def _ready(self, there: list[str]) -> list[str]:
        if not self._plugin:
            return there
        self._warm |= {e for e in there if e not in self._warm and self._plugin.has(e)}
        return [e for e in there if e in self._warm]

    def _staying(self) -> list[str]:
        """Return the ids of the executors that have registered and are not leaving, warm or not."""
        ids = self._scala().getExecutorIds()
        known = {str(ids.apply(at)) for at in range(ids.size())}
        self._leaving &= known
        return sorted(known - self._leaving, key=int)

    def _request(self, total: int) -> None:
        self._scala().requestTotalExecutors(total, 0, self._none())

    def _decommission(self, executor: str) -> None:
        jvm = self._jvm()
        info = jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
            "scale-in", jvm.scala.Option.apply(None)
        )
        # The allocator has the new total already, and it is the driver that decides, not the executor.
        adjust, by_executor = False, False
        if self._scala().schedulerBackend().decommissionExecutor(executor, info, adjust, by_executor):
            self._leaving.add(executor)

    def _none(self) -> Any:
        """Return Scala's empty map."""
        name = "scala.collection.immutable.Map$"
        return self._jvm().java.lang.Class.forName(name).getField("MODULE$").get(None).empty()

    def _scala(self) -> Any:
        return self._context._jsc.sc()

    def _class(self, name: str, setting: str) -> Any:
        """Return one of our Java classes; None unless this setting makes Spark use it."""
        used = (self._context.getConf().get(setting) or "").split(",")
        return jar.known(self._jvm(), name) if f"{jar.PACKAGE}.{name}" in used else None

    def _jvm(self) -> Any:
        jvm = self._context._jvm
        assert jvm is not None
        return jvm
