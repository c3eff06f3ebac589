"""What the driver asks the API server itself: its Lease, and that executors of earlier runs go. Plain HTTPS, with the pod's
service account.
"""

import json
import os
import ssl
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote

from joinlib.lease import ClusterLease, Unreachable, answered
from joinlib.spec.model import StreamJoin

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TIMEOUT_S = 2.5
_GRACE_S = 120.0  # that of an executor, with a margin
_AGAIN_S = 1.0  # how often is looked whether they are gone


@dataclass(frozen=True)
class Server:
    """The API server as a pod reaches it."""

    host: str
    port: int
    account: Path = _ACCOUNT

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Status and JSON. The token is read each time: it is replaced every hour or so."""
        try:
            trust = ssl.create_default_context(cafile=str(self.account / "ca.crt"))
            token = (self.account / "token").read_text().strip()
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            text = json.dumps(body) if body is not None else None
            with closing(
                HTTPSConnection(self.host, self.port, timeout=_TIMEOUT_S, context=trust)
            ) as connection:
                connection.request(method, path, text, headers)
                answer = connection.getresponse()
                return answer.status, json.loads(answer.read() or b"{}")
        except (OSError, HTTPException, ValueError) as error:
            raise Unreachable(f"API server: {error}") from error


def server() -> Server:
    """That of the cluster this pod runs in."""
    return Server(
        os.environ.get("KUBERNETES_SERVICE_HOST", "kubernetes.default.svc"),
        int(os.environ.get("KUBERNETES_SERVICE_PORT", "443")),
    )


def clear_executors(
    document: StreamJoin,
    namespace: str,
    stopping: Callable[[float], bool],
    api: Server | None = None,
) -> bool:
    """Deletes the executors of earlier runs, and returns when they are gone: of a pod that stays, they would stay too,
    and might write what a driver before us had asked for. Executors have a grace; beyond it their node is lost, and
    they go without its word: whatever they still do is of a driver that may no longer commit. False if `stopping`, which
    waits for so many seconds, says so first.
    """
    api = api or server()
    chosen = ",".join(f"{key}={value}" for key, value in _labels(document.metadata.name, "executor").items())
    path = f"/api/v1/namespaces/{namespace}/pods?labelSelector={quote(chosen)}"
    answered(*api.call("DELETE", path))
    for _ in range(round(_GRACE_S / _AGAIN_S)):
        if not answered(*api.call("GET", path)).get("items"):
            return True
        if stopping(_AGAIN_S):
            return False
    answered(*api.call("DELETE", f"{path}&gracePeriodSeconds=0"))
    return True


def _labels(name: str, component: str) -> dict[str, str]:
    """Labels of what belongs to a job, as the operator sets them."""
    label = "app.kubernetes.io/"
    return {label + "name": "streamjoin", label + "instance": name, label + "component": component}


def lease_of(document: StreamJoin, namespace: str, owner: str | None) -> ClusterLease:
    """The Lease of a job's driver. `owner`: uid of the StreamJoin, with which it goes."""
    name = document.metadata.name
    kind = {"apiVersion": document.api_version, "kind": document.kind}
    owners = [{**kind, "name": name, "uid": owner}] if owner else []
    return ClusterLease(
        server(), namespace, f"{name}-driver", {"labels": _labels(name, "driver"), "ownerReferences": owners}
    )
