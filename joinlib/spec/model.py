"""The kind `StreamJoin`: what a user writes in YAML, as frozen values.

One model serves the file, the reference and the definition in Kubernetes. Rules over several fields are next
to the fields they read; those over the whole spec are in `rules`.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, WithJsonSchema, model_validator

from joinlib import deploy
from joinlib.spec.base import Duration, Folder, Memory, Model, Problem, one_of, quantity, refuse
from joinlib.spec.functions import UserFunction
from joinlib.spec.inputs import Input, Positive
from joinlib.spec.output import NamedOutput, Output
from joinlib.spec.parameters import ParameterName, ParameterValue
from joinlib.spec.pods import Cpu, Pods
from joinlib.spec.rules import next_power_of_two, problems

LABEL = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
DnsLabel = Annotated[str, StringConstraints(pattern=LABEL)]
DnsName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]
Query = Annotated[str, StringConstraints(pattern=r"\S")]
Strategy = Literal["auto", "multiway", "binary", "stages", "paths", "biclique", "inequality"]
StageOrdering = Literal["auto", "text"]
ProbeOrder = Literal["auto", "fixed", "selectivity", "greedy"]
Fraction = Annotated[float, Field(gt=0, le=1)]
MAX_UNITS = 65_536
MAX_CYCLE = 10_000
PACE_US = 1_000_000  # default interval for results in files: a folder every 0.25 s would fill a disk
KEY = r"^[A-Za-z0-9._-]{1,253}$"  # an entry of a Secret
# Only variables of logins are allowed. Others, such as those of Java, bash or numba, could decide what runs.
LOGIN = r"^([A-Z][A-Z0-9_]*_|PG)?(USER|USERNAME|LOGIN|PASSWORD|PASSPHRASE|SECRET|TOKEN|KEY|URI|URL|DSN)$"
SETTABLE = rf"{LOGIN}|^({'|'.join(deploy.TOLD)})$"
RESERVED = rf"^({'|'.join(deploy.RESERVED)})_.*$"
# Folders in which the image has nothing; the pattern allows no path that leads out of them.
MOUNT = rf"^/({'|'.join(deploy.MOUNTS)})[A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*/?$"
MOUNTS_TEXT = f"{', '.join(f'/{name}' for name in deploy.MOUNTS[:-1])} or /{deploy.MOUNTS[-1]}"


def _power_of_two(value: int) -> int:
    if value & (value - 1):
        msg = (
            f"{value} is not a power of two; write {next_power_of_two(value) // 2} or"
            f" {next_power_of_two(value)}"
        )
        raise ValueError(msg)
    return value


def _identifier(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", value, re.ASCII):
        msg = f"{value!r} is not a name for an input; write letters, digits and '_', as SQL does"
        raise ValueError(msg)
    return value


InputName = Annotated[str, AfterValidator(_identifier)]


def _label(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", value):
        msg = f"{value!r} is not a name for an output; write lower-case letters, digits and '-', at most 32"
        raise ValueError(msg)
    return value


OutputName = Annotated[str, AfterValidator(_label)]


def _variable(value: str) -> str:
    if not re.match(SETTABLE, value) or re.match(RESERVED, value):
        fix = "end it in _USER, _PASSWORD, _SECRET, _TOKEN, _KEY, _URI or the like, such as SHOP_PASSWORD"
        msg = (
            f"{value!r} is not the name of a credential, and other variables could change what the pods run;"
            f" {fix}"
        )
        raise ValueError(msg)
    return value


def _mount(value: str) -> str:
    if not re.match(MOUNT, value):
        msg = f"{value!r} could hide files of the image; mount it below {MOUNTS_TEXT}"
        raise ValueError(msg)
    return value


VariableName = Annotated[str, AfterValidator(_variable)]


class Metadata(Model):
    """Name and labels of the job."""

    name: DnsLabel = Field(description="Name of the job, of at most 63 letters.")
    namespace: DnsLabel | None = Field(
        default=None, description="Kubernetes namespace; ignored by a local run."
    )
    labels: dict[str, str] = Field(
        default_factory=dict, description="Kubernetes labels; ignored by a local run."
    )
    annotations: dict[str, str] = Field(
        default_factory=dict, description="Kubernetes annotations; ignored by a local run."
    )


class Window(Model):
    """A window counted in rows; time bounds in the SQL and retention are windows in time."""

    rows: Positive = Field(
        description="Row number i of one input matches the rows i - rows + 1 to i + rows - 1 of another."
    )


class JoinSettings(Model):
    """How the state is laid out and how long it is kept."""

    strategy: Strategy = Field(
        default="auto",
        description="The join operator. auto lets the planner choose. binary runs INNER joins of three "
        "or more inputs as a chain that stores its intermediate results. paths joins inputs that share no "
        "key without storing what is between: each is stored by every key that new rows of the others ask "
        "for. stages stores the result of each key. The hints PATHS(a, b, c) and STAGES(a, b, c) say the "
        "same of one join.",
    )
    units: Annotated[int, Field(ge=1, le=MAX_UNITS), AfterValidator(_power_of_two)] = Field(
        default=8,
        description="Number of slices of the state, a power of two. Absent: what the checkpoint has; of a new one, as many "
        "as cores, at least 2, and at least 8 with executors or for a biclique. If it is changed, the next start divides "
        "the state anew; of a biclique it is fixed for the life of a checkpoint.",
    )
    retention_us: Annotated[Duration, Field(gt=0)] | None = Field(
        default=None,
        alias="retention",
        description="Rows match only if their event times are at most this far apart.",
    )
    subgroups: Annotated[int, Field(ge=1, le=MAX_UNITS), AfterValidator(_power_of_two)] | None = Field(
        default=None,
        description="For strategy biclique with an equality, and for bands: number of parts of the units among "
        "which keys, or the cells of a band, are hashed, a power of two. Within a part, rows are placed at random. "
        "Absent: one part for each unit.",
    )
    probe_order: ProbeOrder = Field(
        default="auto",
        description="For joins of three or more inputs: the order in which a row probes the other "
        "inputs. auto chooses it at run time by a cost model, fixed takes the order of the "
        "SQL, selectivity and greedy are simpler rules for comparison.",
    )
    cycle: Annotated[int, Field(ge=1, le=MAX_CYCLE)] = Field(
        default=8,
        description="For joins of three or more inputs: after so many batches, what their probes found "
        "is looked at and their orders are chosen again. A shorter cycle follows a stream that changes "
        "sooner, a longer one knows more. Where orders stay good, cycles become up to four times as long.",
    )
    history: Annotated[int, Field(ge=1, le=MAX_CYCLE)] = Field(
        default=3,
        description="For joins of three or more inputs: number of cycles over which figures of their "
        "probes are smoothed; the last one has the weight 2 / (history + 1).",
    )
    order: StageOrdering = Field(
        default="auto",
        description="For inner joins by several keys: the order in which inputs are joined. auto takes the one "
        "that is expected to be cheapest if something is known of the inputs (statistics), text the order of the "
        "SQL. It is decided when a checkpoint begins, and kept with it.",
    )
    path_limit: Positive = Field(
        default=10_000_000,
        description="For joins by paths: so many rows that are still to be joined further go on in small "
        "pieces, per task and batch. More of them go on in large pieces through files, so that a batch of "
        "any size takes bounded memory.",
    )
    window: Window | None = Field(
        default=None, description="Rows match only if their row numbers are this close."
    )
    memory_bytes: Memory | None = Field(
        default=None,
        alias="memory",
        description="Memory of one executor for the newest rows of the state and the filters of the "
        "older ones; older rows are sorted on disk. Absent: no limit.",
    )


class Batch(Model):
    """How much a batch takes, and how often one starts."""

    max_rows: Positive = Field(
        default=1_000_000, description="Largest number of rows in a batch, over all inputs."
    )
    interval_us: Duration | None = Field(
        default=None,
        alias="interval",
        description="Shortest time between the starts of two batches. 0s: a batch starts when the "
        "previous one ends. Absent: 1s if results are files, since each batch writes some, "
        "otherwise 0s.",
    )


class Checkpoint(Model):
    """Folder of the job's progress and state."""

    path: Folder = Field(description="A local or shared folder; relative to the folder of the spec file.")
    reset: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
        description="A new word starts a new checkpoint in the folder PATH@WORD. The old one stays "
        "where it is.",
    )
    sync: bool = Field(
        default=True,
        description="Whether each batch and its results are synced to the disk before the batch counts. "
        "Without this, batches may be a little faster, and a power cut may ruin the checkpoint and "
        "result files.",
    )

    @property
    def folder(self) -> Path:
        """The folder of this checkpoint: `path`, or PATH@WORD after a reset."""
        return self.path if self.reset is None else self.path.with_name(f"{self.path.name}@{self.reset}")


