"""By which names a server without a login may be asked: addresses, localhost, and names that are its own.

A page of elsewhere can lead its own name to this machine, where a server or `kubectl port-forward` listens; the browser
of whoever looks at it would then ask in that name, and let the page read the answer. Nobody can do so with an address.
"""

import ipaddress
import re
from collections.abc import Collection

from aiohttp import web

_HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(?::\d+)?")


def check_host(request: web.Request, names: Collection[str] = ()) -> None:
    """Refuse a request in a name that is not among these, which are in lower case."""
    found = _HOST.fullmatch(request.host.lower())
    host = found[1].strip("[]").removesuffix(".") if found else ""
    if host != "localhost" and host not in names and not _is_address(host):
        own = "".join(f", or as {name}" for name in names)
        raise web.HTTPForbidden(text=f"ask by an address, as localhost{own}\n")


def of_driver(pod: str, namespace: str) -> tuple[str, ...]:
    """Return the names of a driver's pod and Service.

    One of two parts is not among them: where a namespace is called like a top-level domain, somebody may own it.
    """
    service = pod.rpartition("-")[0]
    whole = (f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local")
    return (pod, service, *whole, *(f"{pod}.{name}" for name in whole))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
