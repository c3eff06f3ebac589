"""Where may the pods of a job run, and with which rights to a registry? As in a pod of Kubernetes; local runs ignore it."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from joinlib.spec.base import Model

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]
CPU = r"^[1-9][0-9]*m?$"
Cpu = Annotated[str, StringConstraints(pattern=CPU)]
# What Kubernetes checks itself, when a pod is made.
_Free = Annotated[dict[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]


class Toleration(Model):
    """A taint of nodes that is put up with."""

    key: str | None = Field(default=None, description="Its key; absent with operator Exists: every taint.")
    operator: Literal["Exists", "Equal"] = Field(default="Equal", description="Whether its value counts.")
    value: str | None = Field(default=None, description="Its value.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="Its effect; absent: all."
    )
    toleration_seconds: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="For how long, of NoExecute; absent: for ever."
    )


class Pods(Model):
    """What driver and executors have in common. What is absent is as the operator's chart says (`jobs.pods`)."""

    image_pull_secrets: tuple[Name, ...] = Field(
        default=(), description="Secrets of the namespace with logins to registries."
    )
    node_selector: dict[str, str] = Field(default_factory=dict, description="Labels of the nodes to run on.")
    tolerations: tuple[Toleration, ...] = Field(default=(), description="Taints of nodes to put up with.")
    affinity: _Free = Field(default_factory=dict, description="Affinities, as in a pod.")
    priority_class_name: Name | None = Field(default=None, description="Who gives way when nodes are full.")
    topology_spread_constraints: tuple[_Free, ...] = Field(
        default=(),
        description="How pods are spread over nodes or zones, as in a pod; without a labelSelector, those of the same job"
        " and part.",
    )

    def over(self, defaults: "Pods") -> "Pods":
        """These settings, and what they leave out as `defaults` have it."""
        return defaults.model_copy(update={name: getattr(self, name) for name in self.model_fields_set})
