"""What the pods of driver and executors share: security context, folders, volumes, variables."""

from joinlib.deploy import HOME, LOCAL, RPC_FOLDER, TEMPORARY, USER, Variable
from joinlib.spec.model import Spec, Volume
from joinop.names import Object

_FOLDERS = {"local": LOCAL, "home": HOME, "temporary": TEMPORARY}
RPC_MOUNT = {"name": "rpc", "mountPath": RPC_FOLDER, "readOnly": True}


def pod_security() -> Object:
    """Return what the restricted Pod Security Standard requires of a pod.

    The group owns the files of claims.
    """
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> Object:
    """Return what it requires of a container."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def folders() -> dict[str, str]:
    """Return the variables that name the writable folders."""
    return {"HOME": HOME, "TMPDIR": TEMPORARY, Variable.LOCAL_DIR: LOCAL}


def variables(values: dict[str, str]) -> list[Object]:
    return [{"name": name, "value": value} for name, value in values.items()]


def secrets(spec: Spec) -> list[Object]:
    """Return the spec's variables: only names of Secrets, whose values the kubelet reads."""
    return [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": entry.secret, "key": entry.key}}}
        for name, entry in sorted(spec.env.items())
    ]


def volumes(spec: Spec, storage: str | None = None) -> list[Object]:
    """Return the pod's own volumes and those of the spec. `storage`: size limit of the volume of indexes."""
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
    """Return a volume of a Secret. Its files belong to the group of `pod_security`."""
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
