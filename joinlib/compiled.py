"""Compiles a spec into the tasks that run it.

Planning happens here, once per run; nothing is started or read.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from joinlib.engine.sources import SourcePlan, SourceTask
from joinlib.engine.task import JoinTask
from joinlib.errors import SpecError
from joinlib.lookup.files import FilesTable
from joinlib.lookup.postgres import PostgresConfig, PostgresTable
from joinlib.lookup.task import TableTask
from joinlib.model.joins import Lookup
from joinlib.model.stage import Pipeline
from joinlib.model.tuning import Tuning
from joinlib.plan import pipeline_of
from joinlib.sink.config import KafkaSinkConfig, SinkConfig
from joinlib.source import Config, FilesConfig, GeneratorConfig, KafkaConfig
from joinlib.source.parse import CsvFormat
from joinlib.spec.inputs import Input, KafkaTopics
from joinlib.spec.kafka import KafkaConnection
from joinlib.spec.model import StreamJoin
from joinlib.spec.nearest import hint
from joinlib.spec.output import KafkaOutput, Output


@dataclass(frozen=True)
class Compiled:
    """Everything that a run needs to know."""

    document: StreamJoin
    pipeline: Pipeline
    source: SourceTask
    join: JoinTask
    checkpoint: Path

    @property
    def cores(self) -> int:
        """The number of map tasks per batch."""
        return self.source.tasks


def compiled(document: StreamJoin, tasks: int, tuning: Tuning | None = None) -> Compiled:
    """Compile a spec.

    Args:
        document: The spec.
        tasks: The number of map tasks per batch, one per core.
        tuning: Thresholds of the state; None means the defaults.

    Raises:
        SpecError: The spec or its SQL cannot be run.
    """
    spec, tuning = document.spec, tuning or Tuning()
    tuning = replace(tuning, probe_order=spec.join.probe_order, sync=spec.checkpoint.sync)
    pipeline = pipeline_of(document)
    if pipeline.budget is not None:
        tuning = replace(tuning, levelled=True, seal_bytes=pipeline.budget.head)
    checkpoint = spec.checkpoint.folder
    named = dict.fromkeys(p.source for p in pipeline.inputs)
    sources = tuple(_source(name, spec.inputs[name]) for name in named)
    states = checkpoint / "state"
    tables = tuple(_table(lookup, document, checkpoint) for lookup in pipeline.last.lookups)
    source = SourceTask(
        pipeline,
        sources,
        checkpoint / "sources",
        checkpoint / "stop",
        spec.batch.max_rows,
        tasks,
        states,
        tuning,
        tables,
    )
    join = JoinTask(pipeline, states, tuning, _sink(spec.output, pipeline), tables)
    return Compiled(document, pipeline, source, join, checkpoint)


def _source(name: str, plan: Input) -> SourcePlan:
    files = plan.files.max_files_per_batch if plan.files else None
    size = plan.kafka.max_bytes_per_batch if plan.kafka else None
    return SourcePlan(name, _config(name, plan), plan.arrow_schema, files, size)


def _table(lookup: Lookup, document: StreamJoin, checkpoint: Path) -> TableTask:
    name = lookup.table.source
    given = document.spec.inputs[name]
    folder = checkpoint / "tables" / lookup.table.alias
    schema = pa.schema([given.arrow_schema.field(c) for c in lookup.table.read])
    if asked := given.postgres:
        config = PostgresConfig(
            name=name,
            table=asked.table,
            query=asked.query,
            host=asked.host,
            port=asked.port,
            database=asked.database,
            user=asked.user,
            uri_env=asked.uri_env,
            password_env=asked.password_env,
            password_file=asked.password_file,
            mode=asked.security.mode,
            ca_file=asked.security.ca_file,
            cert_file=asked.security.cert_file,
            key_file=asked.security.key_file,
            timeout_us=asked.timeout_us,
            patience_us=asked.patience_us,
        )
        return TableTask(lookup, PostgresTable(config, schema), folder)
    files = _config(name, given)
    assert isinstance(files, FilesConfig)
    return TableTask(lookup, FilesTable(name, files, given.arrow_schema, lookup.table.read), folder)


def with_tables(plan: Compiled, tables: tuple[TableTask, ...]) -> Compiled:
    """Return the plan with its tables replaced, once their sizes are known."""
    source, join = replace(plan.source, tables=tables), replace(plan.join, tables=tables)
    return replace(plan, source=source, join=join)


def _config(name: str, plan: Input) -> Config:
    if files := plan.files:
        csv = CsvFormat(files.csv.header, files.csv.delimiter, files.csv.quote, files.csv.null)
        return FilesConfig(
            files.path, files.format, files.order_by, files.on_bad_file, csv, files.done, files.archive
        )
    if made := plan.generator:
        time = plan.event_time.column if plan.event_time else None
        return GeneratorConfig(made.rows, made.rows_per_second, made.keys, made.skew, made.seed, time)
    assert plan.kafka is not None  # a database table is not a stream
    return _topics(name, plan.kafka)


def _topics(name: str, kafka: KafkaTopics) -> KafkaConfig:
    csv = CsvFormat(False, kafka.csv.delimiter, kafka.csv.quote, kafka.csv.null)
    return KafkaConfig(
        connection=KafkaConnection(bootstrap_servers=kafka.bootstrap_servers, security=kafka.security),
        topics=kafka.names,
        format=kafka.format,
        starting=kafka.starting_offsets,
        on_missing=kafka.on_missing_offsets,
        on_bad=kafka.on_bad_message,
        dead_letters=kafka.dead_letters.path if kafka.dead_letters else None,
        metadata=tuple(kafka.metadata.columns.items()),
        csv=csv,
        name=name,
    )


def _sink(output: Output, pipeline: Pipeline) -> SinkConfig:
    if files := output.files:
        return SinkConfig("files", Path(files.path), files.format)
    if console := output.console:
        return SinkConfig("console", show=console.rows)
    if output.noop:
        return SinkConfig("noop")
    assert output.kafka is not None
    return SinkConfig("kafka", kafka=_target(output.kafka, pipeline))


def _target(kafka: KafkaOutput, pipeline: Pipeline) -> KafkaSinkConfig:
    names, grouping = pipeline.schema.names, pipeline.grouping
    changelog = grouping is not None and grouping.changelog
    if grouping and changelog and grouping.keys and not kafka.key and kafka.format != "arrow":
        raise SpecError(
            "output.kafka.key: a changelog needs the columns that name a group as the key of its messages; add them"
        )
    for key in kafka.key:
        if key not in names:
            raise SpecError(
                f"output.kafka.key: the result has no column {key!r}; {hint(key, names, 'columns')}"
            )
    time_us = kafka.transaction_timeout_us
    return KafkaSinkConfig(kafka, kafka.topic, kafka.format, kafka.key, changelog, transaction_us=time_us)
