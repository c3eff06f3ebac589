"""A look at one job: observe, decide, write. It can be repeated at any time, and stopped at any point."""

import asyncio
import base64
import dataclasses
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from joinlib.scale import Load
from joinop import build, events, names, places
from joinop.api import NOT_FOUND, Api, ApiError
from joinop.cache import Cache, Part
from joinop.compare import covers
from joinop.config import Config
from joinop.decide import Decision, Seen, decide, view_of
from joinop.driver import Drivers
from joinop.events import Event, Recorder
from joinop.judge import Accepted, document, judge
from joinop.kinds import BY_NAME, CLAIM, POD_MONITOR, SECRET, STREAMJOIN, Kind
from joinop.meters import Meters
from joinop.names import Key, Object
from joinop.problem import Problem
from joinop.prometheus import Prometheus
from joinop.pulse import Pulse
from joinop.reading import Reading
from joinop.status import FIGURES, is_due, observed
from joinop.symptoms import leaving, split

log = logging.getLogger("joinop")
_FRESH_S = 10.0  # Prometheus' figures are at least that fresh, however short a period is
_KNOWN_S = 30.0  # what is there is believed for so long,
_RESTING_S = 600.0  # and of a job that is as it should be, for so long
_RESTING = {"Running", "Suspended"}


@dataclass
class Memory:
    """What is remembered of a job between looks; it can be lost at any time."""

    readings: dict[str, Reading] = field(default_factory=dict)  # by uid of the driver's pod
    there: dict[str, float] = field(default_factory=dict)  # Secret and claims that were there, and when
    settled: dict[Part, tuple[str, str]] = field(default_factory=dict)  # applied, but not shown as asked for
    written_at: float = 0.0  # when the status was written
    trouble: Problem | None = None
    unheard: str = ""  # why the driver did not take a number of executors


