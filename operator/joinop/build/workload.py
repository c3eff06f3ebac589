"""The driver: a StatefulSet of one, the Service that names it, the budget of its executors."""

from joinop import names
from joinop.build import pod
from joinop.build.job import Job, quantity
from joinop.build.placing import STORAGE, placing, storage
from joinop.names import Object

PORTS = {"rpc": 7078, "blocks": 7079, "http": 8080}
SPEC_FILE, EXECUTOR_FILE, TOKEN_FILE = "spec.yaml", "executor.yaml", "token"
ENTRY = "/opt/streamjoin/entrypoint"  # of the image
_START_S = 300  # an image's first start compiles, and Spark takes its time on a busy node


def service(job: Job) -> Object:
    """Headless: executors and the operator reach the driver also before it is ready."""
    return job.object(
        "Service",
        names.driver(job.name),
        spec={
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": names.match(job.name, "driver"),
            "ports": [{"name": name, "port": port, "targetPort": name} for name, port in PORTS.items()],
        },
    )


def budget(job: Job) -> Object:
    """A drain takes one executor after another. It may take the driver: that goes on elsewhere, from its checkpoint."""
    executors = job.executors
    return job.object(
        "PodDisruptionBudget",
        f"{job.name}-executor",
        "executor",
        spec={
            "minAvailable": (executors.instances or executors.min) - 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": names.match(job.name, "executor")},
        },
    )


def stateful_set(job: Job) -> Object:
    """At most one driver pod; a changed template replaces it, also one that never became ready (Parallel)."""
    found = job.object(
        "StatefulSet",
        names.driver(job.name),
        spec={
            "replicas": 0 if job.suspended else 1,
            "serviceName": names.driver(job.name),
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate"},
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": names.match(job.name, "driver")},
            "template": {
                "metadata": {
                    "labels": names.labels(job.name, "driver"),
                    "annotations": {names.CONFIG_HASH: job.config_hash},
                },
                "spec": _pod(job),
            },
        },
    )
    found["metadata"]["annotations"] = {names.IMAGE: job.image}
    return found


def _pod(job: Job) -> Object:
    return {
        "serviceAccountName": names.driver(job.name),
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": pod.GRACE_S,
        "securityContext": pod.pod_security(),
        "containers": [_container(job)],
        "volumes": [
            {"name": "spec", "configMap": {"name": names.spec(job.name)}},
            {"name": "token", **pod.secret(names.token(job.name))},
            {"name": "rpc", **pod.secret(names.rpc(job.name))},
            *([{"name": "tls", **pod.secret(job.http_secret)}] if job.http_secret else []),
            *pod.volumes(job.spec, storage(job.spec.driver).get(STORAGE)),
        ],
        **placing(job, "driver"),
    }


def _container(job: Job) -> Object:
    return {
        "name": "driver",
        "image": job.image,
        "imagePullPolicy": job.pull_policy,
        "command": [ENTRY],
        "args": ["driver", f"{pod.SPEC_FOLDER}/{SPEC_FILE}"],
        "env": _environment(job),
        "ports": [{"name": name, "containerPort": port} for name, port in PORTS.items()],
        "resources": _resources(job),
        "securityContext": pod.container_security(),
        "startupProbe": _probe(job, "/healthz", period_s=5, failures=_START_S // 5),
        "livenessProbe": _probe(job, "/healthz", period_s=10, failures=6),
        "readinessProbe": _probe(job, "/readyz", period_s=3, failures=2),
        "volumeMounts": [
            {"name": "spec", "mountPath": pod.SPEC_FOLDER, "readOnly": True},
            {"name": "token", "mountPath": pod.TOKEN_FOLDER, "readOnly": True},
            pod.RPC_MOUNT,
            *([{"name": "tls", "mountPath": pod.TLS_FOLDER, "readOnly": True}] if job.http_secret else []),
            *pod.mounts(job.spec),
        ],
    }


def _resources(job: Job) -> Object:
    driver = job.spec.driver
    memory = {"memory": quantity(driver.memory_bytes)}
    disk = storage(driver)
    cpu = driver.cpu_request or job.cpu_request or str(driver.cores)
    limit = {} if driver.cpu_limit is None else {"cpu": driver.cpu_limit}
    return {"requests": {"cpu": cpu, **memory, **disk}, "limits": {**limit, **memory, **disk}}


def _environment(job: Job) -> list[Object]:
    downward = {
        "POD_NAME": "metadata.name",
        "POD_NAMESPACE": "metadata.namespace",
        "POD_IP": "status.podIP",
        "POD_UID": "metadata.uid",
    }
    plain = {
        "STREAMJOIN_IMAGE": job.image,
        "STREAMJOIN_TOKEN_FILE": f"{pod.TOKEN_FOLDER}/{TOKEN_FILE}",
        "STREAMJOIN_RPC_FILE": f"{pod.RPC_FOLDER}/{TOKEN_FILE}",
        "STREAMJOIN_EXECUTOR_TEMPLATE": f"{pod.SPEC_FOLDER}/{EXECUTOR_FILE}",
        "STREAMJOIN_CONFIG_HASH": job.config_hash,
        "STREAMJOIN_UID": job.uid,
        **({"STREAMJOIN_TLS_FOLDER": pod.TLS_FOLDER} if job.http_secret else {}),
        **({"STREAMJOIN_CPU_REQUEST": job.cpu_request} if job.cpu_request else {}),
        **pod.folders(),
    }
    return [
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in downward.items()),
        *pod.variables(plain),
        *pod.secrets(job.spec),
    ]


def _probe(job: Job, path: str, period_s: int, failures: int) -> Object:
    return {
        "httpGet": {"path": path, "port": "http", **({"scheme": "HTTPS"} if job.http_secret else {})},
        "periodSeconds": period_s,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }
