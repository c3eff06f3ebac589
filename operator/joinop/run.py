"""What goes on all the time? Workers look at jobs, a poll asks drivers, rounds come by every job, a resync lists everything.

    poll      every 5 s, of drivers: what they say
    round     every 30 s, of nobody: what time alone changes, such as a claim that was missing
    resync    every ten minutes, of the API server: whatever no watch told; a watch that is dead is found out by it

The resync makes the operator level-based. It reads what the API server has in memory, but for the first: an operator that
begins must not decide by a status that its predecessor has written over.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from joinop import names
from joinop.api import ApiError
from joinop.kept import make_room
from joinop.kinds import POD, POD_MONITOR, STREAMJOIN, WATCHED, Kind
from joinop.look import Looker
from joinop.names import Key, Object, key
from joinop.pulse import Pulse
from joinop.workqueue import WorkQueue

log = logging.getLogger("joinop")
MANAGED = names.text(names.MANAGED)
_AGAIN_S = 10.0  # what failed is tried again, however seldom it is done


@dataclass
class Operator:
    """Everything that runs, and what handlers tell it."""

    looker: Looker
    pulse: Pulse
    queue: WorkQueue = field(default_factory=WorkQueue)
    filled: asyncio.Event = field(default_factory=asyncio.Event)  # everything was listed once
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self) -> None:
        config = self.looker.config
        loops = [
            self._forever("resync", self.resync, config.resync_s),
            self._forever("round", self.round, config.round_s),
            self._forever("poll", self.poll, config.poll_s),
            *(self._work() for _ in range(config.workers)),
        ]
        self.tasks = [asyncio.create_task(loop) for loop in loops]

    async def stop(self) -> None:
        """What was begun is not finished: a look can be stopped at any point."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.looker.drivers.close()
        if self.looker.prometheus is not None:
            await self.looker.prometheus.close()
        await self.looker.api.close()

    def told(self, kind: Kind, thing: Object, *, gone: bool) -> None:
        """A watch has told of an object."""
        self.pulse.told(kind, thing, time.monotonic())
        self._heard(kind, thing, gone=gone)

    async def resync(self) -> None:
        """List everything anew."""
        self.looker.monitored = await self.looker.api.serves(POD_MONITOR)
        monitors = (POD_MONITOR,) if self.looker.monitored else ()
        for namespace in self.looker.config.namespaces or (None,):
            for kind in (STREAMJOIN, POD, *WATCHED, *monitors):
                await self._list(kind, namespace)
        self.pulse.listed_at = time.monotonic()
        make_room(len(self.looker.cache.jobs()))
        self.filled.set()

    async def round(self) -> None:
        """Look at every job, as far as it is known."""
        await self.filled.wait()
        jobs = self.looker.cache.jobs()
        make_room(len(jobs))
        for thing in jobs:
            self.queue.add(key(thing))
            self.looker.meters.scaling.known(key(thing), thing.get("status") or {})

    async def poll(self) -> None:
        """Ask all drivers, side by side."""
        await self.filled.wait()
        keys = [key(thing) for thing in self.looker.cache.jobs()]
        asked = await asyncio.gather(*(self.looker.read(each) for each in keys))
        for each, there in zip(keys, asked, strict=True):
            if there or self.looker.uneasy(each):
                self.queue.add(each)

    async def _list(self, kind: Kind, namespace: str | None) -> None:
        selector = "" if kind is STREAMJOIN else MANAGED
        listed = await self.looker.api.list(kind, namespace, selector, cached=self.filled.is_set())
        uids, now = {thing["metadata"]["uid"] for thing in listed.items}, time.monotonic()
        for thing in self.looker.cache.replace(kind, namespace, listed.items, listed.version):
            gone = thing["metadata"]["uid"] not in uids
            if self.filled.is_set() and not gone and kind is not POD_MONITOR:  # which nobody watches
                self.pulse.missed(kind, thing, now)
                self.looker.meters.missed.labels(kind.plural).inc()
            self._heard(kind, thing, gone=gone)

    def _heard(self, kind: Kind, thing: Object, *, gone: bool) -> None:
        cache = self.looker.cache
        before = cache.job(key(thing)) if kind is STREAMJOIN else None
        owner = cache.drop(kind, thing) if gone else cache.put(kind, thing)
        if gone:
            self.pulse.gone(kind, thing)
        if owner is None:
            return
        if kind is STREAMJOIN and (gone or _generation(before) != _generation(thing)):
            self._changed(owner, gone=gone)
        self.queue.add(owner)

    def _changed(self, owner: Key, *, gone: bool) -> None:
        """What somebody wants has changed: look again, also at those who wait for the same checkpoint."""
        if gone:
            self.queue.forget(owner)
            self.looker.forget(owner)
        else:
            self.queue.hurry(owner)
        if not self.filled.is_set():  # then all are looked at
            return
        for other in self.looker.cache.jobs():
            if any(
                c.get("reason") == "CheckpointTaken"
                for c in (other.get("status") or {}).get("conditions", ())
            ):
                self.queue.hurry(key(other))

    async def _work(self) -> None:
        await self.filled.wait()
        while True:
            each = await self.queue.take()
            failed = True
            try:
                with self.looker.meters.seconds.time():
                    failed = not await self.looker.look(each)
            except Exception:
                log.exception("%s: unexpected; it is tried again", each)
            finally:
                self.queue.done(each, failed=failed)
                self.looker.meters.reconciles.labels("failed" if failed else "done").inc()
                self.looker.meters.depth.set(len(self.queue))

    async def _forever(self, what: str, step: Callable[[], Awaitable[None]], every_s: float) -> None:
        while True:
            pause_s = min(every_s, _AGAIN_S)
            try:
                await step()
                pause_s = every_s
            except ApiError as error:
                log.warning("%s: %s", what, error)
            except Exception:
                log.exception("%s: unexpected; it is tried again", what)
            await asyncio.sleep(pause_s)


def _generation(thing: Object | None) -> object:
    return None if thing is None else thing["metadata"].get("generation")
