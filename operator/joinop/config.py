"""Settings of the operator, from its environment."""

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from joinlib.spec.pods import Pods
from joinop.allow import Allow

DEFAULT_IMAGE = "streamjoin:latest"


@dataclass(frozen=True)
class Config:
    """Settings of the operator; the defaults fit a cluster."""

    image: str = DEFAULT_IMAGE  # of jobs whose spec names none
    pull_policy: str = "IfNotPresent"
    namespaces: tuple[str, ...] = ()  # empty: all
    cpu_request: str | None = None  # of driver and executors; None: the cores of the spec
    pods: Pods = field(default_factory=Pods)  # what a spec leaves out
    node_loss_s: int = 30  # how long pods stay bound to a lost node
    http_secret: str | None = None  # Secret with the certificate of drivers' HTTP; None: plain HTTP
    port: int = 8080  # of /healthz and /metrics
    webhook: Path | None = (
        None  # folder with tls.crt and tls.key of the admission webhook; None: there is none
    )
    webhook_port: int = 8443
    lease: str | None = None  # NAMESPACE/NAME: only its holder acts; None: this is the only operator
    identity: str = ""  # this operator's name in the Lease
    workers: int = 8  # jobs reconciled concurrently
    resync_s: float = 600.0
    round_s: float = 30.0
    poll_s: float = 5.0
    stale_s: float = 30.0  # the last scrape of a silent driver is used for this long
    prometheus: str | None = None  # URL; None: drivers are asked for their figures
    prometheus_token: Path | None = None  # file
    prometheus_ca: Path | None = None  # file
    figures_s: float = 10.0  # pause between status updates of one job that change figures only
    allow: Allow = field(default_factory=Allow)  # what authors of StreamJoins may name
    scrapers: tuple[Any, ...] = ()  # peers, as in a NetworkPolicy, that may read the drivers' figures
    namespace: str | None = None  # the operator's own; None: it runs outside the cluster
    figures_rate: float = 20.0  # such updates of all jobs together, per second

    @staticmethod
    def of(environment: Mapping[str, str]) -> "Config":
        """Read the JOINOP_… variables."""
        given = {
            name: value for name, value in environment.items() if name.startswith("JOINOP_") and value.strip()
        }
        return Config(
            image=given.get("JOINOP_IMAGE", DEFAULT_IMAGE),
            pull_policy=given.get("JOINOP_IMAGE_PULL_POLICY", "IfNotPresent"),
            namespaces=tuple(filter(None, map(str.strip, given.get("JOINOP_NAMESPACES", "").split(",")))),
            cpu_request=given.get("JOINOP_CPU_REQUEST"),
            pods=Pods.model_validate_json(given.get("JOINOP_PODS", "{}")),
            node_loss_s=int(given.get("JOINOP_NODE_LOSS_SECONDS", "30")),
            http_secret=given.get("JOINOP_HTTP_TLS_SECRET"),
            port=int(given.get("JOINOP_PORT", "8080")),
            webhook=_file(given.get("JOINOP_WEBHOOK_TLS")),
            webhook_port=int(given.get("JOINOP_WEBHOOK_PORT", "8443")),
            lease=given.get("JOINOP_LEASE"),
            identity=given.get("JOINOP_POD") or f"{socket.gethostname()}-{os.getpid()}",
            prometheus=given.get("JOINOP_PROMETHEUS_URL"),
            prometheus_token=_file(given.get("JOINOP_PROMETHEUS_TOKEN_FILE")),
            prometheus_ca=_file(given.get("JOINOP_PROMETHEUS_CA_FILE")),
            allow=Allow.of(json.loads(given.get("JOINOP_ALLOW", "{}"))),
            scrapers=tuple(json.loads(given.get("JOINOP_SCRAPERS", "[]"))),
            namespace=given.get("JOINOP_NAMESPACE"),
        )


def _file(path: str | None) -> Path | None:
    return Path(path) if path else None
