"""The inputs of a spec: where their rows come from, and in which columns."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

import pyarrow as pa
from pydantic import ConfigDict, Field, StringConstraints, model_validator

from joinlib.spec import ddl
from joinlib.spec.base import (
    FROM_REGISTRY,
    ArrowSchema,
    Duration,
    Folder,
    Memory,
    Model,
    Problem,
    is_from_registry,
    one_of,
    quantity,
    refuse,
)
from joinlib.spec.changes import Changes, Upsert, key_fault, op_fault
from joinlib.spec.kafka import About, KafkaConnection, KeyFormat, SchemaRegistry, Topic
from joinlib.spec.nearest import hint
from joinlib.spec.postgres import PostgresConnection

Format = Literal["parquet", "csv", "jsonl"]
Order = Literal["name", "modified"]
OnBadFile = Literal["fail", "skip"]
Done = Literal["keep", "archive", "delete"]
MessageFormat = Literal["json", "arrow", "csv"]
TopicFormat = Literal["json", "arrow", "csv", "debezium", "avro", "protobuf"]
REGISTERED = ("avro", "protobuf")  # formats whose schemas are in a registry
TimeUnit = Literal["millis", "micros", "nanos"]
CacheMode = Literal["full", "incremental", "auto"]
Role = Literal["stream", "table"]
METADATA_TYPES: dict[About, tuple[pa.DataType, ...]] = {
    "key": (pa.string(), pa.binary()),
    "timestamp": (ddl.SIMPLE["TIMESTAMP"],),
    "topic": (pa.string(),),
    "partition": (pa.int32(), pa.int64()),
    "offset": (pa.int64(),),
    "headers": (ddl.parse("x ARRAY<STRUCT<key: STRING, value: BINARY>>").field(0).type,),
}
SOURCES = ("files", "generator", "kafka", "postgres")
Positive = Annotated[int, Field(ge=1)]
SIGN = r"^[\x00-\x09\x0B\x0C\x0E-\x7F]$"  # one ASCII character that ends no line
SLOT = r"^[a-z0-9_]{1,63}$"
Sign = Annotated[str, StringConstraints(pattern=SIGN)]


class EventTime(Model):
    """The column with the event time, and how late rows may arrive."""

    column: str = Field(description="A TIMESTAMP or TIMESTAMP_NTZ column of the schema.")
    delay_us: Duration = quantity(
        "0s", "delay", "How far a row may be behind the highest event time before it is late."
    )
    idle_us: Duration | None = Field(
        default=None,
        alias="idle",
        description="An input that was silent for this long no longer holds the watermark back.",
    )


class Csv(Model):
    """How CSV files are written."""

    header: bool = Field(default=True, description="The first line of a file holds the column names.")
    delimiter: Sign = Field(default=",", description="The character between two values.")
    quote: Sign = Field(default='"', description="The character around a quoted value.")
    null: str = Field(default="", description="The unquoted text that stands for NULL.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.delimiter == self.quote:
            refuse([Problem(("quote",), f"is {self.quote!r}, and so is delimiter; change one of them")])
        return self


class MessageCsv(Csv):
    """How messages that are a line of CSV each are written."""

    header: bool = Field(default=False, description="False: messages have no header.")


class Files(Model):
    """A folder of files, which may grow while the job runs."""

    path: Folder = Field(description="Folder, relative to the folder of the spec file.")
    format: Format = Field(default="parquet", description="Format of the files.")
    order_by: Order = Field(
        default="modified", description="Order in which files are read: by name, or by time of modification."
    )
    max_files_per_batch: Positive | None = Field(
        default=None, description="Largest number of files in a batch. Absent: no limit."
    )
    on_bad_file: OnBadFile = Field(
        default="fail",
        description="What happens with an unreadable file: fail stops the job, skip leaves the file out "
        "and counts it.",
    )
    done: Done = Field(
        default="keep",
        description="What happens with a file once it was read and no batch needs it any more: keep "
        "leaves it, archive moves it to the folder archive, delete removes it. Only for "
        "streams, and only if no other input reads the folder.",
    )
    archive: Folder | None = Field(
        default=None,
        description="Folder for files that were read, on the same disk as path. Only with done: archive.",
    )
    csv: Csv = Field(default_factory=Csv, description="How CSV files are written. Only with format csv.")
    refresh_us: Annotated[Duration, Field(gt=0)] | None = Field(
        default=None,
        alias="refresh",
        description="For a table: how often it is reloaded. Absent: it is loaded once.",
    )
    budget_bytes: Memory = quantity(
        "256Mi",
        "budget",
        "For a table: one that exceeds it while it is read is set aside on the disk and sorted in parts.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.format != "csv" and self.csv != Csv():
            refuse([Problem(("csv",), f"is for format csv, but format is {self.format}; remove one of them")])
        if (self.done == "archive") != (self.archive is not None):
            refuse([Problem(("archive",), "belongs to done: archive; write both or none")])
        return self


class Generator(Model):
    """Generated rows, the same for the same seed."""

    rows_per_second: Positive | None = Field(
        default=None, description="Rows per second. Absent: as fast as they are read."
    )
    rows: Positive | None = Field(default=None, description="Total number of rows. Absent: unlimited.")
    keys: Positive = Field(default=10_000, description="Number of distinct keys.")
    skew: float = Field(
        default=0.0,
        ge=0,
        le=10,
        allow_inf_nan=False,
        description="Zipf exponent of the keys. With 0 all keys are equally frequent.",
    )
    seed: int = Field(
        default=0, ge=0, description="Seed of the generator. The same seed gives the same rows."
    )


class KafkaMetadata(Model):
    """Columns of the schema that are filled from a message's metadata, not from its value."""

    key: str | None = Field(
        default=None,
        description="Column for the key: STRING or BINARY; with keyFormat avro or protobuf, of any type that the key "
        "can be read as.",
    )
    timestamp: str | None = Field(default=None, description="TIMESTAMP column for the message's time.")
    topic: str | None = Field(default=None, description="STRING column for the name of the topic.")
    partition: str | None = Field(default=None, description="INT or BIGINT column for the partition.")
    offset: str | None = Field(default=None, description="BIGINT column for the offset.")
    headers: str | None = Field(
        default=None, description="ARRAY<STRUCT<key: STRING, value: BINARY>> column for the headers."
    )

    @property
    def columns(self) -> dict[About, str]:
        """The column for each kind of metadata that is used."""
        given = {about: getattr(self, about) for about in METADATA_TYPES}
        return {about: column for about, column in given.items() if column is not None}


