"""Answers the API server before a StreamJoin is written: can it be run? In the words of `streamjoin validate`.

    kubectl apply ─► API server ─► POST /validate: AdmissionReview ─► verdict ─► "denied the request: spec.sql: line 1, ..."

Law: what leaves a spec as it is passes, as does all that is on its way out. The operator judges again when it reconciles, so
one that is away, or too slow, refuses nothing (`failurePolicy: Ignore`).
"""

import asyncio
import ssl
from pathlib import Path

from aiohttp import web

from joinop.admission import Rejected, permitted, verdict_of
from joinop.config import Config
from joinop.names import Object

_LARGEST = (
    8 << 20
)  # bytes: an object of etcd has at most 1.5 MiB, and a change comes with the object as it was


def answer(review: Object, config: Config) -> Object:
    """Return the AdmissionReview that answers one."""
    request = review["request"]
    problems = _problems(request, config)
    response: Object = {"uid": request["uid"], "allowed": not problems}
    if problems:
        response["status"] = {"code": 422, "reason": "Invalid", "message": "\n".join(problems)}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def _problems(request: Object, config: Config) -> tuple[str, ...]:
    given, before = request.get("object") or {}, request.get("oldObject") or {}
    if not given or "deletionTimestamp" in given["metadata"] or given.get("spec") == before.get("spec"):
        return ()
    metadata = {"name": "generated", **given["metadata"], "namespace": request["namespace"]}
    verdict = permitted(verdict_of({**given, "metadata": metadata}), config)
    return verdict.problems if isinstance(verdict, Rejected) else ()


async def serve(config: Config) -> web.AppRunner:
    """Start the server, with the certificate of `config.webhook`. Call `cleanup` on it at the end."""
    assert config.webhook is not None
    certificate = _ServedCertificate(config.webhook)

    async def validate(request: web.Request) -> web.Response:
        review = await request.json()
        return web.json_response(await asyncio.to_thread(answer, review, config))

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
