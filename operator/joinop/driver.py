"""What does a driver say, and how is it told a number of executors? Its HTTP endpoint, at the IP of its pod."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import aiohttp

from joinlib.scale import Load
from joinop import measure
from joinop.api import anybody
from joinop.body import whole
from joinop.build.workload import PORTS
from joinop.names import Object
from joinop.reach import Reach
from joinop.reading import Reading

_TIMEOUT_S = 4.0
_BODY_MAX = 256 * 1024
_METRICS_MAX = 16 << 20
_SIDE_BY_SIDE = 32


class Drivers:
    """A session with all drivers. Their answers are not trusted: size and shape are checked.

    `check` is called right before a driver is told something.
    """

    def __init__(
        self, port: int = PORTS["http"], check: Callable[[], None] = anybody, reach: Reach | None = None
    ) -> None:
        self._port, self._check, self._reach = port, check, reach or Reach()
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S))
        self._gate = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def close(self) -> None:
        await self._session.close()

    async def read(self, pod: Object) -> Reading:
        """The driver's status, or the reason why there is none. Never raises."""
        url = self._url(pod, "/v1/status")
        if url is None:
            return Reading(time.monotonic(), error="the pod has no IP")
        try:
            options = await self._reach.options(pod)
            async with self._gate, self._session.get(url, **options) as answer:
                answer.raise_for_status()
                body = await _json(answer)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return Reading(time.monotonic(), error=str(error) or type(error).__name__)
        return Reading(time.monotonic(), body=body)

    async def load(self, pod: Object) -> Load | str:
        """What its executors hold, by its /metrics, or why that is not known. Never raises."""
        url = self._url(pod, "/metrics")
        if url is None:
            return "the driver's pod has no IP"
        try:
            options = await self._reach.options(pod)
            async with self._gate, self._session.get(url, **options) as answer:
                answer.raise_for_status()
                text = await whole(answer, _METRICS_MAX)
            return measure.load(measure.of_text(text.decode()))
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return f"the driver cannot be asked: {str(error) or type(error).__name__}"

    async def ask(self, pod: Object, executors: int, token: str) -> str:
        """Ask for a number of executors; why it was not heard, or nothing."""
        url = self._url(pod, "/v1/executors")
        if url is None:
            return "the driver's pod has no IP"
        try:
            options = await self._reach.options(pod) | {"headers": {"Authorization": f"Bearer {token}"}}
            async with self._gate:
                self._check()
                async with self._session.post(url, json={"total": executors}, **options) as answer:
                    if answer.ok:
                        return ""
                    said = (await answer.content.read(500)).decode(errors="replace").strip()
                    return f"the driver does not take {executors} executors yet ({answer.status}): {said}"
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return f"the driver does not answer: {str(error) or type(error).__name__}"

    def _url(self, pod: Object, path: str) -> str | None:
        address = pod.get("status", {}).get("podIP")
        host = f"[{address}]" if ":" in (address or "") else address
        return f"{self._reach.scheme}://{host}:{self._port}{path}" if address else None


async def _json(answer: aiohttp.ClientResponse) -> dict[str, Any]:
    found = await whole(answer, _BODY_MAX)
    body = json.loads(found)
    if not isinstance(body, dict):
        msg = "the answer is no JSON object"
        raise ValueError(msg)  # noqa: TRY004  callers collect ValueError
    return body
