"""Who may dial whom? Executors reach their driver and each other, the operator and Prometheus reach the driver's HTTP."""

from joinop import names
from joinop.build.job import Job
from joinop.build.workload import PORTS
from joinop.names import Object


def driver_policy(job: Job) -> Object:
    """Pods of the own namespace come in with a label that names the job."""
    anywhere = [{"namespaceSelector": {}, **_pods(labels)} for labels in (names.OPERATOR, names.PROMETHEUS)]
    ingress = [
        {"from": [_pods(names.match(job.name, "executor"))], "ports": _ports("rpc", "blocks")},
        {"from": [*anywhere, _pods(names.client(job.name))], "ports": _ports("http")},
    ]
    return _policy(job, job.name, "driver", ingress)


def executor_policy(job: Job) -> Object:
    """Nobody but this job's pods."""
    return _policy(job, f"{job.name}-executor", "executor", [{"from": [_pods(names.match(job.name))]}])


def _policy(job: Job, name: str, component: str, ingress: list[Object]) -> Object:
    spec = {
        "podSelector": {"matchLabels": names.match(job.name, component)},
        "policyTypes": ["Ingress"],
        "ingress": ingress,
    }
    return job.object("NetworkPolicy", name, component, spec=spec)


def _pods(labels: dict[str, str]) -> Object:
    return {"podSelector": {"matchLabels": labels}}


def _ports(*chosen: str) -> list[Object]:
    return [{"port": PORTS[name], "protocol": "TCP"} for name in chosen]