class LetterFolder(Model):
    """Folder of dead letters."""

    path: Folder = Field(description="Folder for this job alone, relative to the folder of the spec file.")


class RunPage(Model):
    """What the page of a run shows besides figures."""

    rows: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0,
        description="Show so many rows of the last results of each output, to everybody who may see the page. "
        "0: it shows no rows.",
    )


class Volume(Model):
    """A folder that driver and executors share; ignored by a local run."""

    model_config = ConfigDict(json_schema_extra=one_of("claim", "hostPath", "secret"))

    mount_path: Annotated[
        str, AfterValidator(_mount), WithJsonSchema({"type": "string", "pattern": MOUNT})
    ] = Field(
        description="Where the volume is mounted: in a folder whose name begins with data, media, mnt, "
        "secrets, srv, state or volumes. Paths of the spec begin with it."
    )
    claim: DnsName | None = Field(default=None, description="Name of a PersistentVolumeClaim.")
    host_path: str | None = Field(
        default=None,
        pattern=r"^/",
        description="Folder of the node, for clusters with one node or a shared mount.",
    )
    secret: DnsName | None = Field(
        default=None,
        description="Name of a Secret whose entries become files, such as passwords and certificates. "
        "Read only.",
    )
    read_only: bool = Field(default=False, description="Mount the volume read-only.")

    @property
    def written(self) -> bool:
        """Whether pods may write to the volume."""
        return not self.read_only and self.secret is None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if [self.claim, self.host_path, self.secret].count(None) != 2:
            refuse([Problem((), "needs a claim, a hostPath or a secret, and only one of them")])
        return self


