"""An API server that is good enough for the operator: lists, pages, watches, applies, keeps versions, and
notes who asked for what.

It runs in a thread of the test, so it goes on while an operator is frozen. Who asks is told by his token.
"""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web
from joinop.names import Object
from joinop.resources import BY_KIND, STREAMJOIN

from joinlib.deploy import LEASE, Resource
from tests.deploy.operator.execserver import Exec
from tests.patience import HUNG_S

KINDS = {(kind.root.strip("/"), kind.plural): kind for kind in (*BY_KIND.values(), LEASE)}
At = tuple[str, str, str]  # plural, namespace, name


@dataclass(frozen=True)
class Asked:
    """A request."""

    at: float  # monotonic seconds
    who: str
    method: str
    what: str  # plural, or what stands in its place
    query: dict[str, str]


@dataclass
class ApiServer:
    """Objects, and what was asked of them."""

    objects: dict[At, Object] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    # Status and headers that the next lists are answered with.
    refusals: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    busy: list[int] = field(default_factory=list)  # status that the next writes are answered with
    exec: Exec = field(default_factory=Exec)
    port: int = 0
    version: int = 0
    _watches: list[tuple[str, asyncio.Queue[Object]]] = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    @contextmanager
    def running(self) -> Iterator["ApiServer"]:
        ready = threading.Event()
        thread = threading.Thread(
            target=lambda: self._loop.run_until_complete(self._serve(ready)), daemon=True
        )
        thread.start()
        assert ready.wait(HUNG_S)
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._over.set)
            thread.join(HUNG_S)

    def config(self, path: Path, who: str) -> Path:
        """A kubeconfig for somebody."""
        contents = {
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{"name": "it", "user": {"token": who}}],
        }
        path.write_text(yaml.safe_dump(contents))
        return path

    def add(self, *things: Object, kind: Resource = STREAMJOIN) -> None:
        """As a user would create them."""

        def put() -> None:
            for stream_join in things:
                metadata = stream_join["metadata"]
                self._put((kind.plural, metadata["namespace"], metadata["name"]), stream_join)
            done.set()

        done = threading.Event()
        self._loop.call_soon_threadsafe(put)
        assert done.wait(HUNG_S)

    def get(self, plural: str, namespace: str, name: str) -> Object:
        """Empty if there is none."""
        return self.objects.get((plural, namespace, name), {})

    def changes(self, who: str, since: float = 0.0) -> list[Asked]:
        """What somebody asked to be changed, Leases apart."""
        return [
            a
            for a in self.asked
            if a.who == who and a.method != "GET" and a.what != "leases" and a.at >= since
        ]

    async def _serve(self, ready: threading.Event) -> None:
        self._over = asyncio.Event()
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port).start()
        self.port = runner.addresses[0][1]
        ready.set()
        await self._over.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        steps = request.path.strip("/").split("/")
        root, rest = "/".join(steps[: 2 if steps[0] == "api" else 3]), steps[2 if steps[0] == "api" else 3 :]
        namespace = rest[1] if rest[:1] == ["namespaces"] and len(rest) > 2 else ""
        rest = rest[2:] if namespace else rest
        what, query = rest[0] if rest else root, dict(request.query)
        who = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.asked.append(Asked(time.monotonic(), who, request.method, what, query))
        if not rest:
            return web.json_response(_discovered(root))
        if (kind := KINDS.get((root, what))) is None:
            return _refused(404)
        if rest[2:] == ["exec"]:
            return await self.exec.answer(request)
        if "watch" in query:
            return await self._watched(request, kind)
        if len(rest) == 1 and request.method == "GET":
            return self._listed(kind, query)
        if request.method != "GET" and self.busy:
            return _refused(self.busy.pop(0))
        body = await request.text()
        return self._one(request.method, kind, namespace, rest[1:], json.loads(body) if body else {})

    def _listed(self, kind: Resource, query: dict[str, str]) -> web.Response:
        if self.refusals:
            status, headers = self.refusals.pop(0)
            return _refused(status, headers)
        found = [stream_join for (plural, _, _), stream_join in self.objects.items() if plural == kind.plural]
        first, limit = int(query.get("continue", 0)), int(query.get("limit", len(found) or 1))
        metadata = {"resourceVersion": str(self.version)}
        if len(found) > first + limit:
            metadata["continue"] = str(first + limit)
        return web.json_response({"metadata": metadata, "items": found[first : first + limit]})

    async def _watched(self, request: web.Request, kind: Resource) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        queue: asyncio.Queue[Object] = asyncio.Queue()
        self._watches.append((kind.plural, queue))
        since = int(request.query.get("resourceVersion", self.version))
        for (plural, _, _), stream_join in self.objects.items():
            if plural == kind.plural and int(stream_join["metadata"]["resourceVersion"]) > since:
                queue.put_nowait({"type": "MODIFIED", "object": stream_join})
        try:
            while True:
                await answer.write(json.dumps(await queue.get()).encode() + b"\n")
        finally:
            self._watches.remove((kind.plural, queue))

    def _one(
        self, method: str, kind: Resource, namespace: str, rest: list[str], body: Object
    ) -> web.Response:
        at = kind.plural, namespace, rest[0] if rest else body["metadata"].get("name", "")
        known = self.objects.get(at)
        if method == "POST" and known is not None:
            return _refused(409)
        if method == "PUT" and (
            known is None or body["metadata"]["resourceVersion"] != known["metadata"]["resourceVersion"]
        ):
            return _refused(409)
        if known is None and (method in ("GET", "DELETE") or rest[1:]):
            return _refused(404)
        if method == "GET":
            return web.json_response(known)
        if method == "DELETE":
            self._publish("DELETED", at, self.objects.pop(at))
            return web.json_response({})
        return web.json_response(
            self._put(at, {**(known or {}), "status": body["status"]} if rest[1:] else body)
        )

    def _put(self, at: At, stream_join: Object) -> Object:
        known = self.objects.get(at)
        self.version += 1
        old = (known or {}).get("metadata", {})
        changed = known is None or known.get("spec") != stream_join.get("spec")
        metadata = {
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "uid": f"uid-{self.version}",
            **stream_join["metadata"],
            **({"uid": old["uid"]} if old else {}),
            "resourceVersion": str(self.version),
            "generation": old.get("generation", 0) + changed,
        }
        self.objects[at] = {**(known or {}), **stream_join, "metadata": metadata}
        self._publish("MODIFIED" if known else "ADDED", at, self.objects[at])
        return self.objects[at]

    def _publish(self, event: str, at: At, stream_join: Object) -> None:
        for plural, queue in self._watches:
            if plural == at[0]:
                queue.put_nowait({"type": event, "object": stream_join})


def _discovered(root: str) -> Any:
    """What kinds there are, as kopf asks for them; no PodMonitors."""
    if root == "api":
        return {"versions": ["v1"]}
    groups = sorted({(kind.group, kind.version) for kind in KINDS.values() if kind.group})
    if root == "apis":
        versions = [
            (group, {"groupVersion": f"{group}/{version}", "version": version}) for group, version in groups
        ]
        return {"groups": [{"name": g, "preferredVersion": v, "versions": [v]} for g, v in versions]}
    verbs = ["get", "list", "watch", "create", "patch", "delete"]
    return {
        "resources": [
            {"name": kind.plural, "kind": kind.kind, "singularName": "", "namespaced": True, "verbs": verbs}
            for (where, _), kind in KINDS.items()
            if where == root and kind.plural != "podmonitors"
        ]
    }


def _refused(status: int, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"reason": "", "message": f"no: {status}"}, status=status, headers=headers)
