"""How many executors does a running query have, and how is that changed without a restart?

    want(n) ─► the new total is told to Spark's allocator, which makes what is missing
            ─► if there are too many: some are decommissioned; they finish their tasks, hand on what they have shuffled
               and end. Their units are rebuilt elsewhere from segments.

Only executors that have registered and are not leaving are counted.
"""

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from joinlib.spark import jar
from joinlib.spark.rehearsal import Rehearsals, rehearse

_NOTHING: Mapping[str, int] = {}


def leavers(ready: Iterable[str], total: int, held: Mapping[str, int] = _NOTHING) -> list[str]:
    """Who goes so that `total` stay: those that hold the least state, of equals the newest.

    An executor of which nothing is known has not held a unit yet.
    """
    order = sorted(ready, key=lambda e: (held.get(e, 0), -int(e)))
    return order[: max(0, len(order) - total)]


class Executors:
    """The executors of a session. Thread-safe."""

    def __init__(self, spark: SparkSession, total: int, cores: int) -> None:
        self._context = spark.sparkContext
        self._leaving, self._warm = set[str](), set[str]()
        self._lock = threading.Lock()
        warming = self._context.getConf().get("spark.plugins") == jar.warming().get("spark.plugins", "")
        self._plugin = self._jvm().dev.streamjoin.WarmExecutor if warming else None
        self._rehearsals = Rehearsals(lambda executors: rehearse(spark, executors * cores), self._staying())
        self.wanted = total
        self._request(total)  # else Spark counts from 0 when the first one leaves

    def ready(self) -> list[str]:
        """Ids of those that take tasks: they are warm, see `WarmExecutor.java`."""
        with self._lock:
            there = self._staying()
        if not self._plugin:
            return there
        self._warm |= {e for e in there if e not in self._warm and self._plugin.has(e)}
        return [e for e in there if e in self._warm]

    def leaving(self) -> list[str]:
        """Ids of those that finish what they do and go."""
        with self._lock:
            self._staying()
            return sorted(self._leaving, key=int)

    def warm(self) -> list[str]:
        """Ids of those that can take tasks and have loaded what these need. A rehearsal is begun for those that have not."""
        return self._rehearsals.done(self.ready())

    def want(self, total: int, held: Mapping[str, int] = _NOTHING) -> None:
        """Makes `total` the number of executors. `held`: bytes of state, by executor."""
        with self._lock:
            self._request(total)
            self.wanted = total
            for executor in leavers(self._staying(), total, held):
                self._decommission(executor)

    def _staying(self) -> list[str]:
        """Those that have registered, warm or not."""
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
        adjust, by_executor = False, False  # the total is known already; the executor does not know yet
        if self._scala().schedulerBackend().decommissionExecutor(executor, info, adjust, by_executor):
            self._leaving.add(executor)

    def _none(self) -> Any:
        """Scala's empty map."""
        name = "scala.collection.immutable.Map$"
        return self._jvm().java.lang.Class.forName(name).getField("MODULE$").get(None).empty()

    def _scala(self) -> Any:
        return self._context._jsc.sc()

    def _jvm(self) -> Any:
        jvm = self._context._jvm
        assert jvm is not None
        return jvm
