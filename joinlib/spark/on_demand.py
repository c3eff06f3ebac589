"""Spark's session of a job: it starts when a batch needs it, and ends when none has needed it for a while.

    batches without Spark ──one fails──► JVM, lock, workers ──a while without need──► none of them

The JVM takes seconds to start, and half of the memory of a small job.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from functools import partial

from pyspark.sql import SparkSession

from joinlib.checkpoint.lock import without_jvm
from joinlib.compiled import Compiled
from joinlib.spark import session
from joinlib.spark.jvm_lock import PATIENCE_S, jvm_lock
from joinlib.spark.source import data_source, register

Given = SparkSession | Callable[[], SparkSession]  # what gives one gives one of this machine


class OnDemand:
    """The session of one job.

    Args:
        plan: What is run in it.
        cores: The cores of a session on this machine.
        conf: Spark settings that override the job's.
        given: A session to use and leave running, or what gives one; by default the job has its own.
    """

    def __init__(self, plan: Compiled, cores: int, conf: Mapping[str, str], given: Given | None) -> None:
        self._plan, self._own = plan, given is None
        self._ready = given if isinstance(given, SparkSession) else None
        own = partial(session.start, cores, conf, synced=plan.join.tuning.sync)
        self._make: Callable[[], SparkSession] = given if callable(given) else own
        self._warm = partial(session.warm_workers, cores=cores)
        self._session: SparkSession | None = None
        self._held = contextlib.ExitStack()  # the JVM's lock
        self.starting = False  # at the moment
        self.used = False  # there was one
        self._unused_since = 0.0  # (`time.monotonic`) while it is done without

    @property
    def running(self) -> SparkSession | None:
        """The session; None while there is none."""
        return self._session or self._ready

    def get(self) -> SparkSession:
        """Return the session, which holds the checkpoint's lock; start it, if there is none or its JVM has died.

        Raises:
            NotReady: The JVM of an earlier run is still alive.
        """
        if self._session is not None and self._own and not session.alive():
            self._end(self._session)
        if self._session is None:
            self.starting = self.used = True
            try:
                self._session = self._ready or self._make()
                self._set_up(self._session)
            except BaseException:
                self.close()
                raise
            finally:
                self.starting = False
        return self._session

    def _set_up(self, made: SparkSession) -> None:
        self._warm(made)
        self._held.enter_context(jvm_lock(made, self._plan.checkpoint))
        register(made, data_source(self._plan.source, self._plan.join))

    def do_without(self) -> None:
        """Go on without a session, once no earlier run's JVM is left to write to the checkpoint.

        Raises:
            NotReady: The JVM of an earlier run is still alive.
        """
        if self._session is None:
            without_jvm(self._plan.checkpoint, PATIENCE_S)
        self._unused_since = time.monotonic()

    def look(self) -> None:
        """End the job's own session, and its JVM, if it is done without for long enough."""
        unused_s = time.monotonic() - self._unused_since
        if self._session is not None and self._own and unused_s > self._plan.source.tuning.jvm_kept_s:
            self._end(self._session)

    def _end(self, ended: SparkSession) -> None:
        self._held.close()
        session.end(ended)
        self._session = None

    def close(self) -> None:
        """Stop the session, if it is the job's own; its JVM ends with the process."""
        try:
            if self._session is not None and self._own:
                self._session.stop()
        finally:
            self._session = None
            self._held.close()
