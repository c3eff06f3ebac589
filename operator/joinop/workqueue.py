"""Which job is looked at next? Law: no job twice at once, none forgotten; many triggers are one look; failures wait longer."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from joinop.names import Key

_FIRST_S, _LAST_S = 1.0, 60.0


@dataclass
class WorkQueue:
    """Keys to look at, each at most once."""

    wait: set[Key] = field(default_factory=set)  # in the queue
    busy: set[Key] = field(default_factory=set)  # being looked at
    again: set[Key] = field(default_factory=set)  # triggered meanwhile
    failures: dict[Key, int] = field(default_factory=dict)
    later: dict[Key, asyncio.TimerHandle] = field(default_factory=dict)  # waiting after a failure
    _ready: asyncio.Queue[Key] = field(default_factory=asyncio.Queue)

    def __len__(self) -> int:
        return len(self.wait) + len(self.again) + len(self.later)

    def add(self, key: Key) -> None:
        """Look at it soon; after a failure, when its time has come."""
        if key in self.later:
            return
        if key in self.busy:
            self.again.add(key)
        elif key not in self.wait:
            self.wait.add(key)
            self._ready.put_nowait(key)

    def hurry(self, key: Key) -> None:
        """Look at it soon, whatever failed before: its spec has changed."""
        if (handle := self.later.pop(key, None)) is not None:
            handle.cancel()
        self.failures.pop(key, None)
        self.add(key)

    async def take(self) -> Key:
        """The next one; call `done` when it has been looked at."""
        key = await self._ready.get()
        self.wait.discard(key)
        self.busy.add(key)
        return key

    def done(self, key: Key, *, failed: bool) -> None:
        """It has been looked at."""
        self.busy.discard(key)
        again = key in self.again
        self.again.discard(key)
        if failed:
            self.failures[key] = self.failures.get(key, 0) + 1
            self._after(pause_s(self.failures[key]), key, self.add)
            return
        self.failures.pop(key, None)
        if again:
            self.add(key)

    def _after(self, seconds: float, key: Key, then: Callable[[Key], None]) -> None:
        def due() -> None:
            self.later.pop(key, None)
            then(key)

        self.later[key] = asyncio.get_running_loop().call_later(seconds, due)

    def forget(self, key: Key) -> None:
        """It is gone."""
        self.failures.pop(key, None)
        if (handle := self.later.pop(key, None)) is not None:
            handle.cancel()


def pause_s(failures: int) -> float:
    """1, 2, 4, … 60 seconds."""
    return float(min(_FIRST_S * 2 ** (min(failures, 10) - 1), _LAST_S))
