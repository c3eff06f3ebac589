"""Resources of the Kubernetes API that the operator makes, watches or reads."""

from joinlib import deploy
from joinlib.deploy import POD, Resource

STREAMJOIN = Resource(deploy.GROUP, deploy.VERSION, deploy.KIND, deploy.PLURAL)
SECRET = Resource("", "v1", "Secret", "secrets")
CLAIM = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
EVENT = Resource("", "v1", "Event", "events")
NODE = Resource("", "v1", "Node", "nodes")
POD_MONITOR = Resource("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors")

# In the order in which they are applied: what a driver's pod needs comes before it.
WATCHED = (
    Resource("", "v1", "ServiceAccount", "serviceaccounts"),
    Resource("rbac.authorization.k8s.io", "v1", "Role", "roles"),
    Resource("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
    Resource("", "v1", "ConfigMap", "configmaps"),
    Resource("", "v1", "Service", "services"),
    Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
    Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    Resource("apps", "v1", "StatefulSet", "statefulsets"),
)
BY_KIND = {each.kind: each for each in (*WATCHED, STREAMJOIN, POD, SECRET, CLAIM, EVENT, POD_MONITOR)}
