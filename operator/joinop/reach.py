"""How is a driver's HTTP reached? In clear and by everybody, or, where the chart says so, by TLS and with the job's token.

    jobs.http.tlsSecret   a Secret in the namespace of each job: the driver has tls.crt and tls.key, we check by ca.crt

The certificate is that of the driver's Service, JOB-driver.NAMESPACE.svc, though its pod is dialled. What a Secret says is
believed for a minute.
"""

import base64
import ssl
import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from joinop import names
from joinop.api import Api, ApiError
from joinop.kinds import SECRET
from joinop.names import Object

_BELIEVED_S = 60.0


@dataclass
class Reach:
    """Of all drivers. `secret`: the name that the chart gives; None: in clear."""

    api: Api | None = None
    secret: str | None = None
    _known: dict[tuple[str, str], tuple[float, dict[str, str]]] = field(default_factory=dict)

    @property
    def scheme(self) -> str:
        return "https" if self.secret else "http"

    async def options(self, pod: Object) -> dict[str, Any]:
        """What a request to this driver needs, as aiohttp names it. ValueError where a Secret does not have it."""
        if self.secret is None:
            return {}
        metadata = pod["metadata"]
        namespace, job = metadata["namespace"], metadata["labels"][names.INSTANCE]
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
            thing = await self.api.get(SECRET, namespace, name) or {}
        except ApiError as error:
            raise ValueError(f"the Secret {name} cannot be read: {error}") from error
        found = {key: base64.b64decode(value).decode() for key, value in (thing.get("data") or {}).items()}
        now = time.monotonic()
        fresh = {key: kept for key, kept in self._known.items() if now - kept[0] < _BELIEVED_S}
        self._known = fresh | {(namespace, name): (now, found)}
        return found


@lru_cache(maxsize=64)
def _trusting(authority: str) -> ssl.SSLContext:
    """One for all drivers of an authority: connections are kept by it."""
    try:
        return ssl.create_default_context(cadata=authority)
    except ssl.SSLError as error:
        raise ValueError(f"ca.crt is no certificate: {error}") from error
