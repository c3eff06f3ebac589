"""Who may dial whom? Executors reach their driver and each other, the operator and Prometheus reach the driver's HTTP.

A label may be written by whoever makes a pod, in any namespace of his own; the name of a namespace may not. So who comes from
outside is known by both.
"""

from joinop import names
from joinop.build.job import Job
from joinop.build.workload import PORTS
from joinop.names import Object


def driver_policy(job: Job) -> Object:
    """Pods of the own namespace come in with a label that names the job."""
    operator = [] if job.operator is None else [{**_namespace(job.operator), **_pods(names.OPERATOR)}]
    ingress = [
        {"from": [_pods(names.match(job.name, "executor"))], "ports": _ports("rpc", "blocks")},
        {"from": [*operator, *job.scrapers, _pods(names.client(job.name))], "ports": _ports("http")},
    ]
    return _policy(job, "driver", ingress)


def executor_policy(job: Job) -> Object:
    """Nobody but this job's pods."""
    return _policy(job, "executor", [{"from": [_pods(names.match(job.name))]}])


def _policy(job: Job, component: str, ingress: list[Object]) -> Object:
    """Both names have an ending: NAME alone could be the name and ending of another job."""
    spec = {
        "podSelector": {"matchLabels": names.match(job.name, component)},
        "policyTypes": ["Ingress"],
        "ingress": ingress,
    }
    return job.object("NetworkPolicy", f"{job.name}-{component}", component, spec=spec)


def _namespace(name: str) -> Object:
    """The API server gives each namespace this label, and lets nobody change it."""
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


def _pods(labels: dict[str, str]) -> Object:
    return {"podSelector": {"matchLabels": labels}}


def _ports(*chosen: str) -> list[Object]:
    return [{"port": PORTS[name], "protocol": "TCP"} for name in chosen]
