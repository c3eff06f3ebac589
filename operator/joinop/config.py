"""What is the operator told by its environment?"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEFAULT_IMAGE = "streamjoin:latest"


@dataclass(frozen=True)
class Config:
    """Settings of the operator; the defaults fit a cluster."""

    image: str = DEFAULT_IMAGE  # of jobs that name none
    pull_policy: str = "IfNotPresent"
    namespaces: tuple[str, ...] = ()  # none: all
    cpu_request: str | None = None  # of driver and executors; None: the cores of the spec
    http_secret: str | None = None  # with the certificate of drivers' HTTP; None: it is in clear
    port: int = 8080  # of /healthz and /metrics
    workers: int = 8  # jobs looked at side by side
    resync_s: float = 30.0
    poll_s: float = 5.0
    stale_s: float = 30.0  # a driver that was silent for so long has no figures
    prometheus: str | None = None  # URL; None: drivers are asked for their figures
    prometheus_token: Path | None = None  # file
    prometheus_ca: Path | None = None  # file
    figures_s: float = 10.0  # figures alone are written to the status this often at most

    @staticmethod
    def of(environment: Mapping[str, str]) -> "Config":
        """From JOINOP_… variables."""
        given = {
            name: value for name, value in environment.items() if name.startswith("JOINOP_") and value.strip()
        }
        return Config(
            image=given.get("JOINOP_IMAGE", DEFAULT_IMAGE),
            pull_policy=given.get("JOINOP_IMAGE_PULL_POLICY", "IfNotPresent"),
            namespaces=tuple(filter(None, map(str.strip, given.get("JOINOP_NAMESPACES", "").split(",")))),
            cpu_request=given.get("JOINOP_CPU_REQUEST"),
            http_secret=given.get("JOINOP_HTTP_TLS_SECRET"),
            port=int(given.get("JOINOP_PORT", "8080")),
            prometheus=given.get("JOINOP_PROMETHEUS_URL"),
            prometheus_token=_file(given.get("JOINOP_PROMETHEUS_TOKEN_FILE")),
            prometheus_ca=_file(given.get("JOINOP_PROMETHEUS_CA_FILE")),
        )


def _file(path: str | None) -> Path | None:
    return Path(path) if path else None
