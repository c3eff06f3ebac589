"""Who asks the operator how it is? The kubelet at /healthz, Prometheus at /metrics."""

import time

from aiohttp import web
from prometheus_client import generate_latest

from joinop.meters import Meters
from joinop.pulse import Pulse


async def serve(pulse: Pulse, meters: Meters, port: int) -> web.AppRunner:
    """A running server; call `cleanup` on it in the end."""

    async def healthz(_: web.Request) -> web.Response:
        illness = pulse.illness(time.monotonic())
        return web.Response(text=f"{illness or 'ok'}\n", status=503 if illness else 200)

    async def metrics(_: web.Request) -> web.Response:
        now = time.monotonic()
        meters.resync_age.set(max(0.0, now - pulse.listed_at))
        for kind, at in pulse.told_at.items():
            meters.watch_age.labels(kind).set(now - at)
        return web.Response(body=generate_latest(meters.registry), content_type="text/plain", charset="utf-8")

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, None, port).start()
    return runner