@dataclass
class Looker:
    """Looks at jobs."""

    config: Config
    cache: Cache
    api: Api
    drivers: Drivers
    meters: Meters
    pulse: Pulse
    prometheus: Prometheus | None = None  # None: drivers are asked
    recorder: Recorder = field(default_factory=Recorder)
    memories: dict[Key, Memory] = field(default_factory=dict)
    monitored: bool = False  # the cluster has PodMonitors
    clock: Callable[[], float] = time.monotonic
    _judging: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def look(self, key: Key) -> bool:
        """Whether all could be written."""
        await self._judge_new()
        thing = self.cache.job(key)
        if thing is None or leaving(thing):
            self.memories.pop(key, None)
            return True
        memory = self.memories.setdefault(key, Memory())
        try:
            seen = await self._observed(key, await self._seen(key, thing, memory))
            decision = decide(seen, self.config)
            trouble = await self._write(key, thing, decision, memory)
            if decision.apply or trouble is not None or memory.unheard != seen.unheard:
                seen = dataclasses.replace(
                    seen, children=self.cache.children(key), trouble=trouble, unheard=memory.unheard
                )
                decision = dataclasses.replace(decide(seen, self.config), events=decision.events)
            await self._tell(key, thing, decision, memory)
            if decision.follows(thing.get("status") or {}) and trouble is None:
                return await self.look(key)  # it is written down: now it is done
        except ApiError as error:
            if error.status == NOT_FOUND or _ending(error):  # it was deleted meanwhile
                return True
            self.meters.errors.labels(error.status).inc()
            log.warning("%s: %s", key, error)
            return False
        return trouble is None

    async def read(self, key: Key) -> bool:
        """Ask the driver of a job how it is; whether there was one to ask."""
        pod = self._driver(key)
        if pod is None:
            return False
        memory, uid = self.memories.setdefault(key, Memory()), pod["metadata"]["uid"]
        reading, known = await self.drivers.read(pod), memory.readings.get(uid)
        if reading.error and known is not None and reading.at - known.at < self.config.stale_s:
            return True
        memory.readings = {uid: reading}
        return True

    def forget(self, key: Key) -> None:
        """The job is gone."""
        self.memories.pop(key, None)
        self.meters.scaling.forget(key)

    async def _judge_new(self) -> None:
        """Judge all specs that are new, in a thread: each takes milliseconds, and any of them may be a rival."""
        rivals = self.cache.rivals
        async with self._judging:
            while rivals.unjudged:
                job, thing = next(iter(rivals.unjudged.items()))
                await asyncio.to_thread(judge, document(thing))
                if rivals.unjudged.get(job) is thing:
                    rivals.settle(job)

    async def _seen(self, key: Key, thing: Object, memory: Memory) -> Seen:
        owner = self.cache.rivals.of(key)  # before anything waits: of this very version
        pod = self._driver(key)
        return Seen(
            thing=thing,
            children=self.cache.children(key),
            pods=self.cache.pods(key),
            claims=await self._claims(key, thing, memory),
            rival=owner,
            reading=None if pod is None else memory.readings.get(pod["metadata"]["uid"]),
            monitored=self.monitored,
            unheard=memory.unheard,
            now=time.time(),
            at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        )

    async def _observed(self, key: Key, seen: Seen) -> Seen:
        """With what executors hold, if a period of scaling is over."""
        view, pod = view_of(seen), self._driver(key)
        if not is_due(view):
            return seen
        if pod is None:
            load: Load | str = "there is no driver"
        elif self.prometheus is not None:
            assert view.policy is not None
            load = await self.prometheus.load(key, max(2 * view.policy.period_s, _FRESH_S))
        else:
            load = await self.drivers.load(pod)
        return dataclasses.replace(seen, observed=observed(view, load))

    def _driver(self, key: Key) -> Object | None:
        drivers, _ = split(self.cache.pods(key))
        return next((pod for pod in drivers if not leaving(pod) and pod["status"].get("podIP")), None)

    async def _claims(self, key: Key, thing: Object, memory: Memory) -> dict[str, bool]:
        verdict = judge(document(thing))
        wanted = places.claims(verdict.model.spec) if isinstance(verdict, Accepted) else []
        return {claim: await self._there(CLAIM.kind, key, claim, memory) for claim in wanted}

    async def _there(self, kind: str, key: Key, name: str, memory: Memory) -> bool:
        at, known_s = memory.there.get(f"{kind} {name}"), self._known_s(key)
        if at is not None and self.clock() - at < known_s:
            return True
        if await self.api.get(BY_NAME[kind], key.namespace, name) is None:
            return False
        memory.there[f"{kind} {name}"] = self.clock()
        return True

    def _known_s(self, key: Key) -> float:
        """Pods that work hold what they need: a claim in use does not go, and nobody asks for its Secret again."""
        status = (self.cache.job(key) or {}).get("status") or {}
        return _RESTING_S if status.get("phase") in _RESTING else _KNOWN_S

    async def _write(self, key: Key, thing: Object, decision: Decision, memory: Memory) -> Problem | None:
        """Write the children; what kept us from it."""
        trouble: Problem | None
        try:
            if decision.job is not None:
                await self._token(decision.job, key, memory)
            for child in decision.apply:
                await self._apply(key, thing, child, memory)
            for child in decision.prune:
                await self.api.delete(child)
                self.cache.drop(BY_NAME[child["kind"]], child)
                self._wrote(key, "delete", child)
        except ApiError as error:
            if _ending(error):
                raise
            self.meters.errors.labels(error.status).inc()
            trouble = Problem("WriteFailed", f"the API server refused: {error}")
        else:
            trouble = None
            await self._ask(key, decision, memory)
        if trouble is not None and trouble != memory.trouble:
            log.warning("%s: %s", key, trouble.message)
        memory.trouble = trouble
        return trouble

    async def _token(self, job: build.Job, key: Key, memory: Memory) -> None:
        """The Secret is made once and never written again."""
        name = names.token(job.name)
        if await self._there(SECRET.kind, key, name, memory):
            return
        if await self.api.create(build.secret(job, secrets.token_urlsafe(32))):
            self._wrote(key, "create", {"kind": SECRET.kind, "metadata": {"name": name}})

    async def _apply(self, key: Key, thing: Object, child: Object, memory: Memory) -> None:
        kind, name = BY_NAME[child["kind"]], child["metadata"]["name"]
        part = kind.kind, name
        known = self.cache.children(key).get(part)
        if known is not None and memory.settled.get(part) == _mark(child, known):
            return
        if known is None:
            found = await self.api.get(kind, key.namespace, name)
            if found is not None and not _ours(found, thing):
                message = f"{kind.kind} {name} is there and is not ours; delete it, or give the StreamJoin another name"
                raise ApiError(409, "NameTaken", message)
        made = await self.api.apply(child)
        self._answered(kind, made)
        self._wrote(key, "apply", child)
        if not covers(made, child):  # the server, or a webhook, has the last word; to insist would never end
            memory.settled[part] = _mark(child, made)

    async def _ask(self, key: Key, decision: Decision, memory: Memory) -> None:
        """Tell the driver a number of executors. Until it takes it, it is told again at each look."""
        pod, before, memory.unheard = self._driver(key), memory.unheard, ""
        if decision.executors is None or decision.job is None or pod is None:
            return
        found = await self.api.get(SECRET, key.namespace, names.token(decision.job.name))
        if found is None:
            return
        token = base64.b64decode(found.get("data", {}).get("token", "")).decode()
        memory.unheard = await self.drivers.ask(pod, decision.executors, token)
        if memory.unheard != before or not memory.unheard:
            log.info(
                "%s: %d executors: %s", key, decision.executors, memory.unheard or "the driver has heard"
            )
        if not memory.unheard:
            await self.read(key)  # it knows now, and need not be told again

    async def _tell(self, key: Key, thing: Object, decision: Decision, memory: Memory) -> None:
        before, after = thing.get("status") or {}, decision.status
        if before != after and self._due(before, after, memory):
            told = await self.api.apply_status(key.namespace, key.name, after)
            self._answered(STREAMJOIN, told)
            memory.written_at = self.clock()
            self.meters.scaling.told(key, thing, before, after)
        for event in decision.events:
            await self._event(thing, event)

    def _due(self, before: Object, after: Object, memory: Memory) -> bool:
        """Figures change with each batch: they can wait a little."""
        kept = [
            {name: value for name, value in status.items() if name not in FIGURES}
            for status in (before, after)
        ]
        seldom_s = max(self.config.figures_s, len(self.memories) / self.config.figures_rate)
        return kept[0] != kept[1] or self.clock() - memory.written_at >= seldom_s

    async def _event(self, thing: Object, event: Event) -> None:
        if not self.recorder.fresh(thing["metadata"]["uid"], event, self.clock()):
            return
        body = events.body(thing, event, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        try:
            if not await self.api.create(body):
                await self.api.told_again(body)
        except ApiError as error:  # an event that is lost breaks nothing
            log.debug("event %s: %s", event.reason, error)

    def _answered(self, kind: Kind, thing: Object) -> None:
        """What the server made of a write. The watch will tell the same, unless it is dead, or was quicker."""
        if kind is not POD_MONITOR and self.cache.is_news(kind, thing):
            self.pulse.missed(kind, thing, self.clock())
        self.cache.put(kind, thing)

    def _wrote(self, key: Key, verb: str, child: Object) -> None:
        self.meters.writes.labels(child["kind"], verb).inc()
        log.info("%s: %s %s %s", key, verb, child["kind"], child["metadata"]["name"])


def _mark(child: Object, seen: Object) -> tuple[str, str]:
    """Which wish, and which state of the object."""
    metadata = seen["metadata"]
    return child["metadata"]["annotations"][names.APPLIED], str(
        metadata.get("generation") or metadata["resourceVersion"]
    )


def _ours(found: Object, thing: Object) -> bool:
    """It belongs to this StreamJoin, or to an earlier one of its name that is being cleared away."""
    mine = names.MANAGED | {names.INSTANCE: thing["metadata"]["name"]}
    labels = found["metadata"].get("labels") or {}
    return names.owned(found, thing["metadata"]["uid"]) or labels.items() >= mine.items()


def _ending(error: ApiError) -> bool:
    """The namespace is being deleted: there is nothing left to do."""
    return "because it is being terminated" in str(error)
