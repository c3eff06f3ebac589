"""Who is the driver, what may it do, and how does it know the operator and its executors?"""

import base64

from joinop import names
from joinop.build.job import Job
from joinop.names import Object


def service_account(job: Job) -> Object:
    """The driver's identity. Its token is mounted by the driver's pod alone."""
    return job.object("ServiceAccount", names.driver(job.name), automountServiceAccountToken=False)


def role(job: Job) -> Object:
    """What Spark and the lease need, and nothing else."""
    rules = [
        # executors
        _rule("", "pods", "create", "get", "list", "watch", "delete", "deletecollection"),
        # one driver at most; `create` cannot be narrowed to a name
        _rule("coordination.k8s.io", "leases", "create"),
        _rule("coordination.k8s.io", "leases", "get", "update") | {"resourceNames": [names.driver(job.name)]},
    ]
    return job.object("Role", names.driver(job.name), rules=rules)


def role_binding(job: Job) -> Object:
    name = names.driver(job.name)
    subject = {"kind": "ServiceAccount", "name": name, "namespace": job.namespace}
    given = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    return job.object("RoleBinding", name, roleRef=given, subjects=[subject])


def secret(job: Job, name: str, word: str) -> Object:
    """What only those know who mount it. It is made once: a new one would need a restart."""
    return job.object("Secret", name, type="Opaque", data={"token": base64.b64encode(word.encode()).decode()})


def _rule(group: str, resource: str, *verbs: str) -> Object:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
