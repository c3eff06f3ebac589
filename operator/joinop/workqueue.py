"""A queue of jobs to reconcile.

Laws: no job is processed twice at once, and none is lost; many triggers make one reconciliation; failures
wait longer. No call is repeated: what is done after the wait is whatever the job needs by then.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from joinop.names import JobKey

_FIRST_S, _LAST_S = 1.0, 60.0


@dataclass
class WorkQueue:
    """Keys of jobs, each at most once."""

    queued: set[JobKey] = field(default_factory=set)  # ready to be processed
    processing: set[JobKey] = field(default_factory=set)  # with a worker
    dirty: set[JobKey] = field(default_factory=set)  # added while they are processed
    failures: dict[JobKey, int] = field(default_factory=dict)
    delayed: dict[JobKey, asyncio.TimerHandle] = field(default_factory=dict)  # waiting after a failure
    _ready: asyncio.Queue[JobKey] = field(default_factory=asyncio.Queue)

    def __len__(self) -> int:
        return len(self.queued) + len(self.dirty) + len(self.delayed)

    def add(self, key: JobKey) -> None:
        """Queue a job. After a failure it waits for its time."""
        if key in self.delayed:
            return
        if key in self.processing:
            self.dirty.add(key)
        elif key not in self.queued:
            self.queued.add(key)
            self._ready.put_nowait(key)

    def add_now(self, key: JobKey) -> None:
        """Queue a job at once, whatever failed before: its spec has changed."""
        if (handle := self.delayed.pop(key, None)) is not None:
            handle.cancel()
        self.failures.pop(key, None)
        self.add(key)

    async def get(self) -> JobKey:
        """Wait for the next job. Call `done` when it has been processed."""
        key = await self._ready.get()
        self.queued.discard(key)
        self.processing.add(key)
        return key

    def done(self, key: JobKey, *, failed: bool) -> None:
        """A job has been processed."""
        self.processing.discard(key)
        dirty = key in self.dirty
        self.dirty.discard(key)
        if failed:
            self.failures[key] = self.failures.get(key, 0) + 1
            self._add_after(pause_s(self.failures[key]), key, self.add)
            return
        self.failures.pop(key, None)
        if dirty:
            self.add(key)

    def _add_after(self, seconds: float, key: JobKey, then: Callable[[JobKey], None]) -> None:
        def due() -> None:
            self.delayed.pop(key, None)
            then(key)

        self.delayed[key] = asyncio.get_running_loop().call_later(seconds, due)

    def forget(self, key: JobKey) -> None:
        """Drop a job that is gone."""
        self.failures.pop(key, None)
        if (handle := self.delayed.pop(key, None)) is not None:
            handle.cancel()


def pause_s(failures: int) -> float:
    """Return the pause after so many failures: 1, 2, 4, … 60 seconds."""
    return float(min(_FIRST_S * 2 ** (min(failures, 10) - 1), _LAST_S))
