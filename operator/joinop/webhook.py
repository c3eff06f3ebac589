"""Answers the API server before a StreamJoin is written: can it be run? In the words of `streamjoin validate`.

    kubectl apply ─► API server ─► POST /validate: AdmissionReview ─► verdict ─► "denied the request: spec.sql: line 1, ..."
                                                                      └► warnings: "Warning: the state of this job cannot ..."

Law: what leaves a spec as it is passes, as does all that is on its way out. The operator judges again when it reconciles, so
one that is away, or too slow, refuses nothing (`failurePolicy: Ignore`). Warnings that take long are left out.
"""

import asyncio
import ssl
import time
from contextlib import suppress
from pathlib import Path

from aiohttp import web

from joinop.admission import Rejected, permitted, verdict_of
from joinop.config import Config
from joinop.forewarn import warnings_of
from joinop.names import Object

_ANSWER_S = 10.0  # after which no warning is waited for: the API server waits for 15 s (`timeoutSeconds` of the chart)
_LARGEST = (
    8 << 20
)  # bytes: an object of etcd has at most 1.5 MiB, and a change comes with the object as it was


async def answer(review: Object, config: Config) -> Object:
    """Return the AdmissionReview that answers one."""
    end, request = time.monotonic() + _ANSWER_S, review["request"]
    response: Object = {"uid": request["uid"], "allowed": True}
    if (change := _change(request)) is not None:
        if problems := await asyncio.to_thread(_problems, change[0], config):
            response["allowed"] = False
            response["status"] = {"code": 422, "reason": "Invalid", "message": "\n".join(problems)}
        elif warnings := await _warnings(*change, end - time.monotonic()):
            response["warnings"] = warnings
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def _change(request: Object) -> tuple[Object, Object] | None:
    """Return a StreamJoin as it would be, and as it was; None: its spec stays, or it goes."""
    given, before = request.get("object") or {}, request.get("oldObject") or {}
    if not given or "deletionTimestamp" in given["metadata"] or given.get("spec") == before.get("spec"):
        return None
    metadata = {"name": "generated", **given["metadata"], "namespace": request["namespace"]}
    return {**given, "metadata": metadata}, {**before, "metadata": metadata} if before else {}


def _problems(given: Object, config: Config) -> tuple[str, ...]:
    verdict = permitted(verdict_of(given), config)
    return verdict.problems if isinstance(verdict, Rejected) else ()


async def _warnings(given: Object, before: Object, seconds: float) -> list[str]:
    """Return the warnings; none if that takes longer: what has been begun then ends by its own limits."""
    with suppress(TimeoutError):
        return list(await asyncio.wait_for(asyncio.to_thread(warnings_of, given, before), max(0.0, seconds)))
    return []


async def serve(config: Config) -> web.AppRunner:
    """Start the server, with the certificate of `config.webhook`. Call `cleanup` on it at the end."""
    assert config.webhook is not None
    certificate = _ServedCertificate(config.webhook)

    async def validate(request: web.Request) -> web.Response:
        review = await request.json()
        return web.json_response(await answer(review, config))

    app = web.Application(client_max_size=_LARGEST)
    app.add_routes([web.post("/validate", validate)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, None, config.webhook_port, ssl_context=certificate.context).start()
    return runner


class _ServedCertificate:
    """The certificate in a folder, a Secret's, which may be renewed at any time: each connection gets the one of its moment."""

    def __init__(self, folder: Path) -> None:
        self._files = folder / "tls.crt", folder / "tls.key"
        self._seen = list[int]()
        self._made = self._now()
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.sni_callback = self._chosen

    def _chosen(
        self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _: ssl.SSLContext
    ) -> None:
        connection.context = self._now()

    def _now(self) -> ssl.SSLContext:
        seen = [file.stat().st_mtime_ns for file in self._files]
        if seen != self._seen:
            self._made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._made.load_cert_chain(*self._files)
            self._seen = seen
        return self._made
