"""What does the cluster say of a StreamJoin? The shape of `.status`; the operator writes it, users read it.

Everything is optional: what is not known is absent, never zero. Loads and skews are text, such as "0.42", since
Kubernetes advises against fractions in an API. Values have types but no limits: one odd figure must not keep all the
rest from being shown.
"""

from typing import Literal

from pydantic import Field

from joinlib.spec.base import Model

Phase = Literal["Pending", "Running", "Suspended", "Degraded", "Failed"]
CONDITIONS = ("Ready", "Progressing", "Degraded", "MetricsAvailable", "Scaling")


class Condition(Model):
    """One aspect of the job, in the form that kubectl wait knows."""

    type: str = Field(description=f"Which aspect: {', '.join(CONDITIONS)}.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: str = Field(description="Why, as one word for programs.")
    message: str = Field(default="", description="Why, in a sentence with the field and the fix.")
    last_transition_time: str | None = Field(
        default=None,
        description="When status last changed.",
        json_schema_extra={"format": "date-time"},
    )
    observed_generation: int | None = Field(
        default=None, description="Generation of the spec that this was said of."
    )


class StatusExecutors(Model):
    """The executors of the job."""

    ready: int | None = Field(default=None, description="Executors that work.")
    wanted: int | None = Field(default=None, description="Executors asked for.")
    partitions: int | None = Field(
        default=None, description="Partitions of a batch: tasks that join at once, over all executors."
    )
    selector: str | None = Field(default=None, description="Label selector of the executors' pods.")


class StatusCheckpoint(Model):
    """The checkpoint in use, fixed once a driver has started."""

    folder: str | None = Field(default=None, description="The folder in which it lies.")
    fingerprint: str | None = Field(
        default=None,
        description="What of the plan its state depends on, as JSON; a change of it needs a new one.",
    )


class StatusDriver(Model):
    """The driver of the job."""

    pod: str | None = Field(default=None, description="Name of its pod.")
    config_hash: str | None = Field(
        default=None, description="Hash of what the driver cannot take over without a restart."
    )
    restarts: int | None = Field(
        default=None,
        description="How often it has ended by itself since it last worked for ten minutes; counted anew after a change.",
    )
    last_words: str | None = Field(default=None, description="What was said of the last end.")
    generation: int | None = Field(
        default=None, description="Generation of the spec that restarts are counted of."
    )
    image: str | None = Field(default=None, description="Image that they are counted of.")
    uid: str | None = Field(default=None, description="Its pod that was seen last.")
    ended: int | None = Field(default=None, description="How often that pod had ended by then.")


class StatusDecision(Model):
    """What came of a period of scaling, and of what."""

    at: str | None = Field(default=None, description="When.", json_schema_extra={"format": "date-time"})
    verdict: str | None = Field(default=None, description="What came of it, in one word.")
    wanted: int | None = Field(default=None, description="Executors wanted afterwards.")
    ready: int | None = Field(default=None, description="Executors that worked.")
    load: str | None = Field(default=None, description="Their memory load; absent: it was not known.")
    votes: int | None = Field(default=None, description="Periods in a row that agreed.")
    reason: str | None = Field(default=None, description="Why, in a sentence.")
    times: int | None = Field(default=None, description="Periods in a row in which it was the same.")


class StatusScaling(Model):
    """What scaling remembers from one period to the next: a new operator goes on from here."""

    wanted: int | None = Field(default=None, description="Executors that scaling wants.")
    phase: Literal["Idle", "Growing", "Shrinking"] | None = Field(
        default=None, description="Whether a change is on its way."
    )
    before: int | None = Field(default=None, description="Executors before that change.")
    deadline: str | None = Field(
        default=None,
        description="Until when it may take; then it is rolled back to what has come.",
        json_schema_extra={"format": "date-time"},
    )
    direction: Literal["out", "in"] | None = Field(default=None, description="What the votes are for.")
    votes: int | None = Field(default=None, description="Periods in a row that agreed.")
    most: int | None = Field(default=None, description="Executors that any of these votes asked for.")
    cool_until: str | None = Field(
        default=None,
        description="Until when nothing is decided after a change.",
        json_schema_extra={"format": "date-time"},
    )
    at: str | None = Field(
        default=None, description="The last period.", json_schema_extra={"format": "date-time"}
    )
    load: str | None = Field(default=None, description="Memory load of the last period.")
    blind: bool | None = Field(default=None, description="Whether its figures were incomplete.")
    decisions: tuple[StatusDecision, ...] = Field(
        default=(), description="The last twenty decisions, the newest last."
    )


class Status(Model):
    """What the operator found; absent until it has looked."""

    observed_generation: int | None = Field(
        default=None, description="Generation of the spec that this was said of."
    )
    phase: Phase | None = Field(default=None, description="The job's state in one word.")
    message: str | None = Field(
        default=None, description="What is going on, or what is wrong and how to mend it."
    )
    conditions: tuple[Condition, ...] = Field(
        default=(), description="Aspects of the job, each with its reason."
    )
    executors: StatusExecutors | None = Field(default=None, description="The executors of the job.")
    memory_load: str | None = Field(
        default=None, description="Bytes of state and indexes over the executors' budget for them; 1 is full."
    )
    skew: str | None = Field(
        default=None, description="Rows of the fullest unit over the mean of all units, less 1; 0 is even."
    )
    lag: int | None = Field(
        default=None, description="Rows that are there but not read yet, over all inputs."
    )
    batch: int | None = Field(default=None, description="Number of the last batch.")
    rate: float | None = Field(default=None, description="Rows read per second over the last batches.")
    plan: str | None = Field(default=None, description="How the query runs, as `streamjoin plan` says it.")
    checkpoint: StatusCheckpoint | None = Field(
        default=None, description="The checkpoint in use, fixed once a driver has started."
    )
    driver: StatusDriver | None = Field(default=None, description="The driver of the job.")
    scaling: StatusScaling | None = Field(
        default=None, description="What scaling does, and its last decisions with what they were made of."
    )
