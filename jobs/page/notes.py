"""The last things that happened to a run: phases, changes of executors, and what was logged as a warning or an error."""

import logging
import time
from collections import deque
from dataclasses import dataclass

_KEPT = 50
_LONGEST = 500  # characters


@dataclass(frozen=True)
class NotedEvent:
    """One of them. `at`: seconds since 1970."""

    at: float
    level: str
    text: str


class Notes(logging.Handler):
    """Keeps the latest, in memory. Thread-safe: it is a handler of loggers too."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kept = deque[NotedEvent](maxlen=_KEPT)

    def say(self, text: str, level: str = "info") -> None:
        """Take down what is no warning."""
        self._kept.append(NotedEvent(time.time(), level, text[:_LONGEST]))

    def emit(self, record: logging.LogRecord) -> None:
        """Take down a warning or an error, without its stack trace."""
        self.say(record.getMessage(), record.levelname.lower())

    def latest(self) -> list[NotedEvent]:
        """Return what is kept, the newest first."""
        return list(self._kept)[::-1]
