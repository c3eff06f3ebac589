"""Names, annotations and owner references that only the operator knows; `joinlib.deploy` has those that the
driver shares.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from joinlib.deploy import API_VERSION, GROUP, KIND, LABEL, MANAGER, driver, match

Object = dict[str, Any]

CONFIG_HASH = f"{GROUP}/config-hash"  # on the driver's pods: hash of the fields that need a restart
IMAGE = f"{GROUP}/image"  # on the StatefulSet: the image of this job
APPLIED = f"{GROUP}/applied"  # on every object: hash of what was desired

MANAGED = {LABEL + "managed-by": MANAGER}
OPERATOR = {LABEL + "name": MANAGER}


class JobKey(NamedTuple):
    """Namespace and name of a StreamJoin."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def key(obj: Mapping[str, Any]) -> JobKey:
    """The key of a StreamJoin as the API server shows it."""
    return JobKey(obj["metadata"]["namespace"], obj["metadata"]["name"])


def labels(name: str, component: str) -> dict[str, str]:
    """Labels of an object."""
    return match(name, component) | MANAGED


def client(name: str) -> dict[str, str]:
    """Labels of a pod that may connect to the driver of a job."""
    return {f"{GROUP}/client": name}


def host(name: str, namespace: str) -> str:
    """DNS name of the driver's Service."""
    return f"{driver(name)}.{namespace}.svc"


def spec(name: str) -> str:
    """Name of the ConfigMap."""
    return f"{name}-spec"


def token(name: str) -> str:
    """Name of the Secret that authenticates the operator to the driver."""
    return f"{name}-token"


def rpc(name: str) -> str:
    """Name of the Secret that driver and executors share."""
    return f"{name}-rpc"


def owner(name: str, uid: str) -> Object:
    """Return the owner reference by which an object is deleted with its StreamJoin."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owned(obj: Mapping[str, Any], uid: str) -> bool:
    """Does this object belong to the StreamJoin with this uid?"""
    return any(owner.get("uid") == uid for owner in obj["metadata"].get("ownerReferences", ()))
