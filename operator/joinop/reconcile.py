"""Reconcile one job: observe, decide, write. It can be repeated at any time, and stopped at any point."""

import asyncio
import base64
import dataclasses
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from joinlib import deploy
from joinlib.deploy import LEASE, POD, Resource
from joinlib.scale import Load
from joinop import build, events, names, node_loss, pod_events, volumes
from joinop.admission import Admitted, verdict_of
from joinop.api import FORBIDDEN, NOT_FOUND, Api, ApiError
from joinop.cache import ObjectCache, Part
from joinop.config import Config
from joinop.decide import DesiredState, ObservedState, decide, view_of
from joinop.degradation import Degradation
from joinop.diagnosis import split, terminating
from joinop.drift import covers
from joinop.driver_client import DriverClient
from joinop.events import Event, Recorder
from joinop.liveness import Liveness
from joinop.metrics import OperatorMetrics
from joinop.names import JobKey, Object
from joinop.prometheus import Prometheus
from joinop.resources import BY_KIND, CLAIM, NODE, POD_MONITOR, SECRET, STREAMJOIN
from joinop.scrape import Scrape
from joinop.status import FIGURES, is_due, scaling_input

log = logging.getLogger("joinop")
_FRESH_S = 10.0  # Prometheus' figures may always be this old, however short a period is
_KNOWN_S = 30.0  # how long an object that existed is believed to exist,
_RESTING_S = 600.0  # and one of a job that runs or is suspended
_RESTING = {"Running", "Suspended"}
_ASKED_S = 4.0  # how long answers about nodes and events are used


@dataclass
class JobMemory:
    """What the operator remembers of a job. It can be lost at any time."""

    scrapes: dict[str, Scrape] = field(default_factory=dict)  # by uid of the driver's pod
    existing: dict[str, float] = field(default_factory=dict)  # Secrets and claims that existed, and when
    # Applied, but returned with other values.
    settled: dict[Part, tuple[str, str]] = field(default_factory=dict)
    written_at: float = 0.0  # when the status was written
    write_error: Degradation | None = None
    unacknowledged: str = ""  # why the driver has not accepted a number of executors
    lease: node_loss.LeaseWatch | None = None  # of a driver whose node is lost
    # By component: when the events of its pod were read, and the problem that they describe.
    pod_problems: dict[str, tuple[float, Degradation | None]] = field(default_factory=dict)
    is_waiting: bool = False  # for something that no watch delivers


