"""The driver's StatefulSet and Service, and the disruption budget of its executors."""

from joinlib import deploy
from joinlib.deploy import DRIVER, EXECUTOR, Variable
from joinop import names
from joinop.build import pod
from joinop.build.job import JobBlueprint, quantity
from joinop.build.placing import STORAGE, placing, storage
from joinop.names import Object

_START_S = 300  # an image's first start compiles, and Spark takes its time on a busy node


def service(job: JobBlueprint) -> Object:
    """Return a headless Service: executors and the operator must reach the driver before it is ready."""
    return job.object(
        "Service",
        deploy.driver(job.name),
        spec={
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": deploy.match(job.name, DRIVER),
            "ports": [
                {"name": name, "port": port, "targetPort": name} for name, port in deploy.PORTS.items()
            ],
        },
    )


def budget(job: JobBlueprint) -> Object:
    """A drain takes one executor after another.

    It may take the driver: that goes on elsewhere, from its checkpoint.
    """
    executors = job.executors
    return job.object(
        "PodDisruptionBudget",
        f"{job.name}-{EXECUTOR}",
        EXECUTOR,
        spec={
            "minAvailable": (executors.instances or executors.min) - 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": deploy.match(job.name, EXECUTOR)},
        },
    )


def stateful_set(job: JobBlueprint) -> Object:
    """Return the StatefulSet of one driver.

    Parallel: a changed template replaces even a pod that never was ready.
    """
    found = job.object(
        "StatefulSet",
        deploy.driver(job.name),
        spec={
            "replicas": 0 if job.suspended else 1,
            "serviceName": deploy.driver(job.name),
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate"},
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": deploy.match(job.name, DRIVER)},
            "template": {
                "metadata": {
                    "labels": names.labels(job.name, DRIVER),
                    "annotations": {names.CONFIG_HASH: job.config_hash},
                },
                "spec": _pod(job),
            },
        },
    )
    found["metadata"]["annotations"] = {names.IMAGE: job.image}
    return found


def _pod(job: JobBlueprint) -> Object:
    return {
        "serviceAccountName": deploy.driver(job.name),
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": deploy.GRACE_S,
        "securityContext": pod.pod_security(),
        "containers": [_container(job)],
        "volumes": [
            {"name": "spec", "configMap": {"name": names.spec(job.name)}},
            {"name": "token", **pod.secret(names.token(job.name))},
            {"name": "rpc", **pod.secret(names.rpc(job.name))},
            *([{"name": "tls", **pod.secret(job.http_secret)}] if job.http_secret else []),
            *pod.volumes(job.spec, storage(job.spec.driver).get(STORAGE)),
        ],
        **placing(job, DRIVER),
    }


def _container(job: JobBlueprint) -> Object:
    return {
        "name": DRIVER,
        "image": job.image,
        "imagePullPolicy": job.pull_policy,
        "command": [deploy.ENTRY],
        "args": [DRIVER, f"{deploy.SPEC_FOLDER}/{deploy.SPEC_FILE}"],
        "env": _environment(job),
        "ports": [{"name": name, "containerPort": port} for name, port in deploy.PORTS.items()],
        "resources": _resources(job),
        "securityContext": pod.container_security(),
        "startupProbe": _probe(job, "/healthz", period_s=5, failures=_START_S // 5),
        "livenessProbe": _probe(job, "/healthz", period_s=10, failures=6),
        "readinessProbe": _probe(job, "/readyz", period_s=3, failures=2),
        "volumeMounts": [
            {"name": "spec", "mountPath": deploy.SPEC_FOLDER, "readOnly": True},
            {"name": "token", "mountPath": deploy.TOKEN_FOLDER, "readOnly": True},
            pod.RPC_MOUNT,
            *([{"name": "tls", "mountPath": deploy.TLS_FOLDER, "readOnly": True}] if job.http_secret else []),
            *pod.mounts(job.spec),
        ],
    }


def _resources(job: JobBlueprint) -> Object:
    driver = job.spec.driver
    memory = {"memory": quantity(driver.memory_bytes)}
    disk = storage(driver)
    cpu = driver.cpu_request or job.cpu_request or str(driver.cores)
    limit = {} if driver.cpu_limit is None else {"cpu": driver.cpu_limit}
    return {"requests": {"cpu": cpu, **memory, **disk}, "limits": {**limit, **memory, **disk}}


def _environment(job: JobBlueprint) -> list[Object]:
    downward = {
        Variable.POD_NAME: "metadata.name",
        Variable.POD_NAMESPACE: "metadata.namespace",
        Variable.POD_IP: "status.podIP",
        Variable.POD_UID: "metadata.uid",
    }
    plain = {
        Variable.IMAGE: job.image,
        Variable.TOKEN_FILE: f"{deploy.TOKEN_FOLDER}/{deploy.TOKEN_FILE}",
        Variable.RPC_FILE: f"{deploy.RPC_FOLDER}/{deploy.TOKEN_FILE}",
        Variable.EXECUTOR_TEMPLATE: f"{deploy.SPEC_FOLDER}/{deploy.EXECUTOR_FILE}",
        Variable.CONFIG_HASH: job.config_hash,
        Variable.UID: job.uid,
        **({Variable.TLS_FOLDER: deploy.TLS_FOLDER} if job.http_secret else {}),
        **({Variable.CPU_REQUEST: job.cpu_request} if job.cpu_request else {}),
        **pod.folders(),
    }
    return [
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in downward.items()),
        *pod.variables(plain),
        *pod.secrets(job.spec),
    ]


def _probe(job: JobBlueprint, path: str, period_s: int, failures: int) -> Object:
    return {
        "httpGet": {"path": path, "port": "http", **({"scheme": "HTTPS"} if job.http_secret else {})},
        "periodSeconds": period_s,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }
