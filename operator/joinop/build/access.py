"""Identity and rights of the driver, and the Secrets that it shares with the operator and its executors."""

import base64

from joinlib import deploy
from joinop.build.job import JobBlueprint
from joinop.names import Object


def service_account(job: JobBlueprint) -> Object:
    """Return the driver's identity. Only the driver's pod mounts its token."""
    return job.object("ServiceAccount", deploy.driver(job.name), automountServiceAccountToken=False)


def role(job: JobBlueprint) -> Object:
    """Return the rights that Spark and the Lease need, and no others."""
    rules = [
        # executors
        _rule("", "pods", "create", "get", "list", "watch", "delete", "deletecollection"),
        # the driver's Lease; `create` cannot be restricted to a name
        _rule("coordination.k8s.io", "leases", "create"),
        _rule("coordination.k8s.io", "leases", "get", "update")
        | {"resourceNames": [deploy.driver(job.name)]},
    ]
    return job.object("Role", deploy.driver(job.name), rules=rules)


def role_binding(job: JobBlueprint) -> Object:
    name = deploy.driver(job.name)
    subject = {"kind": "ServiceAccount", "name": name, "namespace": job.namespace}
    given = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    return job.object("RoleBinding", name, roleRef=given, subjects=[subject])


def secret(job: JobBlueprint, name: str, word: str) -> Object:
    """Return a Secret with a random word. It is created once: a new word would need a restart."""
    return job.object("Secret", name, type="Opaque", data={"token": base64.b64encode(word.encode()).decode()})


def _rule(group: str, resource: str, *verbs: str) -> Object:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
