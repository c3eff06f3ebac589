"""What is everything called? Names, labels and owner references of the objects of one StreamJoin."""

from collections.abc import Mapping
from typing import Any, NamedTuple

Object = dict[str, Any]

GROUP, VERSION, KIND, PLURAL = "streamjoin.dev", "v1alpha1", "StreamJoin", "streamjoins"
API_VERSION = f"{GROUP}/{VERSION}"
MANAGER = "streamjoin-operator"  # field manager, and value of the label managed-by
NAME_MAX = 40  # what is added to it must still be a label

CONFIG_HASH = f"{GROUP}/config-hash"  # on the driver's pods: hash of what needs a restart
IMAGE = f"{GROUP}/image"  # on the StatefulSet: the image that was chosen for this job
APPLIED = f"{GROUP}/applied"  # on every object: hash of what was asked for

_LABEL = "app.kubernetes.io/"
INSTANCE = _LABEL + "instance"
COMPONENT = _LABEL + "component"
MANAGED = {_LABEL + "managed-by": MANAGER}
OPERATOR = {_LABEL + "name": MANAGER}


class Key(NamedTuple):
    """Which StreamJoin."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def key(thing: Mapping[str, Any]) -> Key:
    """The key of a StreamJoin as the API server shows it."""
    return Key(thing["metadata"]["namespace"], thing["metadata"]["name"])


def match(name: str, component: str | None = None) -> dict[str, str]:
    """Labels that choose the pods of a job, or those of one component."""
    chosen = {_LABEL + "name": "streamjoin", INSTANCE: name}
    return chosen | ({COMPONENT: component} if component else {})


def labels(name: str, component: str) -> dict[str, str]:
    """Labels of an object."""
    return match(name, component) | MANAGED


def client(name: str) -> dict[str, str]:
    """Labels of a pod that may talk to the driver of a job."""
    return {f"{GROUP}/client": name}


def text(chosen: Mapping[str, str]) -> str:
    """Labels as a selector in text."""
    return ",".join(f"{name}={value}" for name, value in chosen.items())


def driver(name: str) -> str:
    """ServiceAccount, Role, RoleBinding, Service, StatefulSet and Lease."""
    return f"{name}-driver"


def host(name: str, namespace: str) -> str:
    """What the driver's Service is called."""
    return f"{driver(name)}.{namespace}.svc"


def pod(name: str) -> str:
    """The driver's pod."""
    return f"{name}-driver-0"


def spec(name: str) -> str:
    """The ConfigMap."""
    return f"{name}-spec"


def token(name: str) -> str:
    """The Secret by which the driver knows the operator."""
    return f"{name}-token"


def rpc(name: str) -> str:
    """The Secret by which driver and executors know each other."""
    return f"{name}-rpc"


def owner(name: str, uid: str) -> Object:
    """The reference by which an object goes when its StreamJoin goes."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owned(thing: Mapping[str, Any], uid: str) -> bool:
    """Does this object belong to the StreamJoin with this uid?"""
    return any(owner.get("uid") == uid for owner in thing["metadata"].get("ownerReferences", ()))
