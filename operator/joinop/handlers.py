"""What does kopf do for us? It watches, signs in, handles signals. Its handlers only say what to look at.

Only `on.event`: other handlers write annotations, timers and daemons add finalizers, and a StreamJoin must be deletable
while no operator runs.
"""

import time
from typing import Any

import kopf
from aiohttp import web

from joinop import login, names
from joinop.api import Api, anybody
from joinop.cache import Cache
from joinop.config import Config
from joinop.driver import Drivers
from joinop.kinds import POD, STREAMJOIN, WATCHED, Kind
from joinop.leader import leader
from joinop.look import Looker
from joinop.meters import Meters
from joinop.prometheus import Prometheus
from joinop.pulse import Pulse
from joinop.reach import Reach
from joinop.run import MANAGED, Operator
from joinop.serve import serve


def registry(config: Config) -> kopf.OperatorRegistry:
    """The handlers of an operator."""
    found = kopf.OperatorRegistry()
    _lifecycle(found, config)
    for kind in (STREAMJOIN, POD, *WATCHED):
        _watch(found, kind)
    return found


def settings() -> kopf.OperatorSettings:
    """What must not be left to defaults."""
    found = kopf.OperatorSettings()
    found.scanning.disabled = (
        True  # the kinds are known; to list CRDs would need rights over the whole cluster
    )
    found.posting.enabled = False  # our events are few, and de-duplicated
    found.peering.standalone = True  # who leads is told by a Lease
    found.persistence.finalizer = f"{names.GROUP}/unused"
    found.networking.request_timeout = 30
    found.watching.server_timeout = 300
    found.watching.client_timeout = 330
    found.execution.max_workers = 4
    found.process.ultimate_exiting_timeout = 20
    for kind in (POD, *WATCHED):
        found.watching.label_selectors[_selector(kind)] = MANAGED
    return found


def _lifecycle(found: kopf.OperatorRegistry, config: Config) -> None:
    running: list[Operator] = []
    servers: list[web.AppRunner] = []
    candidate = None if config.lease is None else leader(config.lease, config.identity)

    @kopf.on.login(registry=found)
    def sign_in(settings: kopf.OperatorSettings, **_: Any) -> kopf.ConnectionInfo:
        return login.connection(settings)

    @kopf.on.startup(registry=found)
    async def start(memo: Any, **_: Any) -> None:
        pulse, meters = Pulse(), Meters()
        servers.append(await serve(pulse, meters, config.port))
        if candidate is not None:
            await candidate.elected()
        meters.leader.set(1)
        pulse.begin(time.monotonic())
        check = anybody if candidate is None else candidate.check
        api = Api(check)
        drivers = Drivers(check=check, reach=Reach(api, config.http_secret))
        looker = Looker(config, Cache(), api, drivers, meters, pulse, _prometheus(config))
        operator = Operator(looker, pulse)
        operator.start()
        running.append(operator)
        memo.operator = operator

    @kopf.on.cleanup(registry=found)
    async def stop(**_: Any) -> None:
        for operator in running:
            await operator.stop()
        if candidate is not None:
            await candidate.resign()
        for server in servers:
            await server.cleanup()


def _prometheus(config: Config) -> Prometheus | None:
    if config.prometheus is None:
        return None
    return Prometheus(config.prometheus, config.prometheus_token, config.prometheus_ca)


def _watch(found: kopf.OperatorRegistry, kind: Kind) -> None:
    @kopf.on.event(*_selector(kind), registry=found, id=f"on-{kind.plural}")
    async def told(memo: Any, event: Any, **_: Any) -> None:
        memo.operator.told(kind, dict(event["object"]), gone=event["type"] == "DELETED")


def _selector(kind: Kind) -> tuple[str, str]:
    return kind.api_version, kind.plural
