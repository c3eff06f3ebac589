"""Spark's session of a job: it starts when batches need it, and ends when none has needed it for a while.

    small batches, without Spark ──too many rows wait──► JVM, lock, workers ──a while without need──► none of them

The JVM takes seconds to start, and half of the memory of a small job.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from pyspark.sql import SparkSession

from joinlib.compiled import Compiled
from joinlib.spark import session
from joinlib.spark.jvm_lock import jvm_lock, wait_for_others
from joinlib.spark.source import data_source

Given = SparkSession | Callable[[], SparkSession]


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
        self._starts = threading.Lock()
        self._launched = False
        self.used = False  # there was one
        self._unused_since: float | None = None

    @property
    def running(self) -> SparkSession | None:
        """The session; None while there is none."""
        return self._session or self._ready

    @property
    def starting(self) -> bool:
        """Whether it is starting at the moment."""
        return self.running is None and self._starts.locked()

    def get(self) -> SparkSession:
        """Return the session, which holds the checkpoint's lock; start it, if there is none.

        Raises:
            NotReady: The JVM of an earlier run is still alive.
        """
        with self._starts:
            self._unused_since = None
            self._launched = True
            if self._session is None:
                made = self._ready or self._make()
                self._warm(made)
                self._held.enter_context(jvm_lock(made, self._plan.checkpoint))
                made.dataSource.register(data_source(self._plan.source, self._plan.join))
                self._session, self.used = made, True
            return self._session

    def launch(self) -> None:
        """Start the session in the background, unless that was tried before; whoever needs it is told what is wrong."""
        if not self._launched:
            self._launched = True
            threading.Thread(target=self._try, name="launch", daemon=True).start()

    def do_without(self) -> None:
        """Go on without a session, once no earlier run's JVM is left to write to the checkpoint.

        Raises:
            NotReady: The JVM of an earlier run is still alive.
        """
        if self._session is None:
            wait_for_others(self._plan.checkpoint)
        self._unused_since = time.monotonic()

    def look(self) -> None:
        """End the job's own session, and its JVM, if no batch has needed it for a while."""
        if self._session is None or not self._own or self._unused_since is None:
            return
        if time.monotonic() - self._unused_since > self._plan.source.tuning.jvm_kept_s:
            self._held.close()
            session.end(self._session)
            self._session, self._launched = None, False

    def close(self) -> None:
        """Stop the session, if it is the job's own; its JVM ends with the process."""
        if self._session is not None and self._own:
            self._session.stop()
        self._held.close()

    def _try(self) -> None:
        with contextlib.suppress(Exception):
            self.get()
        self._unused_since = time.monotonic()
