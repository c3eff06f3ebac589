"""The PodMonitor by which Prometheus finds the driver, on clusters that have its operator."""

from joinlib import deploy
from joinlib.deploy import DRIVER
from joinop import names
from joinop.build.job import JobBlueprint
from joinop.names import Object

_POD_LABEL = "__meta_kubernetes_pod_label_" + "".join(c if c.isalnum() else "_" for c in deploy.INSTANCE)
_WHOSE = {"sourceLabels": [_POD_LABEL], "targetLabel": "streamjoin"}  # the namespace is a label already


def pod_monitor(job: JobBlueprint) -> Object:
    return job.object(
        "PodMonitor",
        job.name,
        spec={
            "selector": {"matchLabels": deploy.match(job.name, DRIVER)},
            "podMetricsEndpoints": [
                {"port": "http", "path": "/metrics", "relabelings": [_WHOSE], **_secured(job)}
            ],
        },
    )


def _secured(job: JobBlueprint) -> Object:
    """Build TLS and token of a scrape, as in `joinop.transport`; Prometheus reads both Secrets itself."""
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
