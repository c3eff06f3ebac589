"""Scheduling of a job's pods and access to registries, as in a pod of Kubernetes; local runs ignore it."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from joinlib.spec.base import Model

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]
CPU = r"^[1-9][0-9]*m?$"
Cpu = Annotated[str, StringConstraints(pattern=CPU)]
# A value that Kubernetes itself checks when a pod is created.
_Free = Annotated[dict[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]


class Toleration(Model):
    """A taint of nodes that is tolerated."""

    key: str | None = Field(
        default=None, description="Key of the taint. Absent, with operator Exists: every taint."
    )
    operator: Literal["Exists", "Equal"] = Field(
        default="Equal", description="Whether the value has to match."
    )
    value: str | None = Field(default=None, description="Value of the taint.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="Effect of the taint. Absent: all effects."
    )
    toleration_seconds: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="How long a taint NoExecute is tolerated. Absent: forever."
    )


class Pods(Model):
    """Scheduling of driver and executors. The chart's `jobs.pods` has the defaults."""

    image_pull_secrets: tuple[Name, ...] = Field(
        default=(), description="Names of Secrets in the namespace with credentials of registries."
    )
    node_selector: dict[str, str] = Field(default_factory=dict, description="Labels of the nodes to run on.")
    tolerations: tuple[Toleration, ...] = Field(default=(), description="Taints of nodes to tolerate.")
    affinity: _Free = Field(default_factory=dict, description="Affinities, as in a pod.")
    priority_class_name: Name | None = Field(
        default=None, description="PriorityClass, which decides who is evicted when nodes are full."
    )
    topology_spread_constraints: tuple[_Free, ...] = Field(
        default=(),
        description="How pods are spread over nodes or zones, as in a pod. Without a labelSelector: the "
        "pods of the same job and part.",
    )

    def over(self, defaults: "Pods") -> "Pods":
        """Return these settings, with those that are not set taken from `defaults`."""
        return defaults.model_copy(update={name: getattr(self, name) for name in self.model_fields_set})