class DeadLetters(Model):
    """Folder for messages that cannot be decoded."""

    path: Folder = Field(description="Folder for this job alone, relative to the folder of the spec file.")


class Debezium(Model):
    """What messages of Debezium do not say themselves."""

    timestamps: TimeUnit = Field(
        default="micros",
        description="Unit of numbers in TIMESTAMP columns. Only for messages without a schema: where there "
        "is one, it says the unit.",
    )
    unavailable: str = Field(
        default="__debezium_unavailable_value",
        min_length=1,
        description="The text that stands for a value that was not sent, as in the connector's "
        "unavailable.value.placeholder.",
    )


class KafkaTopics(KafkaConnection):
    """Kafka topics."""

    model_config = ConfigDict(json_schema_extra=one_of("topic", "topics"))

    topic: Topic | None = Field(default=None, description="The topic to read.")
    topics: tuple[Topic, ...] | None = Field(
        default=None, min_length=1, description="Several topics with the same columns, instead of one topic."
    )
    format: TopicFormat = Field(
        default="json",
        description="Format of the values: json for an object, arrow for a stream of record batches, "
        "csv for one line, debezium for the envelope that Debezium writes as JSON, avro for a record and "
        "protobuf for a message whose schema is in a registry.",
    )
    key_format: KeyFormat = Field(
        default="text",
        description="Format of the keys: text for the bytes as they are, avro for a value and protobuf for a message "
        "whose schema is in the registry. avro only with format avro, protobuf only with format protobuf.",
    )
    registry: SchemaRegistry | None = Field(
        default=None, description="The registry of the messages' schemas. Only with format avro or protobuf."
    )
    csv: MessageCsv = Field(
        default_factory=MessageCsv, description="How lines are written. Only with format csv."
    )
    debezium: Debezium = Field(
        default_factory=Debezium,
        description="What the messages do not say themselves. Only with format debezium.",
    )
    starting_offsets: Literal["earliest", "latest"] = Field(
        default="earliest", description="Where a job without a checkpoint starts to read."
    )
    on_missing_offsets: Literal["fail", "reset"] = Field(
        default="fail",
        description="What happens if messages were deleted before they were read: fail stops the job, "
        "reset continues with what is there.",
    )
    on_bad_message: Literal["fail", "skip", "deadLetter"] = Field(
        default="fail",
        description="What happens with a message that cannot be decoded: fail stops the job, skip "
        "leaves it out and counts it, deadLetter also keeps it in a file.",
    )
    dead_letters: DeadLetters | None = Field(
        default=None, description="Where these messages are kept. Only with onBadMessage: deadLetter."
    )
    metadata: KafkaMetadata = Field(
        default_factory=KafkaMetadata,
        description="Columns that are filled from the message's metadata instead of its value.",
    )
    max_bytes_per_batch: Memory = quantity(
        "256Mi", "maxBytesPerBatch", "Bytes of messages per batch at most, estimated; one slice at least."
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The topics, from either of the two fields."""
        return self.topics or ((self.topic,) if self.topic else ())

    def types(self, about: About) -> tuple[pa.DataType, ...]:
        """Return the types that a column of metadata may have; none if it may have any."""
        return () if about == "key" and self.key_format != "text" else METADATA_TYPES[about]

    @property
    def connection(self) -> KafkaConnection:
        """The cluster alone: inputs that read the same one share its client."""
        return KafkaConnection(bootstrap_servers=self.bootstrap_servers, security=self.security)

    @model_validator(mode="after")
    def _described(self) -> Self:
        refuse([*self._topics(), *self._letters()])
        return self

    def _topics(self) -> list[Problem]:
        if (self.topic is None) == (self.topics is None):
            return [Problem((), "needs a topic, or topics, and not both")]
        if len(set(self.names)) < len(self.names):
            return [Problem(("topics",), "names a topic twice; remove one")]
        if self.csv.header:
            return [Problem(("csv", "header"), "is true, but messages have no header; write header: false")]
        if self.format != "csv" and self.csv != MessageCsv():
            return [Problem(("csv",), f"is for format csv, but format is {self.format}; remove one of them")]
        if self.format != "debezium" and self.debezium != Debezium():
            said = f"is for format debezium, but format is {self.format}; remove one of them"
            return [Problem(("debezium",), said)]
        if (self.format in REGISTERED) != (self.registry is not None):
            return [Problem(("registry",), "belongs to format: avro or protobuf; write both or none")]
        if self.format != "protobuf" and self.registry is not None and self.registry.message is not None:
            return [Problem(("registry", "message"), "is for format: protobuf; remove one of them")]
        return self._keys()

    def _keys(self) -> list[Problem]:
        if self.key_format not in ("text", self.format):
            said = f"is {self.key_format}, but format is {self.format}; correct one of them"
            return [Problem(("keyFormat",), said)]
        if self.key_format == "text" and self.registry is not None and self.registry.key_subject is not None:
            said = "is for keyFormat: avro or protobuf; write both or none"
            return [Problem(("registry", "keySubject"), said)]
        return []

    def _letters(self) -> list[Problem]:
        if (self.on_bad_message == "deadLetter") == (self.dead_letters is not None):
            return []
        return [
            Problem(
                ("deadLetters",),
                "belongs to onBadMessage: deadLetter; write both or none",
            )
        ]


class PostgresLog(Model):
    """How the changes of a table are read from the server's log (logical decoding, pgoutput)."""

    slot: str = Field(
        pattern=SLOT,
        description="The replication slot. The job makes it, and it must not be used by anybody else. Inputs of"
        " one database share one slot by naming the same.",
    )
    publication: str = Field(min_length=1, description="The publication that the table is in.")


class Postgres(PostgresConnection):
    """A table of a PostgreSQL database, looked up by key, or followed with all its changes."""

    model_config = ConfigDict(json_schema_extra=one_of("table", "query"))

    table: str | None = Field(
        default=None, min_length=1, description="The table, with its schema if it is not the default one."
    )
    query: str | None = Field(
        default=None, min_length=1, description="A SELECT whose result is used instead of a table."
    )
    changes: PostgresLog | None = Field(
        default=None,
        description="The input is a stream: the rows of the table, then its changes from the server's log. With"
        " `upsert` beside `postgres`, its key is that of the table; without it, the table has REPLICA IDENTITY"
        " FULL.",
    )
    cache: CacheMode = Field(
        default="auto",
        description="full keeps the whole table, incremental keeps the rows that were looked up, auto "
        "chooses full if the table fits into the budget.",
    )
    refresh_us: Annotated[Duration, Field(gt=0)] | None = Field(
        default=None,
        alias="refresh",
        description="With cache full: how often the table is reloaded. With incremental: how long an "
        "answer is valid. Absent: no limit.",
    )
    budget_bytes: Memory = quantity(
        "256Mi",
        "budget",
        "Memory that an incremental cache may take, over all units. With cache full: a "
        "table that exceeds it while it is read is set aside on the disk and sorted in parts.",
    )

    def _own(self) -> list[Problem]:
        if (self.table is None) == (self.query is None):
            return [Problem((), "needs a table or a query, and not both")]
        if self.changes is None:
            return []
        if self.query is not None:
            return [Problem(("query",), "has no log; with changes, name a table")]
        given = self.model_fields_set & {"cache", "refresh_us", "budget_bytes"}
        names = {n: type(self).model_fields[n].alias or n for n in given}
        return [Problem((names[n],), "is for tables; with changes, remove it") for n in sorted(given)]


class RowStatistics(Model):
    """What is known of the rows: it decides in which order inputs are joined."""

    rows: Positive | None = Field(
        default=None,
        description="Rows that are kept at a time. Absent: those of the generator or of the Parquet files that are "
        "there, as far as they are known.",
    )
    distinct: dict[str, Positive] = Field(
        default_factory=dict,
        description="For columns: the number of their different values. Absent, for a column of an equality: the "
        "rows of the smallest input that has one side of it.",
    )


class Input(Model):
    """A named stream or table: its columns and exactly one source of its rows."""

    model_config = ConfigDict(json_schema_extra=one_of(*SOURCES))

    arrow_schema: ArrowSchema = Field(
        alias="schema",
        description="The columns, as a Spark DDL string; or fromRegistry, which takes those of the messages' schema "
        "(kafka with format avro or protobuf).",
    )
    role: Role | None = Field(
        default=None,
        description="A stream is joined as it arrives, a table is looked up. Default: table for "
        "postgres without changes, otherwise stream.",
    )
    event_time: EventTime | None = Field(
        default=None,
        description="The column with the event time. Needed for time bounds, windows and retention.",
    )
    changes: Changes | None = Field(
        default=None,
        description="Which column says whether a row came or went. Absent: rows only come.",
    )
    upsert: Upsert | None = Field(
        default=None,
        description="The last row of each key counts. A Kafka message without a value deletes its key.",
    )
    on_error: Literal["fail", "deadLetter"] = Field(
        default="fail",
        description="What happens with a row that cannot be read, or for which an expression fails before it is "
        "joined: fail stops the job, deadLetter leaves the row out and keeps it as a dead letter.",
    )
    on_late: Literal["drop", "deadLetter"] = Field(
        default="drop",
        description="What happens with a row behind the watermark: drop leaves it out and counts it, deadLetter also "
        "keeps it as a dead letter.",
    )
    statistics: RowStatistics = Field(
        default_factory=RowStatistics,
        description="What is known of the rows. It counts when a checkpoint begins.",
    )
    files: Files | None = Field(default=None, description="Rows from a folder of files.")
    generator: Generator | None = Field(default=None, description="Generated rows.")
    kafka: KafkaTopics | None = Field(default=None, description="Rows from Kafka topics.")
    postgres: Postgres | None = Field(default=None, description="Rows from a table of a PostgreSQL database.")

    @property
    def is_stream(self) -> bool:
        """Whether the input is joined as it arrives, not looked up."""
        return self.role != "table" and (self.postgres is None or self.postgres.changes is not None)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if is_from_registry(self.arrow_schema):
            refuse([*self._sources(), *self._registered()])
        else:
            refuse([*self._sources(), *self._times(), *self._metadata(), *self._changing(), *self._counted()])
        refuse([*self._kept()])
        return self

    def _registered(self) -> list[Problem]:
        """Check what can be, as long as the columns are not known."""
        if self.kafka is not None and self.kafka.registry is not None:
            return []
        said = f"{FROM_REGISTRY} is for kafka with format: avro or protobuf and registry; write the columns"
        return [Problem(("schema",), said)]

    def _kept(self) -> Iterator[Problem]:
        """Check that rows which are to be kept as dead letters can become some."""
        if self.on_error == "deadLetter" and not self.is_stream:
            yield Problem(("onError",), "is for streams: a table is loaded whole, or not at all; remove it")
        if self.on_late == "deadLetter" and self.event_time is None:
            yield Problem(
                ("onLate",), "needs an eventTime: without one no row is late; add it, or remove onLate"
            )

    def _counted(self) -> Iterator[Problem]:
        """Check that statistics are of columns, none of which has more values than there are rows."""
        rows, names = self.statistics.rows, self.arrow_schema.names
        for column, values in self.statistics.distinct.items():
            place = ("statistics", "distinct", column)
            if column not in names:
                yield Problem(place, f"no column {column!r} in the schema; {hint(column, names, 'columns')}")
            elif rows is not None and values > rows:
                yield Problem(place, f"is {values}, but there are {rows} rows; correct one of them")

    def _changing(self) -> list[Problem]:
        """Check what says how rows change: only rows of streams do, and they must be told apart."""
        found = [Problem((name,), said) for name in ("changes", "upsert") if (said := self._static(name))]
        op = self.changes.op if self.changes else None
        if op is not None and (said := op_fault(op, self.arrow_schema)):
            found.append(Problem(("changes", "op"), said))
        if self.upsert is not None and (said := key_fault(self.upsert.key, op, self.arrow_schema)):
            found.append(Problem(("upsert", "key"), said))
        if self.kafka is not None and self.kafka.format == "debezium":
            if self.upsert is None:
                key = "add the columns of the table's key, such as upsert: {key: [id]}"
                found.append(Problem(("upsert",), f"is missing; kafka.format: debezium needs it: {key}"))
            if self.changes is not None:
                said = "is not needed: messages of kafka.format: debezium say what they are; remove it"
                found.append(Problem(("changes",), said))
        if self.changes is not None and self.postgres is not None and self.is_stream:
            found.append(
                Problem(("changes",), "is not needed: the log of postgres says what changed; remove it")
            )
        return found

    def _static(self, name: str) -> str | None:
        """Return why rows of this input cannot change as the field `name` says; None if they can."""
        if getattr(self, name) is None:
            return None
        if self.generator is not None:
            return "generated rows only come; remove it, or use files or kafka"
        if not self.is_stream:
            return "is for streams: a table is read as it is; remove it, or make the input a stream"
        return None

    def _sources(self) -> list[Problem]:
        given = [name for name in SOURCES if getattr(self, name) is not None]
        if len(given) != 1:
            found = (
                f"has {' and '.join(given)}; keep one"
                if given
                else f"has no source; add one of {', '.join(SOURCES)}"
            )
            return [Problem((), found)]
        allowed: dict[str, tuple[Role, ...]] = {"files": ("stream", "table"), "postgres": ("table",)}
        if self.postgres and self.postgres.changes:
            allowed["postgres"] = ("stream",)
        if self.files and self.files.refresh_us is not None and self.role != "table":
            return [Problem(("files", "refresh"), "is for tables; add role: table, or remove it")]
        if self.files and self.files.done != "keep" and self.role == "table":
            return [Problem(("files", "done"), "is for streams: a table is read again; remove it")]
        if self.role is not None and self.role not in allowed.get(given[0], ("stream",)):
            if self.postgres and self.role == "stream":
                said = "is a stream for what follows a table's changes; add postgres.changes, or remove role"
                return [Problem(("role",), said)]
            return [
                Problem(("role",), f"{given[0]} cannot be a {self.role}; remove role, or use another source")
            ]
        return []

    def _times(self) -> list[Problem]:
        if self.event_time is None:
            return []
        name, names = self.event_time.column, self.arrow_schema.names
        if name not in names:
            return [
                Problem(
                    ("eventTime", "column"),
                    f"no column {name!r} in the schema; {hint(name, names, 'columns')}",
                )
            ]
        if not pa.types.is_timestamp(self.arrow_schema.field(name).type):
            return [
                Problem(
                    ("eventTime", "column"),
                    f"column {name!r} is not a TIMESTAMP; declare it as one in the schema",
                )
            ]
        return []

    def _metadata(self) -> list[Problem]:
        """Check that each column that metadata names exists, is named once, and has the type of its value."""
        if self.kafka is None:
            return []
        columns, found = self.kafka.metadata.columns, []
        for about, column in columns.items():
            place = ("kafka", "metadata", about)
            if column not in self.arrow_schema.names:
                near = hint(column, self.arrow_schema.names, "columns")
                found.append(Problem(place, f"no column {column!r} in the schema; {near}"))
            elif (want := self.kafka.types(about)) and (
                have := self.arrow_schema.field(column).type
            ) not in want:
                types = " or ".join(ddl.to_ddl(pa.schema([("x", t)]))[2:] for t in want)
                found.append(Problem(place, f"column {column!r} is {have}; declare it as {types}"))
        if len(set(columns.values())) < len(columns):
            found.append(Problem(("kafka", "metadata"), "names a column twice; remove one"))
        if set(self.arrow_schema.names) <= set(columns.values()):
            found.append(
                Problem(("kafka", "metadata"), "leaves no column for the value; add one to the schema")
            )
        return found