class SecretKey(Model):
    """An entry of a Secret."""

    secret: DnsName = Field(description="Name of the Secret.")
    key: Annotated[str, StringConstraints(pattern=KEY)] = Field(description="Entry of the Secret.")


class Resources(Model):
    """CPU and local disk of a pod."""

    cpu_request: Cpu | None = Field(
        default=None,
        description="CPU request, such as 500m. Absent: that of the chart, or the number of cores.",
    )
    cpu_limit: Cpu | None = Field(default=None, description="CPU limit. Absent: none.")
    storage_bytes: Memory | None = Field(
        default=None,
        alias="storage",
        description="Local disk of the node, mostly for indexes: request and limit, beyond which the "
        "pod is evicted. Absent: no limit.",
    )


class Driver(Resources):
    """The pod that plans and commits; ignored by a local run."""

    cores: Positive = Field(default=1, description="Cores of the driver.")
    memory_bytes: Memory = quantity("2Gi", "memory", "Memory of the driver.")
    restarts: Annotated[int, Field(ge=0)] = Field(
        default=20,
        description="How often in a row the driver is restarted after it ended by itself. After that "
        "the job is Failed until its spec or image changes. The count starts again once a "
        "driver has worked for ten minutes.",
    )
    start_within_us: Annotated[Duration, Field(gt=0)] = quantity(
        "10m",
        "startWithin",
        "How long the driver may take to start, and executors once it works. After that, the job reports it and "
        "keeps trying.",
    )


