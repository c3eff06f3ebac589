"""Where does Prometheus find the driver's figures? Only on clusters that have its operator."""

from joinop import names
from joinop.build.job import Job
from joinop.names import Object

_POD_LABEL = "__meta_kubernetes_pod_label_" + "".join(c if c.isalnum() else "_" for c in names.INSTANCE)
_WHOSE = {"sourceLabels": [_POD_LABEL], "targetLabel": "streamjoin"}  # beside the namespace, which is there


def pod_monitor(job: Job) -> Object:
    return job.object(
        "PodMonitor",
        job.name,
        spec={
            "selector": {"matchLabels": names.match(job.name, "driver")},
            "podMetricsEndpoints": [
                {"port": "http", "path": "/metrics", "relabelings": [_WHOSE], **_secured(job)}
            ],
        },
    )


def _secured(job: Job) -> Object:
    """As `joinop.reach` does it; Prometheus reads both Secrets itself."""
    if job.http_secret is None:
        return {}
    return {
        "scheme": "https",
        "authorization": {"credentials": {"name": names.token(job.name), "key": "token"}},
        "tlsConfig": {
            "ca": {"secret": {"name": job.http_secret, "key": "ca.crt"}},
            "serverName": names.host(job.name, job.namespace),
        },
    }
