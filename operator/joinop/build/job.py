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


_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def quantity(amount: int) -> str:
    """Bytes as Kubernetes writes them: 2147483648 is 2Gi, 4000 is 4000."""
    step = 0
    while amount and amount % 1024 == 0 and step + 1 < len(_SUFFIXES):
        amount, step = amount // 1024, step + 1
    return f"{amount}{_SUFFIXES[step]}"
