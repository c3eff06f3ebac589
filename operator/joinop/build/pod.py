"""What do the driver's and the executors' pods have in common? Security context, folders; volumes and variables of the spec."""

from joinlib.spec.model import Spec, Volume
from joinop.names import Object

USER = 185
LOCAL, HOME, TEMPORARY = "/var/streamjoin", "/home/streamjoin", "/tmp"  # noqa: S108  a folder of the pod's own
SPEC_FOLDER, TOKEN_FOLDER = "/etc/streamjoin", "/etc/streamjoin-token"
RPC_FOLDER, TLS_FOLDER = "/etc/streamjoin-rpc", "/etc/streamjoin-tls"
GRACE_S = 90
_FOLDERS = {"local": LOCAL, "home": HOME, "temporary": TEMPORARY}
RPC_MOUNT = {"name": "rpc", "mountPath": RPC_FOLDER, "readOnly": True}


def pod_security() -> Object:
    """What the restricted Pod Security Standard asks of a pod. The group owns what claims hold."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> Object:
    """What it asks of a container."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def folders() -> dict[str, str]:
    """Environment that names the folders that can be written."""
    return {"HOME": HOME, "TMPDIR": TEMPORARY, "STREAMJOIN_LOCAL_DIR": LOCAL}


def variables(values: dict[str, str]) -> list[Object]:
    return [{"name": name, "value": value} for name, value in values.items()]


def secrets(spec: Spec) -> list[Object]:
    """The spec's variables: names of Secrets only, values are read by whoever starts the pod."""
    return [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": entry.secret, "key": entry.key}}}
        for name, entry in sorted(spec.env.items())
    ]


def volumes(spec: Spec, storage: str | None = None) -> list[Object]:
    """Folders of the pod's own, then those of the spec. `storage`: what that of the indexes may hold."""
    own: list[Object] = [{"name": name, "emptyDir": {}} for name in _FOLDERS]
    if storage is not None:
        own[0]["emptyDir"] = {"sizeLimit": storage}
    return own + [
        {"name": f"volume-{number}", **_source(volume)} for number, volume in enumerate(spec.volumes)
    ]


def mounts(spec: Spec) -> list[Object]:
    own = [{"name": name, "mountPath": path} for name, path in _FOLDERS.items()]
    return own + [_mount(number, volume) for number, volume in enumerate(spec.volumes)]


def secret(name: str) -> Object:
    """What a volume of a Secret holds: files that are the group's, see `pod_security`."""
    return {"secret": {"secretName": name, "defaultMode": 0o440}}


def _source(volume: Volume) -> Object:
    if volume.claim is not None:
        return {"persistentVolumeClaim": {"claimName": volume.claim}}
    if volume.secret is not None:
        return secret(volume.secret)
    return {"hostPath": {"path": volume.host_path, "type": "Directory"}}


def _mount(number: int, volume: Volume) -> Object:
    mount: Object = {"name": f"volume-{number}", "mountPath": volume.mount_path}
    return mount | ({} if volume.written else {"readOnly": True})
