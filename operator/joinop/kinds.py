"""Which kinds does the operator make or watch, and where are they in the API?"""

from dataclasses import dataclass

from joinop import names


@dataclass(frozen=True)
class Kind:
    """A kind of the API."""

    group: str
    version: str
    kind: str
    plural: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """Path of the kind's group and version."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str | None, name: str = "", below: str = "") -> str:
        """Path of an object, or of all objects of a namespace or the cluster."""
        within = f"/namespaces/{namespace}" if namespace else ""
        return "/".join(filter(None, (f"{self.root}{within}/{self.plural}", name, below)))


STREAMJOIN = Kind(names.GROUP, names.VERSION, names.KIND, names.PLURAL)
POD = Kind("", "v1", "Pod", "pods")
SECRET = Kind("", "v1", "Secret", "secrets")
CLAIM = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
EVENT = Kind("", "v1", "Event", "events")
NODE = Kind("", "v1", "Node", "nodes")
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
POD_MONITOR = Kind("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors")

# In the order in which they are applied: what a driver's pod needs comes before it.
WATCHED = (
    Kind("", "v1", "ServiceAccount", "serviceaccounts"),
    Kind("rbac.authorization.k8s.io", "v1", "Role", "roles"),
    Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
    Kind("", "v1", "ConfigMap", "configmaps"),
    Kind("", "v1", "Service", "services"),
    Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
    Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    Kind("apps", "v1", "StatefulSet", "statefulsets"),
)
BY_NAME = {kind.kind: kind for kind in (*WATCHED, STREAMJOIN, POD, SECRET, CLAIM, EVENT, POD_MONITOR)}
