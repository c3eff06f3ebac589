"""The output of a spec: where the results go."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from joinlib.spec.base import Duration, Folder, Memory, Model, Problem, one_of, quantity, refuse
from joinlib.spec.inputs import Format, MessageFormat, Positive
from joinlib.spec.kafka import KafkaConnection, Topic

SINKS = ("files", "kafka", "console", "noop")


class Compact(Model):
    """Gathers small batches into one folder before readers see them."""

    every_us: Annotated[Duration, Field(gt=0)] = quantity(
        "1m", "every", "How long results may wait for those of later batches."
    )
    size_bytes: Memory = quantity("64Mi", "size", "Size of the waiting results at which they wait no longer.")


class OutputFiles(Model):
    """A folder in which each batch appears as a whole."""

    path: Folder = Field(description="Folder, relative to the folder of the spec file.")
    format: Format = Field(default="parquet", description="Format of the files.")
    compact: Compact | None = Field(
        default=None,
        description="Gather small batches into one folder before readers see them. Absent: each batch "
        "is a folder of its own at once.",
    )


class KafkaOutput(KafkaConnection):
    """A Kafka topic, which gets each result exactly once for readers with `read_committed`."""

    topic: Topic = Field(description="The topic to write to. It must exist.")
    format: MessageFormat = Field(
        default="json",
        description="With json and csv a message is a row, with arrow an IPC stream of many rows.",
    )
    key: tuple[str, ...] = Field(
        default=(),
        description="Columns of the message key, which chooses the partition. The key is the value of "
        "one column as text, or a JSON array of several. Not for format arrow.",
    )
    on_forgotten: Literal["fail", "repeat"] = Field(
        default="fail",
        description="What happens with a batch that was interrupted longer ago than the brokers keep "
        "offsets: fail stops the job, repeat writes the batch, possibly again.",
    )
    transaction_timeout_us: Annotated[Duration, Field(ge=1_000_000)] = quantity(
        "10m",
        "transactionTimeout",
        "How long a task may take from its first row to its commit; brokers allow transaction.max.timeout.ms"
        " at most (15 min).",
    )

    @model_validator(mode="after")
    def _keyed(self) -> Self:
        if self.key and self.format == "arrow":
            refuse(
                [
                    Problem(
                        ("key",), "a message of format arrow holds many rows; remove key, or use json or csv"
                    )
                ]
            )
        if len(set(self.key)) < len(self.key):
            refuse([Problem(("key",), "names a column twice; remove one")])
        return self


class Console(Model):
    """The first rows of each batch, on the terminal."""

    rows: Positive = Field(default=20, description="Largest number of rows shown for a batch.")


class Noop(Model):
    """Counts results and drops them."""


class Output(Model):
    """Exactly one destination of results."""

    model_config = ConfigDict(json_schema_extra=one_of(*SINKS))

    mode: Literal["append", "changelog"] = Field(
        default="append",
        description="append: rows are final. changelog: one row for each group that a batch has changed.",
    )
    files: OutputFiles | None = Field(default=None, description="Files in a folder.")
    kafka: KafkaOutput | None = Field(default=None, description="A Kafka topic.")
    console: Console | None = Field(default=None, description="The terminal.")
    noop: Noop | None = Field(default=None, description="Results are dropped, for measurements.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        given = [name for name in SINKS if getattr(self, name) is not None]
        if len(given) != 1:
            found = (
                f"has {' and '.join(given)}; keep one"
                if given
                else f"has no sink; add one of {', '.join(SINKS)}"
            )
            refuse([Problem((), found)])
        return self
