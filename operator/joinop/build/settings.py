"""The ConfigMap of a driver: the accepted spec, and the pod template of its executors.

It is also the operator's memory: while a newer spec is rejected, it holds the one in effect.
"""

import json
from typing import Any

import yaml

from joinlib.deploy import EXECUTOR, EXECUTOR_FILE, GRACE_S, SPEC_FILE
from joinop import names
from joinop.build import pod
from joinop.build.job import JobBlueprint
from joinop.build.placing import STORAGE, placing, storage
from joinop.memoize import memoized
from joinop.names import Object

# YAML takes milliseconds, and a job is reconciled every few seconds: texts are memoized.


def config_map(job: JobBlueprint) -> Object:
    data = {SPEC_FILE: _yaml(job.document), EXECUTOR_FILE: _yaml(executor(job))}
    return job.object("ConfigMap", names.spec(job.name), data=data)


def executor(job: JobBlueprint) -> Object:
    """Executors run no code of Kubernetes' API: no token.

    Spark adds image, CPU, memory, arguments and more environment.
    """
    disk = storage(job.executors)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": names.labels(job.name, EXECUTOR)},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": GRACE_S,
            "securityContext": pod.pod_security(),
            "containers": [
                {
                    "name": EXECUTOR,
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
            **placing(job, EXECUTOR),
        },
    }


def accepted(config: Object | None) -> Object | None:
    """Return the document that a ConfigMap holds; None if it holds none."""
    return _load((config or {}).get("data", {}).get(SPEC_FILE, ""))


@memoized(1)
def _load(text: str) -> Object | None:
    try:
        found: Any = yaml.safe_load(text)
    except yaml.YAMLError:
        return None
    return found if isinstance(found, dict) else None


def _yaml(value: Object) -> str:
    return _dump(json.dumps(value, sort_keys=True, ensure_ascii=False))


@memoized(2)  # the document, and the template of executors
def _dump(text: str) -> str:
    return yaml.dump(json.loads(text), Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=110)


class _Dumper(yaml.SafeDumper):
    """Writes repeated values in full: a reader should not have to look for an anchor."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
