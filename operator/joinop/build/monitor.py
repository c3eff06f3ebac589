"""Where does Prometheus find the driver's figures? Only on clusters that have its operator."""

from joinop import names
from joinop.build.job import Job
from joinop.names import Object


def pod_monitor(job: Job) -> Object:
    return job.object(
        "PodMonitor",
        job.name,
        spec={
            "selector": {"matchLabels": names.match(job.name, "driver")},
            "podMetricsEndpoints": [{"port": "http", "path": "/metrics"}],
        },
    )
