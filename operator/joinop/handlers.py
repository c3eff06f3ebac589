"""kopf's handlers: it watches, signs in and handles signals.

Each event only queues the job that it concerns.

`on.event` is the only handler of objects here: other handlers write annotations, timers and daemons add
finalizers, and a StreamJoin must be deletable while no operator runs.
"""

import asyncio
import time
from typing import Any

import kopf
from aiohttp import web

from joinlib import deploy
from joinlib.deploy import POD, Resource
from joinop import webhook
from joinop.api import Api, always
from joinop.cache import ObjectCache
from joinop.config import Config
from joinop.controller import MANAGED, Controller
from joinop.credentials import sign_in
from joinop.driver_client import DriverClient
from joinop.leader import leader
from joinop.liveness import Liveness
from joinop.metrics import OperatorMetrics
from joinop.prometheus import Prometheus
from joinop.reconcile import Reconciler
from joinop.resources import STREAMJOIN, WATCHED
from joinop.serve import serve
from joinop.shutdown import quiet_closing
from joinop.transport import DriverTransport


def registry(config: Config) -> kopf.OperatorRegistry:
    """Return the handlers of an operator."""
    found = kopf.OperatorRegistry()
    _lifecycle(found, config)
    for kind in (STREAMJOIN, POD, *WATCHED):
        _watch(found, kind)
    return found


def settings() -> kopf.OperatorSettings:
    """Return kopf's settings, where its defaults do not fit."""
    found = kopf.OperatorSettings()
    # The kinds are known, and listing CRDs would need rights over the whole cluster.
    found.scanning.disabled = True
    found.posting.enabled = False  # joinop.events does it, without repetitions
    found.peering.standalone = True  # a Lease decides which operator leads
    found.persistence.finalizer = f"{deploy.GROUP}/unused"
    found.networking.request_timeout = 30
    found.watching.server_timeout = 300
    found.watching.client_timeout = 330
    found.execution.max_workers = 4
    found.process.ultimate_exiting_timeout = 20
    for kind in (POD, *WATCHED):
        found.watching.label_selectors[_selector(kind)] = MANAGED
    return found


def _lifecycle(found: kopf.OperatorRegistry, config: Config) -> None:
    running: list[Controller] = []
    servers: list[web.AppRunner] = []
    candidate = None if config.lease is None else leader(config.lease, config.identity)

    @kopf.on.login(registry=found)
    def login(settings: kopf.OperatorSettings, **_: Any) -> kopf.ConnectionInfo:
        return sign_in(settings)

    @kopf.on.startup(registry=found)
    async def start(memo: Any, **_: Any) -> None:
        quiet_closing(asyncio.get_running_loop())
        liveness, metrics = Liveness(), OperatorMetrics()
        servers.append(await serve(liveness, metrics, config.port))
        if config.webhook is not None:  # of those that wait to lead, too: the API server asks any of them
            servers.append(await webhook.serve(config))
        if candidate is not None:
            await candidate.elected()
        metrics.leader.set(1)
        liveness.begin(time.monotonic())
        check = always if candidate is None else candidate.check
        api = await Api.connected(check)
        drivers = DriverClient(check=check, reach=DriverTransport(api, config.http_secret))
        reconciler = Reconciler(config, ObjectCache(), api, drivers, metrics, liveness, _prometheus(config))
        controller = Controller(reconciler, liveness)
        controller.start()
        running.append(controller)
        memo.controller = controller

    @kopf.on.cleanup(registry=found)
    async def stop(**_: Any) -> None:
        for controller in running:
            await controller.stop()
        if candidate is not None:
            await candidate.resign()
        for server in servers:
            await server.cleanup()


def _prometheus(config: Config) -> Prometheus | None:
    if config.prometheus is None:
        return None
    return Prometheus(config.prometheus, config.prometheus_token, config.prometheus_ca)


def _watch(found: kopf.OperatorRegistry, kind: Resource) -> None:
    @kopf.on.event(*_selector(kind), registry=found, id=f"on-{kind.plural}")
    async def notify(memo: Any, event: Any, **_: Any) -> None:
        memo.controller.on_event(kind, dict(event["object"]), gone=event["type"] == "DELETED")


def _selector(kind: Resource) -> tuple[str, str]:
    return kind.api_version, kind.plural
