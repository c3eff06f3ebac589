"""The shape of a StreamJoin's `.status`, which the operator writes and users read.

Everything is optional: what is unknown is absent, never zero. Loads and skews are text, such as "0.42", since
Kubernetes advises against fractions in an API. Values have types but no limits, so that one odd value does
not keep all others from being shown.
"""

from typing import Literal

from pydantic import Field

from joinlib.spec.base import Model

Phase = Literal["Pending", "Running", "Suspended", "Degraded", "Failed"]
CONDITIONS = ("Ready", "Progressing", "Degraded", "MetricsAvailable", "Scaling")


class Condition(Model):
    """One aspect of the job, in the form that kubectl wait knows."""

    type: str = Field(description=f"Which aspect: {', '.join(CONDITIONS)}.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether the condition holds.")
    reason: str = Field(description="Reason, as one word for programs.")
    message: str = Field(default="", description="Reason, in a sentence with the field and the fix.")
    last_transition_time: str | None = Field(
        default=None,
        description="When status last changed.",
        json_schema_extra={"format": "date-time"},
    )
    observed_generation: int | None = Field(
        default=None, description="Generation of the spec that this refers to."
    )


class StatusExecutors(Model):
    """The executors of the job."""

    ready: int | None = Field(default=None, description="Executors that are ready.")
    wanted: int | None = Field(default=None, description="Executors that are wanted.")
    spare: int | None = Field(
        default=None, description="Executors in reserve that are ready; absent if none are asked for."
    )
    partitions: int | None = Field(
        default=None,
        description="Partitions of a batch: tasks that join at the same time, over all executors.",
    )
    selector: str | None = Field(default=None, description="Label selector of the executors' pods.")


class StatusColumns(Model):
    """The columns that the schemas of an input have in a registry."""

    values: str | None = Field(
        default=None, description="Those of the messages' values, as a Spark DDL string."
    )
    keys: str | None = Field(
        default=None,
        description="Of their keys, likewise, as one column. Absent: they are not read by a schema.",
    )


class StatusCheckpoint(Model):
    """The checkpoint in use, fixed once a driver has started."""

    folder: str | None = Field(default=None, description="Folder of the checkpoint.")
    fingerprint: str | None = Field(
        default=None,
        description="The part of the plan that the state depends on, as JSON. A change of it needs a "
        "new checkpoint.",
    )
    columns: dict[str, StatusColumns] | None = Field(
        default=None,
        description="For inputs whose schemas are in a registry: the columns as the checkpoint began, which "
        "`fromRegistry` stands for.",
    )


class StatusDriver(Model):
    """The driver of the job."""

    pod: str | None = Field(default=None, description="Name of the driver's pod.")
    config_hash: str | None = Field(
        default=None, description="Hash of what the driver cannot take over without a restart."
    )
    restarts: int | None = Field(
        default=None,
        description="How often the driver has ended by itself since it last worked for ten minutes. The "
        "count starts again after a change.",
    )
    last_words: str | None = Field(default=None, description="The driver's last message when it ended.")
    generation: int | None = Field(
        default=None, description="Generation of the spec for which restarts are counted."
    )
    image: str | None = Field(default=None, description="Image for which restarts are counted.")
    uid: str | None = Field(default=None, description="The driver's pod that was seen last.")
    ended: int | None = Field(
        default=None, description="How often that pod's container had restarted by then."
    )


class StatusDecision(Model):
    """The decision of one period of scaling, with its inputs."""

    at: str | None = Field(
        default=None, description="Time of the decision.", json_schema_extra={"format": "date-time"}
    )
    verdict: str | None = Field(default=None, description="Verdict, in one word.")
    wanted: int | None = Field(default=None, description="Executors wanted after the decision.")
    ready: int | None = Field(default=None, description="Executors that were ready.")
    load: str | None = Field(
        default=None, description="Memory load of the executors. Absent: it was not known."
    )
    votes: int | None = Field(default=None, description="Consecutive periods that agreed.")
    reason: str | None = Field(default=None, description="Reason, in a sentence.")
    times: int | None = Field(default=None, description="Consecutive periods with the same decision.")


class StatusWants(Model):
    """How many executors state and lag want."""

    by: Literal["state", "lag"] | None = Field(default=None, description="Which of them decides.")
    state: int | None = Field(default=None, description="Executors that the state wants.")
    lag: int | None = Field(
        default=None,
        description="Executors that the lag wants. Absent: it is not known, or rows never waited.",
    )
    why: str | None = Field(default=None, description="Why, in a sentence with the figures.")


