"""Read a job's metrics from Prometheus, by one query. Any server with its HTTP API will do.

Token and certificate are files, as of a mounted Secret. They are read for each query, because they may be
replaced, and each may be missing.
"""

import ssl
import time
from email.utils import parsedate_to_datetime
from pathlib import Path

import aiohttp
import orjson

from joinlib.scale import Load
from joinop import load_metrics
from joinop.bounded_read import read_bounded
from joinop.names import JobKey

_TIMEOUT_S = 10.0
_BODY_MAX = 1 << 20  # ten series for each driver of the last minutes


class Prometheus:
    """A session with one server. Its answers are not trusted: size and shape are checked."""

    def __init__(self, url: str, token: Path | None = None, ca: Path | None = None) -> None:
        self._url, self._token, self._ca = url.rstrip("/") + "/api/v1/query", token, ca
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S))

    async def close(self) -> None:
        await self._session.close()

    async def load(self, job: JobKey, fresh_s: float) -> Load | str:
        """Return the load of a job's executors from a scrape that is recent enough, or why it is unknown.

        Never raises.
        """
        try:
            answer, now = await self._ask(load_metrics.query(job))
            figures = load_metrics.from_prometheus(answer)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return f"Prometheus cannot be queried: {str(error) or type(error).__name__}"
        at = figures.get("at")
        if at is None:
            return (
                "Prometheus has no figures of this job: it must scrape its driver, with the labels namespace"
                " and streamjoin"
            )
        if now - at > fresh_s:
            return f"Prometheus' figures are {now - at:.0f} s old: it must scrape every {fresh_s / 2:.0f} s"
        return load_metrics.load(figures)

    async def _ask(self, query: str) -> tuple[dict[str, object], float]:
        """Return the answer and the server's time."""
        token = self._token.read_text().strip() if self._token and self._token.exists() else ""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        tls = ssl.create_default_context(cafile=self._ca) if self._ca and self._ca.exists() else True
        async with self._session.post(self._url, data={"query": query}, headers=headers, ssl=tls) as answer:
            said = await read_bounded(answer, _BODY_MAX)
            if answer.status >= 500 or (answer.status >= 400 and not _json(said)):
                answer.raise_for_status()
            return _json(said), _time(answer.headers.get("Date"))


def _json(text: bytes) -> dict[str, object]:
    try:
        found = orjson.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _time(date: str | None) -> float:
    """Return the server's time if it says it: its clock dated the samples."""
    try:
        return parsedate_to_datetime(date).timestamp() if date else time.time()
    except (TypeError, ValueError):
        return time.time()
