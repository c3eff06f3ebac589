"""Where does a driver run, and with what? Read once from the environment, as the operator sets it."""

import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from joinlib.errors import SpecError
from joinlib.spark.cluster import Place, Pod


@dataclass(frozen=True)
class Surroundings:
    """Of one driver. Without a place it runs on this machine alone, and needs no Lease."""

    place: Place | None
    owner: str | None  # uid of the StreamJoin
    token_file: Path | None
    tls: Path | None  # folder with tls.crt and tls.key: HTTP is encrypted then, and for who knows the token
    termination_log: Path
    port: int
    config_hash: str | None

    def token(self) -> str | None:
        """What whoever changes something must know."""
        try:
            return (self.token_file.read_text().strip() or None) if self.token_file else None
        except OSError:
            return None


def surroundings(env: Mapping[str, str]) -> Surroundings:
    """POD_NAME says that this is a pod; the rest must be there then."""
    token, tls = env.get("STREAMJOIN_TOKEN_FILE"), env.get("STREAMJOIN_TLS_FOLDER")
    return Surroundings(
        place=_place(env) if env.get("POD_NAME") else None,
        owner=env.get("STREAMJOIN_UID"),
        token_file=Path(token) if token else None,
        tls=Path(tls) if tls else None,
        termination_log=Path(env.get("STREAMJOIN_TERMINATION_LOG", "/dev/termination-log")),
        port=int(env.get("STREAMJOIN_PORT", "8080")),
        config_hash=env.get("STREAMJOIN_CONFIG_HASH"),
    )


def _place(env: Mapping[str, str]) -> Place:
    names = (
        "POD_NAME",
        "POD_NAMESPACE",
        "POD_IP",
        "POD_UID",
        "STREAMJOIN_IMAGE",
        "STREAMJOIN_EXECUTOR_TEMPLATE",
        "STREAMJOIN_RPC_FILE",
    )
    if missing := [name for name in names if not env.get(name)]:
        raise SpecError(f"environment: {', '.join(missing)} not set, though POD_NAME says that this is a pod")
    name, namespace, ip, uid, image, template, secret = (env[name] for name in names)
    return Place(
        pod=Pod(name, namespace, ip, uid),
        image=image,
        template=template,
        local=env.get("STREAMJOIN_LOCAL_DIR", "/var/streamjoin"),
        temporary=env.get("TMPDIR") or tempfile.gettempdir(),
        run=uuid.uuid4().hex[:8],
        secret=secret,
        cpu=env.get("STREAMJOIN_CPU_REQUEST"),
    )
