"""The environment of a driver, as the operator sets it: read once, at the start."""

import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jobs.hosts import of_driver
from jobs.spark_conf import ClusterContext, Pod
from joinlib.deploy import LOCAL, PORTS, TERMINATION_LOG, Variable
from joinlib.errors import SpecError


@dataclass(frozen=True)
class DriverEnvironment:
    """The environment of one driver. Without `place` it runs on this machine alone, and needs no Lease."""

    place: ClusterContext | None
    owner: str | None  # uid of the StreamJoin
    token_file: Path | None
    tls: Path | None  # folder with tls.crt and tls.key: then HTTP is encrypted and needs the token
    termination_log: Path
    port: int
    config_hash: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which the driver is asked; none outside of a cluster."""
        return of_driver(self.place.pod.name, self.place.pod.namespace) if self.place else ()

    def token(self) -> str | None:
        """Return the token that requests need to change something, or None if there is none."""
        try:
            return (self.token_file.read_text().strip() or None) if self.token_file else None
        except OSError:
            return None


def driver_environment(env: Mapping[str, str]) -> DriverEnvironment:
    """Read the environment. POD_NAME says that this is a pod; the variables of a pod must be set then.

    Raises:
        SpecError: A variable is missing.
    """
    token, tls = env.get(Variable.TOKEN_FILE), env.get(Variable.TLS_FOLDER)
    return DriverEnvironment(
        place=_place(env) if env.get(Variable.POD_NAME) else None,
        owner=env.get(Variable.UID),
        token_file=Path(token) if token else None,
        tls=Path(tls) if tls else None,
        termination_log=Path(env.get(Variable.TERMINATION_LOG, TERMINATION_LOG)),
        port=int(env.get(Variable.PORT, PORTS["http"])),
        config_hash=env.get(Variable.CONFIG_HASH),
    )


def _place(env: Mapping[str, str]) -> ClusterContext:
    names = (
        Variable.POD_NAME,
        Variable.POD_NAMESPACE,
        Variable.POD_IP,
        Variable.POD_UID,
        Variable.IMAGE,
        Variable.EXECUTOR_TEMPLATE,
        Variable.RPC_FILE,
    )
    if missing := [name for name in names if not env.get(name)]:
        raise SpecError(f"environment: {', '.join(missing)} not set, though POD_NAME says that this is a pod")
    name, namespace, ip, uid, image, template, secret = (env[name] for name in names)
    return ClusterContext(
        pod=Pod(name, namespace, ip, uid),
        image=image,
        template=template,
        local=env.get(Variable.LOCAL_DIR, LOCAL),
        temporary=env.get("TMPDIR") or tempfile.gettempdir(),
        run=uuid.uuid4().hex[:8],
        secret=secret,
        cpu=env.get(Variable.CPU_REQUEST),
    )
