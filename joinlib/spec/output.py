"""The output of a spec: where the results go."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from joinlib.spec.base import Duration, Folder, Memory, Model, Problem, one_of, quantity, refuse
from joinlib.spec.inputs import REGISTERED, Format, Positive
from joinlib.spec.kafka import KafkaConnection, KeyFormat, SchemaRegistry, Topic
from joinlib.spec.postgres import PostgresConnection

SINKS = ("files", "kafka", "postgres", "console", "noop")
Mode = Literal["append", "changelog", "upsert"]
ResultFormat = Literal["json", "csv", "arrow", "debezium", "avro", "protobuf"]


def field_of(name: str) -> str:
    """Return the field of the spec that has an output, by its name; the only one has none."""
    return f"outputs.{name}" if name else "output"


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
    format: ResultFormat = Field(
        default="json",
        description="With json and csv a message is a row, with arrow an IPC stream of many rows. debezium "
        "is Debezium's JSON envelope, for results that change. avro is a record and protobuf a message whose schema "
        "is in a registry.",
    )
    registry: SchemaRegistry | None = Field(
        default=None,
        description="The registry that gets the messages' schema. Only with format avro or protobuf.",
    )
    key: tuple[str, ...] = Field(
        default=(),
        description="Columns of the message key, which chooses the partition. The key is the value of "
        "one column as text, or a JSON array of several. Not for format arrow, and not beside output.key.",
    )
    key_format: KeyFormat = Field(
        default="text",
        description="Format of the keys: text as they are, avro for a record and protobuf for a message of their columns "
        "whose schema is in the registry. avro only with format avro, protobuf only with format protobuf.",
    )
    on_forgotten: Literal["fail", "repeat"] = Field(
        default="fail",
        description="What happens with a batch that was interrupted longer ago than the brokers keep "
        "offsets: fail stops the job, repeat writes the batch, possibly again.",
    )
    transaction_timeout_us: Annotated[Duration, Field(ge=1_000_000)] = quantity(
        "10m",
        "transactionTimeout",
        "How long a task may take from its first row to its commit: at least 1s; brokers allow"
        " transaction.max.timeout.ms at most (15 min).",
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

    @model_validator(mode="after")
    def _registered(self) -> Self:
        if (self.format in REGISTERED) != (self.registry is not None):
            refuse([Problem(("registry",), "belongs to format: avro or protobuf; write both or none")])
        if self.registry is not None and self.registry.message is not None:
            refuse([Problem(("registry", "message"), "is for messages in Protobuf that are read; remove it")])
        if self.key_format not in ("text", self.format):
            said = f"is {self.key_format}, but format is {self.format}; correct one of them"
            refuse([Problem(("keyFormat",), said)])
        if self.key_format == "text" and self.registry is not None and self.registry.key_subject is not None:
            said = "is for keyFormat: avro or protobuf; write both or none"
            refuse([Problem(("registry", "keySubject"), said)])
        return self


class PostgresOutput(PostgresConnection):
    """A table of a PostgreSQL database, which gets each result exactly once."""

    table: str = Field(
        min_length=1,
        description="The table, with its schema if it is not the default one. It must exist, with a column "
        "for each of the result.",
    )


class Console(Model):
    """The first rows of each batch, on the terminal."""

    rows: Positive = Field(default=20, description="Largest number of rows shown for a batch.")


class Noop(Model):
    """Counts results and drops them."""


class Output(Model):
    """Exactly one destination of results."""

    model_config = ConfigDict(json_schema_extra=one_of(*SINKS))

    mode: Mode = Field(
        default="append",
        description="append: rows are final. changelog: each row says in _change_type what happened to it, "
        "and in _batch when. upsert: the row of a key replaces the one before it, or goes.",
    )
    key: tuple[str, ...] = Field(
        default=(),
        description="Columns of the result that tell its rows apart. Needed for upsert; in a changelog a row "
        "that replaces another of its key is an update.",
    )
    on_error: Literal["fail", "deadLetter"] = Field(
        default="fail",
        description="What happens with a joined row, a group or a row of a window function for which a condition, an "
        "aggregate or a column of a select list fails: fail stops the job, deadLetter leaves it out and keeps it as a "
        "dead letter.",
    )
    files: OutputFiles | None = Field(default=None, description="Files in a folder.")
    kafka: KafkaOutput | None = Field(default=None, description="A Kafka topic.")
    postgres: PostgresOutput | None = Field(default=None, description="A table of a PostgreSQL database.")
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
        refuse([*self._keyed(), *self._possible(), *self._messages()])
        return self

    @property
    def adds_columns(self) -> bool:
        """Whether rows that come out say what happened to them, by columns that a changelog adds."""
        return self.mode == "changelog" or (self.mode == "upsert" and not (self.kafka or self.postgres))

    def _keyed(self) -> Iterator[Problem]:
        if self.mode == "upsert" and not self.key:
            yield Problem(("key",), "is missing: by it mode upsert finds the row to replace; add its columns")
        if self.mode == "append" and self.key:
            yield Problem(
                ("key",), "is for results that change; remove it, or write mode: upsert, or mode: changelog"
            )
        if len(set(self.key)) < len(self.key):
            yield Problem(("key",), "names a column twice; remove one")

    def _possible(self) -> Iterator[Problem]:
        if self.mode == "upsert" and self.files:
            yield Problem(
                ("mode",), "is upsert, but files that readers see cannot be changed; write mode: changelog"
            )
        if self.mode == "changelog" and self.postgres:
            yield Problem(
                ("mode",),
                "is changelog, but a table holds rows, not what happened to them; write mode: upsert with a"
                " key, or mode: append",
            )

    def _messages(self) -> Iterator[Problem]:
        if self.kafka is None:
            return
        place = ("kafka", "format")
        if self.key and self.kafka.key:
            yield Problem(
                ("kafka", "key"),
                "stands beside output.key, which is the key of messages too; remove this one",
            )
        if self.kafka.key_format != "text" and not (self.key or self.kafka.key):
            said = f"is {self.kafka.key_format}, but messages have no key; add kafka.key, or remove it"
            yield Problem(("kafka", "keyFormat"), said)
        if self.mode == "upsert" and self.kafka.format == "arrow":
            yield Problem(
                place, "is arrow, whose messages hold many rows and have no key; write json, csv or debezium"
            )
        if self.mode == "append" and self.kafka.format == "debezium":
            yield Problem(
                place,
                "is debezium, which says what happened to a row; write mode: changelog, or mode: upsert, or"
                " format: json",
            )


class NamedOutput(Output):
    """One of several results, with its query and exactly one destination."""

    sql: Annotated[str, StringConstraints(pattern=r"\S")] = Field(
        description="One SELECT over the inputs and views."
    )