class StatusBacklog(Model):
    """The lag in a period. Rates are in rows per second."""

    rows: int | None = Field(default=None, description="Rows that wait.")
    arrival: str | None = Field(default=None, description="Rate at which rows come.")
    rate: str | None = Field(
        default=None, description="Rate at which rows are read in busy time, while a batch runs."
    )
    seconds: str | None = Field(
        default=None, description="Seconds until no rows wait, at these rates. Absent: that is never."
    )


class StatusLearnt(Model):
    """What scaling has learnt when rows waited. Rates are in rows per second of busy time."""

    able: str | None = Field(default=None, description="Rate of one executor.")
    tried: int | None = Field(
        default=None, description="Executors before some were added for the lag. Absent: no rows wait."
    )
    tried_rate: str | None = Field(default=None, description="Rate of those.")


class StatusScaling(Model):
    """Memory of scaling from one period to the next, from which a new operator continues."""

    wanted: int | None = Field(default=None, description="Executors that scaling wants.")
    phase: Literal["Idle", "Growing", "Shrinking"] | None = Field(
        default=None, description="Whether a change is in progress."
    )
    before: int | None = Field(default=None, description="Executors before that change.")
    deadline: str | None = Field(
        default=None,
        description="Deadline of the change. After it, the change is rolled back to the executors that "
        "have started.",
        json_schema_extra={"format": "date-time"},
    )
    direction: Literal["out", "in"] | None = Field(default=None, description="Direction of the votes.")
    votes: int | None = Field(default=None, description="Consecutive periods that agreed.")
    most: int | None = Field(
        default=None, description="Largest number of executors that any of these votes asked for."
    )
    cool_until: str | None = Field(
        default=None,
        description="End of the time after a change in which nothing is decided.",
        json_schema_extra={"format": "date-time"},
    )
    at: str | None = Field(
        default=None, description="Time of the last period.", json_schema_extra={"format": "date-time"}
    )
    load: str | None = Field(default=None, description="Memory load of the last period.")
    blind: bool | None = Field(
        default=None, description="Whether the metrics of the last period were incomplete."
    )
    wants: StatusWants | None = Field(
        default=None,
        description="How many executors state and lag want, and which of them decides. It is not asked anew while"
        " executors come or go.",
    )
    backlog: StatusBacklog | None = Field(default=None, description="The lag of the last period.")
    learnt: StatusLearnt | None = Field(
        default=None, description="What scaling has learnt when rows waited. Absent: they never did."
    )
    advised: int | None = Field(
        default=None,
        description="Executors that the job would be given, if scaling.mode were not advise. Absent: no change"
        " is advised.",
    )
    decisions: tuple[StatusDecision, ...] = Field(
        default=(), description="The last twenty decisions, the newest last."
    )


class Status(Model):
    """The observed state of the job; absent before its first reconciliation."""

    observed_generation: int | None = Field(
        default=None, description="Generation of the spec that this refers to."
    )
    phase: Phase | None = Field(default=None, description="The job's state in one word.")
    message: str | None = Field(
        default=None, description="What is going on, or what is wrong and how to fix it."
    )
    conditions: tuple[Condition, ...] = Field(
        default=(), description="Aspects of the job, each with its reason."
    )
    executors: StatusExecutors | None = Field(default=None, description="The executors of the job.")
    memory_load: str | None = Field(
        default=None, description="Bytes of state and indexes over the executors' budget for them; 1 is full."
    )
    skew: str | None = Field(
        default=None, description="Rows of the fullest unit over the mean of all units, minus 1; 0 is even."
    )
    lag: int | None = Field(
        default=None, description="Rows that are known but not read yet, over all inputs."
    )
    batch: int | None = Field(default=None, description="Number of the last batch.")
    rate: float | None = Field(default=None, description="Rows read per second over the last batches.")
    plan: str | None = Field(
        default=None, description="How the query runs, as `streamjoin plan` describes it."
    )
    checkpoint: StatusCheckpoint | None = Field(
        default=None, description="The checkpoint in use, fixed once a driver has started."
    )
    driver: StatusDriver | None = Field(default=None, description="The driver of the job.")
    scaling: StatusScaling | None = Field(
        default=None, description="What scaling does, and its last decisions with their inputs."
    )
