"""The API server, over HTTP: the few requests that the operator makes, each safe to make again.

Writing is server-side apply with our own field manager: what others set is left alone, what we no longer ask for goes.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

import aiohttp

from joinop import login
from joinop.kinds import BY_NAME, EVENT, STREAMJOIN, Kind
from joinop.names import API_VERSION, KIND, MANAGER, Object

_APPLY = {"fieldManager": MANAGER, "force": "true"}
_FRESH_S = 60.0  # credentials are read again after this
_PAUSES_S = (0.5, 2.0)  # before asking again when the server is busy
_BUSY = {429, 500, 502, 503, 504}
FORBIDDEN, NOT_FOUND, CONFLICT = 403, 404, 409


class ApiError(Exception):
    """The API server said no."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


class Api:
    """A session with the API server."""

    def __init__(self, parallel: int = 16, timeout_s: float = 30.0) -> None:
        self._info, self._read_at = login.connection(), time.monotonic()
        self._gate = asyncio.Semaphore(parallel)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._info.as_ssl_context(), limit=parallel),
            timeout=aiohttp.ClientTimeout(total=timeout_s),
        )

    async def close(self) -> None:
        await self._session.close()

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """The object; None if there is none."""
        try:
            return await self._ask("GET", kind.path(namespace, name))
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    async def events(self, namespace: str, kind: str, name: str) -> list[Object]:
        """What was told of an object within the last hour."""
        chosen = {"fieldSelector": f"involvedObject.kind={kind},involvedObject.name={name}"}
        found: list[Object] = (await self._ask("GET", EVENT.path(namespace), chosen))["items"]
        return found

    async def list(self, kind: Kind, namespace: str | None, selector: str = "") -> list[Object]:
        """All objects of a kind, with the kind written into each."""
        found = await self._ask(
            "GET", kind.path(namespace), {"labelSelector": selector} if selector else None
        )
        return [{**item, "kind": kind.kind, "apiVersion": kind.api_version} for item in found["items"]]

    async def serves(self, kind: Kind) -> bool:
        """Does the cluster have this kind?"""
        try:
            found = await self._ask("GET", kind.root)
        except ApiError as error:
            if error.status == NOT_FOUND:
                return False
            raise
        return any(item["name"] == kind.plural for item in found["resources"])

    async def apply(self, thing: Object) -> Object:
        """Make it so, whether it is there or not."""
        kind, metadata = BY_NAME[thing["kind"]], thing["metadata"]
        return await self._ask("PATCH", kind.path(metadata["namespace"], metadata["name"]), _APPLY, thing)

    async def apply_status(self, namespace: str, name: str, status: Object) -> Object:
        """Make this the whole status of a StreamJoin, as far as it is ours."""
        body = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": name, "namespace": namespace},
            "status": status,
        }
        return await self._ask("PATCH", STREAMJOIN.path(namespace, name, "status"), _APPLY, body)

    async def create(self, thing: Object) -> bool:
        """Make it unless there is one of that name; whether it was made."""
        try:
            await self._ask("POST", BY_NAME[thing["kind"]].path(thing["metadata"]["namespace"]), None, thing)
        except ApiError as error:
            if error.status == CONFLICT:
                return False
            raise
        return True

    async def told_again(self, event: Object) -> None:
        """An event that is there happened again; how often is not counted."""
        metadata = event["metadata"]
        body = {"lastTimestamp": event["lastTimestamp"]}
        await self._ask("PATCH", EVENT.path(metadata["namespace"], metadata["name"]), None, body)

    async def delete(self, thing: Object, *, at_once: bool = False) -> None:
        """Remove this very object, not a later one of the same name. `at_once`: without a word of a pod's node."""
        kind, metadata = BY_NAME[thing["kind"]], thing["metadata"]
        body: Object = {"preconditions": {"uid": metadata["uid"]}}
        if at_once:
            body["gracePeriodSeconds"] = 0
        try:
            await self._ask("DELETE", kind.path(metadata["namespace"], metadata["name"]), None, body)
        except ApiError as error:
            if error.status not in (NOT_FOUND, CONFLICT):
                raise

    async def _ask(
        self, method: str, path: str, params: Mapping[str, str] | None = None, body: Object | None = None
    ) -> Any:
        for pause_s in _PAUSES_S:
            try:
                return await self._once(method, path, params, body)
            except ApiError as error:
                if error.status not in _BUSY:
                    raise
            except (aiohttp.ClientConnectionError, TimeoutError):
                pass
            await asyncio.sleep(pause_s)
        try:
            return await self._once(method, path, params, body)
        except (aiohttp.ClientConnectionError, TimeoutError) as error:
            raise ApiError(0, "Unreachable", f"the API server cannot be reached: {error}") from error

    async def _once(
        self, method: str, path: str, params: Mapping[str, str] | None, body: Object | None
    ) -> Any:
        headers = self._headers() | {"Accept": "application/json", "Content-Type": _content(method, params)}
        data = None if body is None else json.dumps(body)
        url = self._info.server.rstrip("/") + path
        async with (
            self._gate,
            self._session.request(method, url, params=params, data=data, headers=headers) as answer,
        ):
            if answer.status < 400:
                return await answer.json()
            raise await _error(answer)

    def _headers(self) -> dict[str, str]:
        if time.monotonic() - self._read_at > _FRESH_S:
            self._info, self._read_at = login.connection(), time.monotonic()
        return dict(self._info.as_http_headers())


def _content(method: str, params: Mapping[str, str] | None) -> str:
    if method != "PATCH":
        return "application/json"
    return "application/apply-patch+yaml" if params else "application/merge-patch+json"


async def _error(answer: aiohttp.ClientResponse) -> ApiError:
    """The server's own words, if it has some."""
    try:
        said = json.loads(await answer.text())
        return ApiError(answer.status, str(said.get("reason", "")), str(said.get("message", "")))
    except (ValueError, AttributeError):
        return ApiError(answer.status, answer.reason or "", f"the API server answered {answer.status}")
