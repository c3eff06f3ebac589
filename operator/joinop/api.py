"""The API server, over HTTP: the few requests that the operator makes, each safe to make again.

Writing is server-side apply with our own field manager: what others set is left alone, what we no longer ask for goes.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from joinop import login
from joinop.kinds import BY_NAME, EVENT, STREAMJOIN, Kind
from joinop.names import API_VERSION, KIND, MANAGER, Object

_APPLY = {"fieldManager": MANAGER, "force": "true"}
_FRESH_S = 60.0  # credentials are read again after this
_PAUSES_S = (0.5, 2.0)  # before asking again when the server is busy, unless it says how long
_LONGEST_S = 30.0  # pause that the server may ask for
_BUSY = {429, 500, 502, 503, 504}
_PAGE = 500  # objects of a listing in one answer
FORBIDDEN, NOT_FOUND, CONFLICT, EXPIRED = 403, 404, 409, 410


def anybody() -> None:
    """May act: there is no other operator."""


class ApiError(Exception):
    """The API server said no."""

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status, self.reason, self.retry_after_s = status, reason, retry_after_s


@dataclass(frozen=True)
class Listing:
    """All objects of a kind, with the kind written into each, as of a version."""

    items: list[Object]
    version: int


class Api:
    """A session with the API server. `check` is called right before each request that changes something."""

    def __init__(
        self, check: Callable[[], None] = anybody, parallel: int = 16, timeout_s: float = 30.0
    ) -> None:
        self._check = check
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

    async def list(
        self, kind: Kind, namespace: str | None, selector: str = "", *, cached: bool = False
    ) -> Listing:
        """All objects of a kind, a page at a time. `cached`: what the API server has in memory, which may be a little old."""
        asked = {"limit": str(_PAGE)} | ({"resourceVersion": "0"} if cached else {})
        asked |= {"labelSelector": selector} if selector else {}
        try:
            return await self._pages(kind, kind.path(namespace), asked)
        except ApiError as error:
            if error.status != EXPIRED:
                raise
        del asked["limit"]  # the server has forgotten the version of the first page
        return await self._pages(kind, kind.path(namespace), asked)

    async def _pages(self, kind: Kind, path: str, asked: Mapping[str, str]) -> Listing:
        page = await self._ask("GET", path, asked)
        found, version = page["items"], page["metadata"]["resourceVersion"]
        while token := page["metadata"].get("continue"):
            page = await self._ask("GET", path, _more(asked, token))
            found += page["items"]
        items = [{**item, "kind": kind.kind, "apiVersion": kind.api_version} for item in found]
        return Listing(items, int(version))

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
                pause_s = error.retry_after_s or pause_s
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
        async with self._gate:
            if method != "GET":
                self._check()
            async with self._session.request(
                method, url, params=params, data=data, headers=headers
            ) as answer:
                if answer.status < 400:
                    return await answer.json()
                raise await _error(answer)

    def _headers(self) -> dict[str, str]:
        if time.monotonic() - self._read_at > _FRESH_S:
            self._info, self._read_at = login.connection(), time.monotonic()
        return dict(self._info.as_http_headers())


def _more(asked: Mapping[str, str], token: str) -> dict[str, str]:
    """The next page: of the version of the first one, which the token names."""
    return {name: value for name, value in asked.items() if name != "resourceVersion"} | {"continue": token}


def _content(method: str, params: Mapping[str, str] | None) -> str:
    if method != "PATCH":
        return "application/json"
    return "application/apply-patch+yaml" if params else "application/merge-patch+json"


async def _error(answer: aiohttp.ClientResponse) -> ApiError:
    """The server's own words, if it has some."""
    pause_s = _pause_s(answer.headers.get("Retry-After", ""))
    try:
        said = json.loads(await answer.text())
        return ApiError(answer.status, str(said.get("reason", "")), str(said.get("message", "")), pause_s)
    except (ValueError, AttributeError):
        message = f"the API server answered {answer.status}"
        return ApiError(answer.status, answer.reason or "", message, pause_s)


def _pause_s(said: str) -> float | None:
    """What Retry-After asks for; the API server says seconds."""
    return min(float(said), _LONGEST_S) if said.isdecimal() else None