@dataclass
class Reconciler:
    """Reconciles jobs."""

    config: Config
    cache: ObjectCache
    api: Api
    drivers: DriverClient
    metrics: OperatorMetrics
    liveness: Liveness
    prometheus: Prometheus | None = None  # None: drivers are scraped
    recorder: Recorder = field(default_factory=Recorder)
    memories: dict[JobKey, JobMemory] = field(default_factory=dict)
    # When nodes were read, and their health.
    nodes: dict[str, tuple[float, node_loss.NodeHealth]] = field(default_factory=dict)
    monitored: bool = False  # the cluster has PodMonitors
    clock: Callable[[], float] = time.monotonic
    _validating: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def reconcile(self, key: JobKey) -> bool:
        """Bring one job closer to its desired state. Returns false if something could not be written."""
        await self._validate_new()
        obj = self.cache.job(key)
        if obj is None or terminating(obj):
            self.memories.pop(key, None)
            return True
        memory = self.memories.setdefault(key, JobMemory())
        # Kept for all that follows: it may take seconds, and what the status tells of a checkpoint makes it another question.
        await asyncio.to_thread(verdict_of, obj)
        try:
            observed = await self._with_scaling_input(key, await self._observe(key, obj, memory))
            desired = decide(observed, self.config)
            memory.is_waiting = bool(observed.nodes) or desired.starting
            write_error = await self._write(key, obj, desired, memory)
            if desired.apply or write_error is not None or memory.unacknowledged != observed.unacknowledged:
                observed = dataclasses.replace(
                    observed,
                    children=self.cache.children(key),
                    write_error=write_error,
                    unacknowledged=memory.unacknowledged,
                )
                desired = dataclasses.replace(decide(observed, self.config), events=desired.events)
            await self._publish(key, obj, desired, memory)
            if desired.follows(obj.get("status") or {}) and write_error is None:
                return await self.reconcile(key)  # the decision is in the status: now act on it
        except ApiError as error:
            if error.status == NOT_FOUND or _ending(error):  # the job was deleted meanwhile
                return True
            self.metrics.errors.labels(error.status).inc()
            log.warning("%s: %s", key, error)
            return False
        return write_error is None

    async def scrape_driver(self, key: JobKey) -> bool:
        """Scrape the driver of a job. Returns whether there is one."""
        pod = self._driver(key)
        if pod is None:
            return False
        memory, uid = self.memories.setdefault(key, JobMemory()), pod["metadata"]["uid"]
        scrape, known = await self.drivers.status(pod), memory.scrapes.get(uid)
        if scrape.error and known is not None and scrape.at - known.at < self.config.stale_s:
            return True
        memory.scrapes = {uid: scrape}
        return True

    def is_waiting(self, key: JobKey) -> bool:
        """Does the job wait for something that no watch delivers?"""
        return key in self.memories and self.memories[key].is_waiting

    def forget(self, key: JobKey) -> None:
        """Drop everything of a job that is gone."""
        self.memories.pop(key, None)
        self.metrics.scaling.forget(key)

    async def _validate_new(self) -> None:
        """Validate all new specs, in a thread: each takes milliseconds, and any of them may own a
        checkpoint.
        """
        checkpoint_owners = self.cache.checkpoint_owners
        async with self._validating:
            while checkpoint_owners.unvalidated:
                job, obj = next(iter(checkpoint_owners.unvalidated.items()))
                await asyncio.to_thread(verdict_of, obj)
                if checkpoint_owners.unvalidated.get(job) is obj:
                    checkpoint_owners.resolve(job)

    async def _observe(self, key: JobKey, obj: Object, memory: JobMemory) -> ObservedState:
        # Before anything is awaited: it is that of this very version.
        owner = self.cache.checkpoint_owners.owner_of(key)
        pod, pods, now = self._driver(key), self.cache.pods(key), time.time()
        nodes = {name: await self._node(name) for name in node_loss.suspects(pods)}
        stranded = node_loss.stranded(pods, nodes, now)
        return ObservedState(
            stream_join=obj,
            children=self.cache.children(key),
            pods=pods,
            claims=await self._claims(key, obj, memory),
            checkpoint_owner=owner,
            scrape=None if pod is None else memory.scrapes.get(pod["metadata"]["uid"]),
            monitored=self.monitored,
            unacknowledged=memory.unacknowledged,
            nodes=nodes,
            lapsed=bool(stranded) and await self._lapsed(key, memory),
            pod_problem=await self._unmade(key, memory),
            executor_problem=await self._said(
                key, memory, deploy.EXECUTOR, pod_events.waiting_executor(pods)
            ),
            now=now,
            at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        )

    async def _node(self, name: str) -> node_loss.NodeHealth:
        """Return the health of a node. All jobs share the answer."""
        at, known = self.nodes.get(name, (float("-inf"), node_loss.NodeHealth(lost=None)))
        if self.clock() - at < _ASKED_S:
            return known
        try:
            found = node_loss.health(await self.api.get(NODE, None, name))
        except ApiError as error:
            if error.status != FORBIDDEN:
                raise
            found = node_loss.NodeHealth(lost=None)
        self.nodes = {each: said for each, said in self.nodes.items() if self.clock() - said[0] < _KNOWN_S}
        self.nodes[name] = (self.clock(), found)
        return found

    async def _lapsed(self, key: JobKey, memory: JobMemory) -> bool:
        lease = await self.api.get(LEASE, key.namespace, deploy.driver(key.name))
        memory.lease = node_loss.watch(memory.lease, lease, self.clock())
        return memory.lease.lapsed(self.clock())

    async def _unmade(self, key: JobKey, memory: JobMemory) -> Degradation | None:
        """Return why the driver's pod is missing, from events."""
        whose, children = pod_events.whose(key.name, self.cache.pods(key)), self.cache.children(key)
        wanted = children.get(("StatefulSet", deploy.driver(key.name)), {}).get("spec", {}).get("replicas")
        return await self._said(key, memory, deploy.DRIVER, whose if wanted else None)

    async def _said(
        self, key: JobKey, memory: JobMemory, part: str, whose: tuple[str, str] | None
    ) -> Degradation | None:
        """Return the problem that the events of an object, by kind and name, describe."""
        if whose is None:
            return None
        at, known = memory.pod_problems.get(part, (float("-inf"), None))
        if self.clock() - at >= _ASKED_S:
            known = pod_events.problem(await self.api.events(key.namespace, *whose), part)
            memory.pod_problems[part] = (self.clock(), known)
        return known

    async def _with_scaling_input(self, key: JobKey, observed: ObservedState) -> ObservedState:
        """Add the load of the executors if a scaling period has ended."""
        view, pod = view_of(observed, self.config), self._driver(key)
        if not is_due(view):
            return observed
        if pod is None:
            load: Load | str = "there is no driver"
        elif self.prometheus is not None:
            assert view.policy is not None
            load = await self.prometheus.load(key, max(2 * view.policy.period_s, _FRESH_S))
        else:
            load = await self.drivers.load(pod)
        return dataclasses.replace(observed, scaling_input=scaling_input(view, load))

    def _driver(self, key: JobKey) -> Object | None:
        drivers, _ = split(self.cache.pods(key))
        return next((pod for pod in drivers if not terminating(pod) and pod["status"].get("podIP")), None)

    async def _claims(self, key: JobKey, obj: Object, memory: JobMemory) -> dict[str, bool]:
        verdict = verdict_of(obj)
        wanted = volumes.claims(verdict.model.spec) if isinstance(verdict, Admitted) else []
        return {claim: await self._exists(CLAIM.kind, key, claim, memory) for claim in wanted}

    async def _exists(self, kind: str, key: JobKey, name: str, memory: JobMemory) -> bool:
        at, known_s = memory.existing.get(f"{kind} {name}"), self._trusted_s(key)
        if at is not None and self.clock() - at < known_s:
            return True
        if await self.api.get(BY_KIND[kind], key.namespace, name) is None:
            return False
        memory.existing[f"{kind} {name}"] = self.clock()
        return True

    def _trusted_s(self, key: JobKey) -> float:
        """Running pods hold what they need: a claim in use is not deleted, and a Secret is not read again."""
        status = (self.cache.job(key) or {}).get("status") or {}
        return _RESTING_S if status.get("phase") in _RESTING else _KNOWN_S

    async def _write(
        self, key: JobKey, obj: Object, desired: DesiredState, memory: JobMemory
    ) -> Degradation | None:
        """Write the children. Returns what prevented it, if something did."""
        write_error: Degradation | None
        try:
            for pod in desired.remove:
                await self._remove(key, {**pod, "kind": POD.kind})
            if desired.job is not None:
                await self._secrets(desired.job, key, memory)
            for child in desired.apply:
                await self._apply_child(key, obj, child, memory)
            for child in desired.prune:
                await self.api.delete(child)
                self.cache.drop(BY_KIND[child["kind"]], child)
                self._log_write(key, "delete", child)
        except ApiError as error:
            if _ending(error):
                raise
            self.metrics.errors.labels(error.status).inc()
            write_error = Degradation("WriteFailed", f"the API server refused: {error}")
        else:
            write_error = None
            await self._request_executors(key, desired, memory)
        if write_error is not None and write_error != memory.write_error:
            log.warning("%s: %s", key, write_error.message)
        memory.write_error = write_error
        return write_error

    async def _remove(self, key: JobKey, pod: Object) -> None:
        """Delete a pod without waiting for its node."""
        await self.api.delete(pod, at_once=True)
        self.cache.drop(POD, pod)
        self._log_write(key, "remove", pod)

    async def _secrets(self, job: build.JobBlueprint, key: JobKey, memory: JobMemory) -> None:
        """Create the Secrets. Each is created once and never written again."""
        for name in (names.token(job.name), names.rpc(job.name)):
            if await self._exists(SECRET.kind, key, name, memory):
                continue
            if await self.api.create(build.secret(job, name, secrets.token_urlsafe(32))):
                self._log_write(key, "create", {"kind": SECRET.kind, "metadata": {"name": name}})

    async def _apply_child(self, key: JobKey, obj: Object, child: Object, memory: JobMemory) -> None:
        resource, name = BY_KIND[child["kind"]], child["metadata"]["name"]
        part = resource.kind, name
        known = self.cache.children(key).get(part)
        if known is not None and memory.settled.get(part) == _mark(child, known):
            return
        if known is None:
            found = await self.api.get(resource, key.namespace, name)
            if found is not None and not _ours(found, obj):
                message = (
                    f"{resource.kind} {name} exists and does not belong to this StreamJoin; delete it, or"
                    " give the StreamJoin another name"
                )
                raise ApiError(409, "NameTaken", message)
        made = await self.api.apply(child)
        self._accept(resource, made)
        self._log_write(key, "apply", child)
        if not covers(made, child):
            # The server or a webhook changes the object: writing it again would never end.
            memory.settled[part] = _mark(child, made)

    async def _request_executors(self, key: JobKey, desired: DesiredState, memory: JobMemory) -> None:
        """Request a number of executors from the driver, at each reconciliation until it has accepted it."""
        pod, before, memory.unacknowledged = self._driver(key), memory.unacknowledged, ""
        if desired.executors is None or desired.job is None or pod is None:
            return
        found = await self.api.get(SECRET, key.namespace, names.token(desired.job.name))
        if found is None:
            return
        token = base64.b64decode(found.get("data", {}).get("token", "")).decode()
        memory.unacknowledged = await self.drivers.request_executors(pod, desired.executors, token)
        if memory.unacknowledged != before or not memory.unacknowledged:
            log.info(
                "%s: %d executors, %s: %s",
                key,
                desired.executors.total,
                desired.executors.reason,
                memory.unacknowledged or "the driver has accepted them",
            )
        if not memory.unacknowledged:
            await self.scrape_driver(key)  # its next status includes the new number

    async def _publish(self, key: JobKey, obj: Object, desired: DesiredState, memory: JobMemory) -> None:
        before, after = obj.get("status") or {}, desired.status
        if before != after and self._due(before, after, memory):
            written = await self.api.apply_status(key.namespace, key.name, after)
            self._accept(STREAMJOIN, written)
            memory.written_at = self.clock()
            self.metrics.scaling.status_written(key, obj, before, after)
        for event in desired.events:
            await self._event(obj, event)

    def _due(self, before: Object, after: Object, memory: JobMemory) -> bool:
        """Is the status due?

        Figures change with each batch, so a status that differs in them alone can wait.
        """
        lasting = [
            {name: value for name, value in status.items() if name not in FIGURES}
            for status in (before, after)
        ]
        seldom_s = max(self.config.figures_s, len(self.memories) / self.config.figures_rate)
        return lasting[0] != lasting[1] or self.clock() - memory.written_at >= seldom_s

    async def _event(self, obj: Object, event: Event) -> None:
        if not self.recorder.is_new(obj["metadata"]["uid"], event, self.clock()):
            return
        body = events.body(obj, event, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        try:
            if not await self.api.create(body):
                await self.api.repeat_event(body)
        except ApiError as error:  # a lost event breaks nothing
            log.debug("event %s: %s", event.reason, error)

    def _accept(self, resource: Resource, obj: Object) -> None:
        """Take in the server's answer to a write.

        The watch will deliver the same, unless it is dead or was faster.
        """
        if resource is not POD_MONITOR and self.cache.is_news(resource, obj):
            self.liveness.expect(resource, obj, self.clock())
        self.cache.put(resource, obj)

    def _log_write(self, key: JobKey, verb: str, child: Object) -> None:
        self.metrics.writes.labels(child["kind"], verb).inc()
        log.info("%s: %s %s %s", key, verb, child["kind"], child["metadata"]["name"])


def _mark(child: Object, observed: Object) -> tuple[str, str]:
    """Identify a desired object together with the state of the existing one."""
    metadata = observed["metadata"]
    return child["metadata"]["annotations"][names.APPLIED], str(
        metadata.get("generation") or metadata["resourceVersion"]
    )


def _ours(found: Object, obj: Object) -> bool:
    """Does it belong to this StreamJoin, or to an earlier one of its name that is being deleted?"""
    mine = names.MANAGED | {deploy.INSTANCE: obj["metadata"]["name"]}
    labels = found["metadata"].get("labels") or {}
    return names.owned(found, obj["metadata"]["uid"]) or labels.items() >= mine.items()


def _ending(error: ApiError) -> bool:
    """Is the namespace being deleted? Then there is nothing left to do."""
    return "because it is being terminated" in str(error)
