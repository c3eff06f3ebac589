"""HTTP client of drivers: their status, their metrics, and the number of executors that is requested from
them.
"""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import aiohttp

from joinlib.deploy import PORTS
from joinlib.scale import ExecutorRequest, Load
from joinop import load_metrics
from joinop.api import always
from joinop.bounded_read import read_bounded
from joinop.names import Object
from joinop.scrape import Scrape
from joinop.transport import DriverTransport

_TIMEOUT_S = 4.0
_BODY_MAX = 256 * 1024
_METRICS_MAX = 16 << 20
_SIDE_BY_SIDE = 32


class DriverClient:
    """A session with all drivers, at the IPs of their pods.

    Their answers are not trusted: size and shape are checked.

    `check` is called right before a driver is asked to change something.
    """

    def __init__(
        self,
        port: int = PORTS["http"],
        check: Callable[[], None] = always,
        reach: DriverTransport | None = None,
    ) -> None:
        self._port, self._check, self._reach = port, check, reach or DriverTransport()
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S))
        self._gate = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def close(self) -> None:
        await self._session.close()

    async def status(self, pod: Object) -> Scrape:
        """Return the driver's status, or the reason why it is unknown. Never raises."""
        url = self._url(pod, "/v1/status")
        if url is None:
            return Scrape(time.monotonic(), error="the pod has no IP")
        try:
            options = await self._reach.options(pod)
            async with self._gate, self._session.get(url, **options) as response:
                response.raise_for_status()
                body = await _json(response)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return Scrape(time.monotonic(), error=str(error) or type(error).__name__)
        return Scrape(time.monotonic(), body=body)

    async def load(self, pod: Object) -> Load | str:
        """Return the load of its executors from /metrics, or the reason why it is unknown. Never raises."""
        url = self._url(pod, "/metrics")
        if url is None:
            return "the driver's pod has no IP"
        try:
            options = await self._reach.options(pod)
            async with self._gate, self._session.get(url, **options) as response:
                response.raise_for_status()
                text = await read_bounded(response, _METRICS_MAX)
            return load_metrics.load(load_metrics.from_text(text.decode()))
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return f"the driver cannot be reached: {str(error) or type(error).__name__}"

    async def request_executors(self, pod: Object, asked: ExecutorRequest, token: str) -> str:
        """Request a number of executors, and say why. Returns why the driver has not accepted it; empty if it has."""
        url = self._url(pod, "/v1/executors")
        if url is None:
            return "the driver's pod has no IP"
        try:
            options = await self._reach.options(pod) | {"headers": {"Authorization": f"Bearer {token}"}}
            async with self._gate:
                self._check()
                async with self._session.post(url, json=asdict(asked), **options) as response:
                    if response.ok:
                        return ""
                    said = (await response.content.read(500)).decode(errors="replace").strip()
                    return f"the driver does not take {asked.total} executors yet ({response.status}): {said}"
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return f"the driver does not answer: {str(error) or type(error).__name__}"

    def _url(self, pod: Object, path: str) -> str | None:
        address = pod.get("status", {}).get("podIP")
        host = f"[{address}]" if ":" in (address or "") else address
        return f"{self._reach.scheme}://{host}:{self._port}{path}" if address else None


async def _json(response: aiohttp.ClientResponse) -> dict[str, Any]:
    found = await read_bounded(response, _BODY_MAX)
    body = json.loads(found)
    if not isinstance(body, dict):
        msg = "the answer is not a JSON object"
        raise ValueError(msg)  # noqa: TRY004  callers collect ValueError
    return body
