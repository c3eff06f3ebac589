"""Scheduling and storage of a job's pods: what driver and executors share."""

from joinlib import deploy
from joinlib.spec.model import Driver, Executors
from joinlib.spec.pods import Pods
from joinop.build.job import JobBlueprint, quantity
from joinop.names import Object

_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
STORAGE = "ephemeral-storage"


def placing(job: JobBlueprint, component: str) -> Object:
    """Return fields of a pod's spec. Empty ones are left out."""
    pods = job.pods
    found = {
        "imagePullSecrets": [{"name": name} for name in pods.image_pull_secrets],
        "nodeSelector": pods.node_selector,
        "tolerations": _tolerations(pods, job.node_loss_s),
        "affinity": pods.affinity,
        "priorityClassName": pods.priority_class_name,
        "topologySpreadConstraints": [
            {"labelSelector": {"matchLabels": deploy.match(job.name, component)}, **each}
            for each in pods.topology_spread_constraints
        ],
    }
    return {name: value for name, value in found.items() if value}


def storage(part: Driver | Executors) -> dict[str, str]:
    """Return the local disk of a pod as a resource: request and limit are the same.

    Empty: what there is.
    """
    return {} if part.storage_bytes is None else {STORAGE: quantity(part.storage_bytes)}


def _tolerations(pods: Pods, node_loss_s: int) -> list[Object]:
    """Kubernetes would leave a pod on a lost node for five minutes; who names these taints has the last
    word.
    """
    own = [each.model_dump(by_alias=True, exclude_none=True) for each in pods.tolerations]
    named = {each.key for each in pods.tolerations}
    lost = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": node_loss_s}
    return own + [{"key": key, **lost} for key in _LOST if not {key, None} & named]
