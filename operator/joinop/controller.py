"""The control loops: workers that reconcile jobs, and three loops that queue them.

    poll      every 5 s: scrape the drivers
    round     every 30 s: queue every job, for what time alone changes, such as a claim that was missing
    resync    every ten minutes: list everything, for what no watch has delivered; it also finds dead watches

The resync makes the operator level-triggered. All lists but the first come from the API server's memory: an
operator that starts must not decide by a status that its predecessor has overwritten.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from joinlib import deploy
from joinlib.deploy import POD, Resource
from joinop import names
from joinop.api import ApiError
from joinop.liveness import Liveness
from joinop.memoize import resize
from joinop.names import JobKey, Object, key
from joinop.reconcile import Reconciler
from joinop.resources import POD_MONITOR, STREAMJOIN, WATCHED
from joinop.workqueue import WorkQueue

log = logging.getLogger("joinop")
MANAGED = deploy.selector(names.MANAGED)
_AGAIN_S = 10.0  # a loop that failed is repeated after this at the latest


@dataclass
class Controller:
    """The loops of an operator, and the events that reach them."""

    reconciler: Reconciler
    liveness: Liveness
    queue: WorkQueue = field(default_factory=WorkQueue)
    synced: asyncio.Event = field(default_factory=asyncio.Event)  # everything was listed at least once
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self) -> None:
        config = self.reconciler.config
        loops = [
            self._repeat("resync", self.resync, config.resync_s),
            self._repeat("round", self.round, config.round_s),
            self._repeat("poll", self.poll, config.poll_s),
            *(self._work() for _ in range(config.workers)),
        ]
        self.tasks = [asyncio.create_task(loop) for loop in loops]

    async def stop(self) -> None:
        """Stop without finishing: reconciliation can be interrupted at any point."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.reconciler.drivers.close()
        if self.reconciler.prometheus is not None:
            await self.reconciler.prometheus.close()
        await self.reconciler.api.close()

    def on_event(self, resource: Resource, obj: Object, *, gone: bool) -> None:
        """A watch has delivered an object."""
        self.liveness.event_seen(resource, obj, time.monotonic())
        self._update(resource, obj, gone=gone)

    async def resync(self) -> None:
        """List everything, and queue the jobs of whatever is new."""
        self.reconciler.monitored = await self.reconciler.api.serves(POD_MONITOR)
        monitors = (POD_MONITOR,) if self.reconciler.monitored else ()
        for namespace in self.reconciler.config.namespaces or (None,):
            for resource in (STREAMJOIN, POD, *WATCHED, *monitors):
                await self._list(resource, namespace)
        self.liveness.listed_at = time.monotonic()
        resize(len(self.reconciler.cache.jobs()))
        self.synced.set()

    async def round(self) -> None:
        """Queue every known job."""
        await self.synced.wait()
        jobs = self.reconciler.cache.jobs()
        resize(len(jobs))
        for obj in jobs:
            self.queue.add(key(obj))
            self.reconciler.metrics.scaling.set_status(key(obj), obj.get("status") or {})

    async def poll(self) -> None:
        """Scrape all drivers concurrently, and queue their jobs."""
        await self.synced.wait()
        keys = [key(obj) for obj in self.reconciler.cache.jobs()]
        asked = await asyncio.gather(*(self.reconciler.scrape_driver(each) for each in keys))
        for each, existing in zip(keys, asked, strict=True):
            if existing or self.reconciler.is_waiting(each):
                self.queue.add(each)

    async def _list(self, resource: Resource, namespace: str | None) -> None:
        selector = "" if resource is STREAMJOIN else MANAGED
        listed = await self.reconciler.api.list(resource, namespace, selector, cached=self.synced.is_set())
        uids, now = {obj["metadata"]["uid"] for obj in listed.items}, time.monotonic()
        for obj in self.reconciler.cache.replace(resource, namespace, listed.items, listed.version):
            gone = obj["metadata"]["uid"] not in uids
            if self.synced.is_set() and not gone and resource is not POD_MONITOR:  # which has no watch
                self.liveness.expect(resource, obj, now)
                self.reconciler.metrics.missed.labels(resource.plural).inc()
            self._update(resource, obj, gone=gone)

    def _update(self, resource: Resource, obj: Object, *, gone: bool) -> None:
        cache = self.reconciler.cache
        before = cache.job(key(obj)) if resource is STREAMJOIN else None
        owner = cache.drop(resource, obj) if gone else cache.put(resource, obj)
        if gone:
            self.liveness.deleted(resource, obj)
        if owner is None:
            return
        if resource is STREAMJOIN and (gone or _generation(before) != _generation(obj)):
            self._spec_changed(owner, gone=gone)
        self.queue.add(owner)

    def _spec_changed(self, owner: JobKey, *, gone: bool) -> None:
        """A spec has changed: queue its job at once, and the jobs that wait for a checkpoint."""
        if gone:
            self.queue.forget(owner)
            self.reconciler.forget(owner)
        else:
            self.queue.add_now(owner)
        if not self.synced.is_set():  # all jobs will be queued
            return
        for other in self.reconciler.cache.jobs():
            if any(
                c.get("reason") == "CheckpointTaken"
                for c in (other.get("status") or {}).get("conditions", ())
            ):
                self.queue.add_now(key(other))

    async def _work(self) -> None:
        await self.synced.wait()
        while True:
            each = await self.queue.get()
            failed = True
            try:
                with self.reconciler.metrics.seconds.time():
                    failed = not await self.reconciler.reconcile(each)
            except Exception:
                log.exception("%s: unexpected error; it will be retried", each)
            finally:
                self.queue.done(each, failed=failed)
                self.reconciler.metrics.reconciles.labels("failed" if failed else "done").inc()
                self.reconciler.metrics.depth.set(len(self.queue))

    async def _repeat(self, what: str, step: Callable[[], Awaitable[None]], every_s: float) -> None:
        while True:
            pause_s = min(every_s, _AGAIN_S)
            try:
                await step()
                pause_s = every_s
            except ApiError as error:
                log.warning("%s: %s", what, error)
            except Exception:
                log.exception("%s: unexpected error; it will be retried", what)
            await asyncio.sleep(pause_s)


def _generation(obj: Object | None) -> object:
    return None if obj is None else obj["metadata"].get("generation")
