"""Transport to a driver's HTTP: plain and open, or, if the chart says so, TLS with the job's token.

    jobs.http.tlsSecret   a Secret in each job's namespace: the driver's tls.crt and tls.key, and their ca.crt

The certificate names the driver's Service, JOB-driver.NAMESPACE.svc, though the operator connects to its
pod. Secrets are cached for a minute.
"""

import base64
import ssl
import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from joinlib import deploy
from joinop import names
from joinop.api import Api, ApiError
from joinop.names import Object
from joinop.resources import SECRET

_BELIEVED_S = 60.0


@dataclass
class DriverTransport:
    """The transport to all drivers. `secret`: name of the Secret from the chart; None: plain HTTP."""

    api: Api | None = None
    secret: str | None = None
    _known: dict[tuple[str, str], tuple[float, dict[str, str]]] = field(default_factory=dict)

    @property
    def scheme(self) -> str:
        return "https" if self.secret else "http"

    async def options(self, pod: Object) -> dict[str, Any]:
        """Return the options of aiohttp for a request to this driver.

        Raises:
            ValueError: a Secret is missing, or lacks an entry.
        """
        if self.secret is None:
            return {}
        metadata = pod["metadata"]
        namespace, job = metadata["namespace"], metadata["labels"][deploy.INSTANCE]
        authority = await self._entry(namespace, self.secret, "ca.crt")
        token = await self._entry(namespace, names.token(job), "token")
        return {
            "headers": {"Authorization": f"Bearer {token}"},
            "ssl": _trusting(authority),
            "server_hostname": names.host(job, namespace),
        }

    async def _entry(self, namespace: str, name: str, entry: str) -> str:
        found = await self._entries(namespace, name)
        if entry not in found:
            raise ValueError(
                f"the Secret {name} of this namespace has no {entry}; see jobs.http of the chart"
            )
        return found[entry]

    async def _entries(self, namespace: str, name: str) -> dict[str, str]:
        at, known = self._known.get((namespace, name), (0.0, {}))
        if known and time.monotonic() - at < _BELIEVED_S:
            return known
        assert self.api is not None
        try:
            obj = await self.api.get(SECRET, namespace, name) or {}
        except ApiError as error:
            raise ValueError(f"the Secret {name} cannot be read: {error}") from error
        found = {key: base64.b64decode(value).decode() for key, value in (obj.get("data") or {}).items()}
        now = time.monotonic()
        fresh = {key: memoized for key, memoized in self._known.items() if now - memoized[0] < _BELIEVED_S}
        self._known = fresh | {(namespace, name): (now, found)}
        return found


@lru_cache(maxsize=64)
def _trusting(authority: str) -> ssl.SSLContext:
    """Return one context for all drivers of an authority, because connections are pooled by context."""
    try:
        return ssl.create_default_context(cadata=authority)
    except ssl.SSLError as error:
        raise ValueError(f"ca.crt is not a certificate: {error}") from error
