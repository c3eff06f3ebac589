"""What do the builders know of a job?"""

from dataclasses import dataclass

from joinlib.spec.model import Executors, Spec, StreamJoin
from joinop import names
from joinop.kinds import BY_NAME
from joinop.names import Object


@dataclass(frozen=True)
class Job:
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
    http_secret: str | None = None  # with the certificate of the driver's HTTP
    suspended: bool = False

    @property
    def spec(self) -> Spec:
        return self.model.spec

    @property
    def executors(self) -> Executors:
        return self.model.spec.executors or Executors()

    def object(self, kind: str, name: str, component: str = "driver", **body: object) -> Object:
        """An object of this job, with its labels and its owner."""
        return {
            "apiVersion": BY_NAME[kind].api_version,
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
    """Bytes as Kubernetes writes them: 2147483648 is 2Gi, 2000000000 is 2G."""
    step, suffixes = (1024, _BINARY) if amount % 1024 == 0 else (1000, _DECIMAL)
    power = 0
    while amount and amount % step == 0 and power + 1 < len(suffixes):
        amount, power = amount // step, power + 1
    return f"{amount}{suffixes[power]}"


_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")
