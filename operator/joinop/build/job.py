"""The values of a job that all builders of its objects share."""

from dataclasses import dataclass, field
from typing import Any

from joinlib.deploy import DRIVER
from joinlib.spec.model import Executors, Spec, StreamJoin
from joinlib.spec.pods import Pods
from joinop import names
from joinop.names import Object
from joinop.resources import BY_KIND


@dataclass(frozen=True)
class JobBlueprint:
    """An accepted StreamJoin, and what was chosen for it."""

    namespace: str
    name: str
    uid: str
    document: Object  # as the driver loads it
    model: StreamJoin
    config_hash: str
    image: str
    pull_policy: str = "IfNotPresent"
    cpu_request: str | None = None
    default_pods: Pods = field(default_factory=Pods)
    node_loss_s: int = 30  # how long a pod stays bound to a lost node
    http_secret: str | None = None  # Secret with the certificate of the driver's HTTP
    suspended: bool = False
    operator: str | None = None  # namespace of the operator; None: it runs outside the cluster
    scrapers: tuple[Any, ...] = ()  # NetworkPolicy peers that may read the driver's metrics

    @property
    def spec(self) -> Spec:
        return self.model.spec

    @property
    def executors(self) -> Executors:
        return self.model.spec.executors or Executors()

    @property
    def pods(self) -> Pods:
        return self.spec.pods.over(self.default_pods)

    def object(self, kind: str, name: str, component: str = DRIVER, **body: object) -> Object:
        """Return an object of this job, with its labels and its owner."""
        return {
            "apiVersion": BY_KIND[kind].api_version,
            "kind": kind,
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": names.labels(self.name, component),
                "ownerReferences": [names.owner(self.name, self.uid)],
            },
            **body,
        }


def quantity(amount: int) -> str:
    """Write bytes as Kubernetes does: 2147483648 is 2Gi, 2000000000 is 2G."""
    step, suffixes = (1024, _BINARY) if amount % 1024 == 0 else (1000, _DECIMAL)
    power = 0
    while amount and amount % step == 0 and power + 1 < len(suffixes):
        amount, power = amount // step, power + 1
    return f"{amount}{suffixes[power]}"


_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")