class Executors(Resources):
    """Spark executors; ignored by a local run."""

    min: Positive = Field(default=1, description="Smallest number of executors.")
    max: Positive = Field(default=1, description="Largest number of executors.")
    instances: Positive | None = Field(
        default=None,
        description="Number of executors wanted now, between min and max. Absent: scaling decides, "
        "starting with min.",
    )
    spare: int = Field(
        default=0,
        ge=0,
        description="Executors in reserve, beyond those that are wanted: warm, but without units until more"
        " are wanted or one is lost. All of them together are never more than max.",
    )
    cores: Positive = Field(default=1, description="Cores of an executor.")
    memory_bytes: Memory = quantity("4Gi", "memory", "Memory of an executor.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.min > self.max:
            refuse([Problem(("min",), f"{self.min} is more than max, {self.max}; lower min or raise max")])
        if self.instances is not None and not self.min <= self.instances <= self.max:
            between = (
                f"{self.instances} is not between min, {self.min}, and max, {self.max}; change one of them"
            )
            refuse([Problem(("instances",), between)])
        if self.min + self.spare > self.max:
            room = (
                f"{self.spare} and min, {self.min}, are more than max, {self.max}; lower spare or raise max"
            )
            refuse([Problem(("spare",), room)])
        return self


class LagScaling(Model):
    """When executors are added for rows that wait, and how many are kept for those that come."""

    catch_up_us: Duration = quantity(
        "5m",
        "catchUp",
        "Rows that wait should be read within this time. If they will not be, executors are added. 0s: none"
        " are added, or kept, for rows that wait.",
    )
    utilisation: Fraction = Field(
        default=0.8,
        description="Share of the time that executors should be busy, with rows that come and rows that"
        " wait. The rest is a reserve.",
    )


class Scaling(Model):
    """When executors are added or removed; ignored by a local run."""

    mode: Literal["auto", "advise"] = Field(
        default="auto",
        description="auto changes the number of executors. advise only says in status and metrics what it"
        " would do.",
    )
    high: Fraction = Field(default=0.8, description="Memory load above which executors are added.")
    low: Fraction = Field(default=0.3, description="Memory load below which executors are removed.")
    target: Fraction = Field(default=0.6, description="Memory load that scaling aims for.")
    lag: LagScaling = Field(
        default_factory=LagScaling,
        description="When executors are added for rows that wait. The larger number wins: that for the"
        " state, or that for the lag.",
    )
    period_us: Annotated[Duration, Field(gt=0)] = quantity("60s", "period", "Time between decisions.")
    votes: Positive = Field(default=3, description="Number of consecutive periods that have to agree.")
    cool_down_us: Duration | None = Field(
        default=None,
        alias="coolDown",
        description="Time after a change in which nothing is decided. Absent: two periods.",
    )
    patience_us: Annotated[Duration, Field(gt=0)] = quantity(
        "5m", "patience", "Time for added executors to start. After that, those that have started are kept."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.low < self.target < self.high:
            order = f"low {self.low}, target {self.target}, high {self.high}"
            message = f"out of order ({order}); write low < target < high"
            refuse([Problem(("target",), message)])
        return self


class Spec(Model):
    """What to join, from which inputs, into which output."""

    sql: Query = Field(description="One SELECT over the inputs.")
    inputs: dict[InputName, Input] = Field(
        min_length=1, description="The inputs, by the names that the SQL uses."
    )
    views: dict[InputName, Query] = Field(
        default_factory=dict,
        description="Queries that the SQL, and other views, read by name, as if each stood in its WITH.",
    )
    parameters: dict[ParameterName, ParameterValue] = Field(
        default_factory=dict,
        description="Values that the SQL and the views name as ${name}: text, numbers, truth values, lists of them for "
        "IN, or {type: DATE, value: 2026-01-01}.",
    )
    functions: dict[InputName, UserFunction] = Field(
        default_factory=dict, description="Functions in Python that the SQL and the views call by name."
    )
    output: Output = Field(description="Where results go.")
    outputs: dict[OutputName, NamedOutput] = Field(
        default_factory=dict,
        description="Several results of one file instead of sql and output, by name (lower-case letters, digits and '-', at "
        "most 32): each has its sql and the fields of an output. They are one query with one checkpoint. Not in a cluster.",
    )
    join: JoinSettings = Field(
        default_factory=JoinSettings, description="How the state is laid out and how long it is kept."
    )
    batch: Batch = Field(
        default_factory=Batch, description="How much a batch takes, and how often one starts."
    )
    checkpoint: Checkpoint = Field(description="Where the job keeps its progress and state.")
    dead_letters: LetterFolder | None = Field(
        default=None,
        description="Where dead letters are kept: rows that onError and onLate leave out, as JSON lines in a folder for "
        "each batch.",
    )
    page: RunPage = Field(default_factory=RunPage, description="The page of a run.")
    volumes: tuple[Volume, ...] = Field(
        default=(), description="Folders that driver and executors share; ignored by a local run."
    )
    env: dict[VariableName, SecretKey] = Field(
        default_factory=dict,
        description="Environment variables of driver and executors, each from a Secret: logins, and where lineage "
        "and traces go. A local run uses those of its shell.",
    )
    driver: Driver = Field(
        default_factory=Driver, description="The pod that plans and commits; ignored by a local run."
    )
    executors: Executors | None = Field(default=None, description="Spark executors; ignored by a local run.")
    pods: Pods = Field(
        default_factory=Pods,
        description="Scheduling of driver and executors, and access to registries. Ignored by a local run.",
    )
    scaling: Scaling = Field(
        default_factory=Scaling, description="When executors are added or removed; ignored by a local run."
    )
    image: Annotated[str, StringConstraints(pattern=r"^\S+$")] | None = Field(
        default=None,
        description="Image of driver and executors. Absent: the operator's own image. Ignored by a "
        "local run.",
    )
    suspend: bool = Field(
        default=False,
        description="Suspend the job: it has no pods and keeps all state. Ignored by a local run.",
    )

    @model_validator(mode="before")
    @classmethod
    def _first(cls, given: Any) -> Any:
        """Where there are outputs, sql and output are those of the first one."""
        outputs = given.get("outputs") if isinstance(given, dict) else None
        if not isinstance(outputs, dict) or not outputs:
            return given
        if both := [name for name in ("sql", "output") if name in given]:
            refuse(
                [Problem((both[0],), "stands beside outputs; move it there, with a name, or remove outputs")]
            )
        first = next(iter(outputs.values()))
        if not isinstance(first, dict):
            return given
        return {
            **given,
            "sql": first.get("sql", "-"),
            "output": {k: v for k, v in first.items() if k != "sql"},
        }

    @property
    def results(self) -> "Mapping[str, Output]":
        """The outputs by their names; the only one has none."""
        return self.outputs or {"": self.output}

    @property
    def pace_us(self) -> int:
        """The shortest time between the starts of two batches, in µs."""
        if self.batch.interval_us is not None:
            return self.batch.interval_us
        return PACE_US if any(output.files is not None for output in self.results.values()) else 0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(problems(self))
        return self


class StreamJoin(Model):
    """A streaming join, written as SQL."""

    api_version: Literal["streamjoin.dev/v1alpha1"] = Field(description="Version of this schema.")
    kind: Literal["StreamJoin"] = Field(description="The kind of this document.")
    metadata: Metadata = Field(description="What the job is called.")
    spec: Spec = Field(description="What to join, from which inputs, into which output.")
