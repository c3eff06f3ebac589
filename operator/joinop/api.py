"""The API server, through the official client: the few requests that the operator makes, each safe to
repeat.

Writing is server-side apply with a field manager of our own: fields that others set are left alone, and
fields that are no longer asked for are removed.

Of `kubernetes` this uses the dynamic client: objects stay plain dictionaries. Its generated classes would
turn each of the ten thousand objects of a thousand jobs into a tree of models.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import aiohttp
import orjson
from kubernetes.aio import dynamic
from kubernetes.aio.dynamic.exceptions import DynamicApiError
from tenacity import RetryCallState, retry, retry_if_exception, stop_after_attempt, wait_chain, wait_fixed

from joinlib.deploy import API_VERSION, KIND, MANAGER, Resource
from joinop.credentials import async_client
from joinop.names import Object
from joinop.resources import BY_KIND, EVENT, STREAMJOIN

_ATTEMPTS = 3  # of a request, while the server is busy or cannot be reached
_PAUSES = wait_chain(wait_fixed(0.5), wait_fixed(2.0))  # between them, unless the server says how long
_LONGEST_S = 30.0  # pause that the server may ask for
_PAGE = 500  # objects of a listing in one answer
_APPLY = {"field_manager": MANAGER, "force_conflicts": True}
_MERGE = "application/merge-patch+json"
Verb = Callable[..., Awaitable[Any]]  # of the client
FORBIDDEN, NOT_FOUND, CONFLICT, EXPIRED = 403, 404, 409, 410
_UNREACHABLE = 0
_BUSY = {_UNREACHABLE, 429, 500, 502, 503, 504}
_PARALLEL = 16  # requests at a time


def always() -> None:
    """The check of an operator that has no rival: it may act at any time."""


class ApiError(Exception):
    """The API server refused a request, or could not be reached (status 0)."""

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status, self.reason, self.retry_after_s = status, reason, retry_after_s


def _busy(error: BaseException) -> bool:
    return isinstance(error, ApiError) and error.status in _BUSY


def _wait_s(state: RetryCallState) -> float:
    error = state.outcome and state.outcome.exception()
    return error.retry_after_s if isinstance(error, ApiError) and error.retry_after_s else _PAUSES(state)


@dataclass(frozen=True)
class Listing:
    """All objects of a resource, with the kind written into each, as of a version."""

    items: list[Object]
    version: int


class Api:
    """A session with the API server.

    Args:
        client: connected to it.
        check: called right before each request that changes something.
        parallel: requests at a time.
        timeout_s: of one request.
    """

    def __init__(
        self,
        client: dynamic.DynamicClient,
        check: Callable[[], None] = always,
        parallel: int = _PARALLEL,
        timeout_s: float = 30.0,
    ) -> None:
        self._client, self._check = client, check
        self._gate = asyncio.Semaphore(parallel)
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)

    @staticmethod
    async def connected(check: Callable[[], None] = always) -> "Api":
        """A session with the API server that the environment names."""
        return Api(await async_client(_PARALLEL), check)

    async def close(self) -> None:
        await self._client.client.close()

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Object | None:
        """The object; None if there is none."""
        try:
            found: Object = await self._read(
                self._client.get, _known(resource), name=name, namespace=namespace
            )
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise
        return found

    async def events(self, namespace: str, kind: str, name: str) -> list[Object]:
        """The events of an object, of the last hour."""
        chosen = f"involvedObject.kind={kind},involvedObject.name={name}"
        answer = await self._read(self._client.get, _known(EVENT), namespace=namespace, field_selector=chosen)
        found: list[Object] = answer["items"]
        return found

    async def list(
        self, resource: Resource, namespace: str | None, selector: str = "", *, cached: bool = False
    ) -> Listing:
        """All objects of a resource, a page at a time.

        `cached`: from the API server's memory, which may be a little old.
        """
        query: dict[str, Any] = {"namespace": namespace, "limit": _PAGE}
        query |= {"resource_version": "0"} if cached else {}
        query |= {"label_selector": selector} if selector else {}
        try:
            return await self._pages(resource, query)
        except ApiError as error:
            if error.status != EXPIRED:
                raise
        del query["limit"]  # the server has forgotten the version of the first page
        return await self._pages(resource, query)

    async def _pages(self, resource: Resource, query: dict[str, Any]) -> Listing:
        page = await self._read(self._client.get, _known(resource), **query)
        found, version = page["items"], page["metadata"]["resourceVersion"]
        following = {name: value for name, value in query.items() if name != "resource_version"}
        while token := page["metadata"].get("continue"):  # which names the version of the first page
            page = await self._read(self._client.get, _known(resource), **following, _continue=token)
            found += page["items"]
        items = [{**item, "kind": resource.kind, "apiVersion": resource.api_version} for item in found]
        return Listing(items, int(version))

    async def serves(self, resource: Resource) -> bool:
        """Does the cluster have this resource?"""
        try:
            found = await self._read(self._client.request, "get", resource.root)
        except ApiError as error:
            if error.status == NOT_FOUND:
                return False
            raise
        return any(item["name"] == resource.plural for item in found["resources"])

    async def apply(self, obj: Object) -> Object:
        """Make the object as it is given, whether it exists or not."""
        found: Object = await self._write(
            self._client.server_side_apply, _known(BY_KIND[obj["kind"]]), body=obj, **_APPLY
        )
        return found

    async def apply_status(self, namespace: str, name: str, status: Object) -> Object:
        """Make this the whole status of a StreamJoin, as far as it is ours."""
        body = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": name, "namespace": namespace},
            "status": status,
        }
        below = _known(STREAMJOIN).subresources["status"]
        found: Object = await self._write(self._client.server_side_apply, below, body=body, **_APPLY)
        return found

    async def create(self, obj: Object) -> bool:
        """Create the object unless there is one of its name; whether it was created."""
        try:
            await self._write(self._client.create, _known(BY_KIND[obj["kind"]]), body=obj)
        except ApiError as error:
            if error.status == CONFLICT:
                return False
            raise
        return True

    async def repeat_event(self, event: Object) -> None:
        """Note that an event happened again; how often is not counted."""
        body = {"lastTimestamp": event["lastTimestamp"]}
        await self._write(self._client.patch, _known(EVENT), body=body, content_type=_MERGE, **_where(event))

    async def delete(self, obj: Object, *, at_once: bool = False) -> None:
        """Delete this very object, not a later one of its name.

        `at_once`: without waiting for a pod's node.
        """
        body: Object = {"preconditions": {"uid": obj["metadata"]["uid"]}}
        if at_once:
            body["gracePeriodSeconds"] = 0
        try:
            await self._write(self._client.delete, _known(BY_KIND[obj["kind"]]), body=body, **_where(obj))
        except ApiError as error:
            if error.status not in (NOT_FOUND, CONFLICT):
                raise

    async def _read(self, verb: Verb, *what: Any, **query: Any) -> Any:
        return await self._send(always, verb, *what, **query)

    async def _write(self, verb: Verb, *what: Any, **query: Any) -> Any:
        return await self._send(self._check, verb, *what, **query)

    @retry(retry=retry_if_exception(_busy), stop=stop_after_attempt(_ATTEMPTS), wait=_wait_s, reraise=True)
    async def _send(self, check: Callable[[], None], verb: Verb, *what: Any, **query: Any) -> Any:
        """Send a request, and repeat it while the server is busy or cannot be reached."""
        async with self._gate:
            check()
            try:
                answer = await verb(*what, serialize=False, _request_timeout=self._timeout, **query)
                return _loaded(await answer.read())
            except DynamicApiError as error:
                raise _refusal(error) from error
            except (aiohttp.ClientError, TimeoutError) as error:
                message = f"the API server cannot be reached: {str(error) or type(error).__name__}"
                raise ApiError(_UNREACHABLE, "Unreachable", message) from error


@cache
def _known(resource: Resource) -> dynamic.Resource:
    """The resource as the client has it: what discovery would find."""
    status = {"kind": resource.kind, "name": f"{resource.plural}/status", "namespaced": True}
    return dynamic.Resource(**resource.known, subresources={"status": status})


def _where(obj: Object) -> dict[str, str]:
    metadata = obj["metadata"]
    return {"name": metadata["name"], "namespace": metadata["namespace"]}


def _loaded(text: bytes) -> Any:
    """Read JSON, also that of an object that is nested deeper than orjson takes."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


def _refusal(error: DynamicApiError) -> ApiError:
    """With the server's own message, if it has one."""
    pause_s = _pause_s((error.headers or {}).get("Retry-After", ""))
    try:
        said = json.loads(error.body or "")
        return ApiError(error.status, str(said.get("reason", "")), str(said.get("message", "")), pause_s)
    except (ValueError, TypeError, AttributeError):
        message = f"the API server answered {error.status}"
        return ApiError(error.status, error.reason or "", message, pause_s)


def _pause_s(header: str) -> float | None:
    """What Retry-After asks for; the API server writes seconds."""
    return min(float(header), _LONGEST_S) if header.isdecimal() else None
