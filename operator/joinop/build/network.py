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


def _pods(labels: dict[str, str]) -> Object:
    return {"podSelector": {"matchLabels": labels}}


def _ports(*chosen: str) -> list[Object]:
    return [{"port": PORTS[name], "protocol": "TCP"} for name in chosen]
