"""Network policies: executors reach their driver and each other, operator and Prometheus reach the driver's
HTTP.

Anybody who creates a pod chooses its labels, but not the name of its namespace. So peers from other
namespaces must match both.
"""

from joinlib import deploy
from joinlib.deploy import DRIVER, EXECUTOR, PORTS
from joinop import names
from joinop.build.job import JobBlueprint
from joinop.names import Object


def driver_policy(job: JobBlueprint) -> Object:
    """Return the policy of the driver. Other pods of the job's namespace need a label that names the job."""
    operator = [] if job.operator is None else [{**_namespace(job.operator), **_pods(names.OPERATOR)}]
    ingress = [
        {"from": [_pods(deploy.match(job.name, EXECUTOR))], "ports": _ports("rpc", "blocks")},
        {"from": [*operator, *job.scrapers, _pods(names.client(job.name))], "ports": _ports("http")},
    ]
    return _policy(job, DRIVER, ingress)


def executor_policy(job: JobBlueprint) -> Object:
    """Return the policy of the executors: only pods of this job may connect."""
    return _policy(job, EXECUTOR, [{"from": [_pods(deploy.match(job.name))]}])


def _policy(job: JobBlueprint, component: str, ingress: list[Object]) -> Object:
    """Name a policy. Both have a suffix: NAME alone could be name and suffix of another job."""
    spec = {
        "podSelector": {"matchLabels": deploy.match(job.name, component)},
        "policyTypes": ["Ingress"],
        "ingress": ingress,
    }
    return job.object("NetworkPolicy", f"{job.name}-{component}", component, spec=spec)


def _namespace(name: str) -> Object:
    """Select a namespace by the label that the API server sets, and that nobody can change."""
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


def _pods(labels: dict[str, str]) -> Object:
    return {"podSelector": {"matchLabels": labels}}


def _ports(*chosen: str) -> list[Object]:
    return [{"port": PORTS[name], "protocol": "TCP"} for name in chosen]
