"""What does the driver read? The spec as it was accepted, and the pod template of its executors.

The ConfigMap is also the operator's memory: while a newer spec is refused, it holds the one that runs.
"""

import json
from typing import Any

import yaml

from joinop import names
from joinop.build import pod
from joinop.build.job import Job
from joinop.build.placing import STORAGE, placing, storage
from joinop.build.workload import EXECUTOR_FILE, SPEC_FILE
from joinop.kept import kept
from joinop.names import Object

# YAML takes milliseconds, and a job is looked at every few seconds: texts are kept.


def config_map(job: Job) -> Object:
    data = {SPEC_FILE: _yaml(job.document), EXECUTOR_FILE: _yaml(executor(job))}
    return job.object("ConfigMap", names.spec(job.name), data=data)


def executor(job: Job) -> Object:
    """Executors run no code of Kubernetes' API: no token. Spark adds image, CPU, memory, arguments and more environment."""
    disk = storage(job.executors)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": names.labels(job.name, "executor")},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": pod.GRACE_S,
            "securityContext": pod.pod_security(),
            "containers": [
                {
                    "name": "executor",
                    "imagePullPolicy": job.pull_policy,
                    "env": [*pod.variables(pod.folders()), *pod.secrets(job.spec)],
                    **({"resources": {"requests": disk, "limits": disk}} if disk else {}),
                    "securityContext": pod.container_security(),
                    "volumeMounts": [pod.RPC_MOUNT, *pod.mounts(job.spec)],
                }
            ],
            "volumes": [
                {"name": "rpc", **pod.secret(names.rpc(job.name))},
                *pod.volumes(job.spec, disk.get(STORAGE)),
            ],
            **placing(job, "executor"),
        },
    }


def accepted(config: Object | None) -> Object | None:
    """The document that a ConfigMap holds; None if it holds none."""
    return _load((config or {}).get("data", {}).get(SPEC_FILE, ""))


@kept(1)
def _load(text: str) -> Object | None:
    try:
        found: Any = yaml.safe_load(text)
    except yaml.YAMLError:
        return None
    return found if isinstance(found, dict) else None


def _yaml(value: Object) -> str:
    return _dump(json.dumps(value, sort_keys=True, ensure_ascii=False))


@kept(2)  # of the document, and of the executors' template
def _dump(text: str) -> str:
    return yaml.dump(json.loads(text), Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=110)


class _Dumper(yaml.SafeDumper):
    """Values that occur twice are written twice: a reader should not have to look for an anchor."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
