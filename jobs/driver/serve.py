"""What a driver answers: resources to read, and one to change.

    GET  /healthz  /readyz  /
    GET  /metrics  /v1/status  /v1/page  with the job's token if TLS is on, otherwise by an address or its own name
    POST /v1/executors {"total": n, "reason": "why"}  with the job's token

What it returns are plain values that the driver has prepared: no response waits for Spark.
"""

import asyncio
import hmac
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from jobs.hosts import check_host
from jobs.page.serve import routes
from joinlib.errors import SpecError
from joinlib.scale.request import REASON_MAX, ExecutorRequest, is_line

_BODY_BYTES = 4096
_REALM = 'Bearer realm="streamjoin"'


@dataclass(frozen=True)
class Answers:
    """The callbacks behind the resources."""

    status: Callable[[], dict[str, Any]]
    metrics: Callable[[], bytes]
    healthy: Callable[[], bool]
    ready: Callable[[], bool]
    scale: Callable[[ExecutorRequest], None]  # raises SpecError if the number is out of bounds
    # Called for each request, since the token may be replaced. None means no token: every change is refused.
    token: Callable[[], str | None]
    page: Callable[[], dict[str, Any]]


def application(
    answers: Answers, *, open_to_all: bool = True, names: Collection[str] = ()
) -> web.Application:
    """Return the web application.

    `open_to_all` says whether metrics and status need no token; they are then given only to whoever asks by an address,
    as localhost, or by one of these names.

    Any other path gets 404, a wrong method 405, and a body that is too large 413.
    """

    def reader(request: web.Request) -> None:
        if open_to_all:
            check_host(request, names)
        else:
            _admit(request, answers.token())

    async def metrics(request: web.Request) -> web.Response:
        reader(request)
        return web.Response(body=answers.metrics(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def healthy(_: web.Request) -> web.Response:
        return _yes_or_no(answers.healthy())

    async def ready(_: web.Request) -> web.Response:
        return _yes_or_no(answers.ready())

    async def status(request: web.Request) -> web.Response:
        reader(request)
        return web.json_response(answers.status())

    async def executors(request: web.Request) -> web.Response:
        _admit(request, answers.token())
        asked = _asked(await request.read())
        try:
            await asyncio.to_thread(answers.scale, asked)
        except SpecError as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from error
        return web.json_response({"total": asked.total})

    app = web.Application(client_max_size=_BODY_BYTES)
    app.add_routes(
        [
            web.get("/metrics", metrics),
            web.get("/healthz", healthy),
            web.get("/readyz", ready),
            web.get("/v1/status", status),
            web.post("/v1/executors", executors),
            *routes(answers.page, reader),
        ]
    )
    return app


def _yes_or_no(yes: bool) -> web.Response:
    return web.Response(text="ok\n") if yes else web.Response(text="no\n", status=503)


def _admit(request: web.Request, token: str | None) -> None:
    """Refuse a request without the token, in a time that does not depend on how much of it is right."""
    given = request.headers.get("Authorization", "")
    if not token or not hmac.compare_digest(given.encode(errors="replace"), f"Bearer {token}".encode()):
        raise web.HTTPUnauthorized(text="this needs the job's token\n", headers={"WWW-Authenticate": _REALM})


def _asked(body: bytes) -> ExecutorRequest:
    try:
        match json.loads(body):
            case {"total": int(total), "reason": str(reason), **rest} if (
                not rest and not isinstance(total, bool) and is_line(reason)
            ):
                return ExecutorRequest(total, reason)
    except ValueError:
        pass
    raise web.HTTPBadRequest(
        text=f'write {{"total": n, "reason": "why"}}, the reason as one line of at most {REASON_MAX} characters\n'
    )
