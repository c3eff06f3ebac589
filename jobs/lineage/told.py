"""A run tells an endpoint of OpenLineage when it starts, that it runs, and how it ends.

    START     before Spark starts         COMPLETE   all is read, with --until-done
    RUNNING   when rows flow, and         ABORT      somebody stopped it
              then once a minute          FAIL       an error, with its message

Law: nothing here stops or slows a run, or fails it.
"""

import logging
import os
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from jobs.lineage.event import LineageSubject, State, run_event, subject
from jobs.lineage.send import EventSender, endpoint, event_sender
from joinlib.model.stage import Pipeline
from joinlib.spec.model import StreamJoin

_EVERY_S = 60.0

log = logging.getLogger("streamjoin.lineage")


class ToldRun:
    """One run, as it is told."""

    def __init__(
        self,
        about: LineageSubject,
        sender: EventSender,
        every_s: float = _EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._about, self._sender = about, sender
        self._every_s, self._clock = every_s, clock
        self._run, self._next = str(uuid.uuid4()), clock()

    @property
    def outage(self) -> str:
        """What is wrong with the endpoint; empty: it takes what is sent."""
        return self._sender.outage

    def begun(self) -> None:
        """Tell that the run starts."""
        self._sender.start()
        self._tell("START")

    def running(self) -> None:
        """Tell that rows flow, unless that was told a moment ago."""
        if self._clock() >= self._next:
            self._next = self._clock() + self._every_s
            self._tell("RUNNING")

    def ended(self, error: Exception | None, *, asked: bool) -> None:
        """Tell how the run has ended. asked: somebody wanted it to stop."""
        state: State = "FAIL" if error is not None else "ABORT" if asked else "COMPLETE"
        self._tell(state, error)
        self._sender.close()

    def _tell(self, state: State, error: Exception | None = None) -> None:
        self._sender.offer(run_event(self._about, self._run, state, datetime.now(UTC), error))


def told_run(
    document: StreamJoin, pipeline: Pipeline, environment: Mapping[str, str] = os.environ
) -> ToldRun | None:
    """Return what tells of a run; None if the environment names no endpoint.

    Raises:
        SpecError: What it names cannot be used.
    """
    to = endpoint(environment)
    if to is None:
        return None
    try:
        about = subject(document, pipeline, namespace(document, environment), environment)
    except Exception as error:  # noqa: BLE001 - the run matters more than what is told of it
        log.warning("lineage: not told, because of a defect of StreamJoin (%s)", type(error).__name__)
        return None
    return ToldRun(about, event_sender(to))


def namespace(document: StreamJoin, environment: Mapping[str, str] = os.environ) -> str:
    """Return the namespace of a job: that of OpenLineage, or of Kubernetes."""
    given = (environment.get(name) for name in ("OPENLINEAGE_NAMESPACE", "POD_NAMESPACE"))
    return next(filter(None, [*given, document.metadata.namespace]), "default")
