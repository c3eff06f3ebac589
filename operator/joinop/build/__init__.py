"""Builders of the objects that a job needs. Pure: the same job gives the same objects, byte for byte.

Quantities are written as the API server writes them, so that its answers can be compared with what
is desired.
"""

from joinop.build.access import role, role_binding, secret, service_account
from joinop.build.job import JobBlueprint
from joinop.build.monitor import pod_monitor
from joinop.build.network import driver_policy, executor_policy
from joinop.build.settings import config_map
from joinop.build.workload import budget, service, stateful_set
from joinop.names import Object

__all__ = ["JobBlueprint", "children", "secret"]


def children(job: JobBlueprint, *, monitored: bool) -> tuple[Object, ...]:
    """Return all objects except Secrets, which are created once, in the order in which they are applied."""
    found = (
        service_account(job),
        role(job),
        role_binding(job),
        config_map(job),
        service(job),
        driver_policy(job),
        executor_policy(job),
        budget(job),
        stateful_set(job),
    )
    return (*found, pod_monitor(job)) if monitored else found
