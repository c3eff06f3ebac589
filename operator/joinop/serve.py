"""HTTP server of the operator: /healthz for the kubelet, /metrics for Prometheus.

kopf's own probes start after the startup handlers, in one of which an operator waits to lead.
"""

import time

from aiohttp import web
from prometheus_client import generate_latest

from joinop.liveness import Liveness
from joinop.metrics import OperatorMetrics


async def serve(liveness: Liveness, metrics: OperatorMetrics, port: int) -> web.AppRunner:
    """Start the server. Call `cleanup` on it at the end."""

    async def get_healthz(_: web.Request) -> web.Response:
        failure = liveness.failure(time.monotonic())
        return web.Response(text=f"{failure or 'ok'}\n", status=503 if failure else 200)

    async def get_metrics(_: web.Request) -> web.Response:
        now = time.monotonic()
        metrics.resync_age.set(max(0.0, now - liveness.listed_at))
        for kind, at in liveness.event_at.items():
            metrics.watch_age.labels(kind).set(now - at)
        return web.Response(
            body=generate_latest(metrics.registry), content_type="text/plain", charset="utf-8"
        )

    app = web.Application()
    app.add_routes([web.get("/healthz", get_healthz), web.get("/metrics", get_metrics)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, None, port).start()
    return runner
