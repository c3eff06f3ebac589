"""Compiles a spec into the tasks that run it.

Planning happens here, once per run; nothing is started or read.
"""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from joinlib.checkpoint.planned import plan_of
from joinlib.engine.sources import SourcePlan, SourceTask
from joinlib.engine.task import JoinTask
from joinlib.expr.declared import loaded
from joinlib.lookup.files import FilesTable
from joinlib.lookup.postgres import PostgresTable
from joinlib.lookup.task import TableTask
from joinlib.model.joins import Lookup
from joinlib.model.stage import Pipeline
from joinlib.model.tuning import Tuning
from joinlib.plan.asking import with_asking_stages
from joinlib.plan.letters import letters_of
from joinlib.plan.spec import functions
from joinlib.postgres import PostgresConfig
from joinlib.registered import schemas
from joinlib.sink.config import KafkaSinkConfig, SinkConfig
from joinlib.sink.postgres.config import OutputDatabase, PostgresSinkConfig
from joinlib.source import Config, FilesConfig, GeneratorConfig, KafkaConfig, PostgresLogConfig, RowChanges
from joinlib.source.parse import CsvFormat
from joinlib.spec.base import Model
from joinlib.spec.inputs import Files, Generator, Input, KafkaTopics, Postgres
from joinlib.spec.model import StreamJoin
from joinlib.spec.output import Output

T = TypeVar("T", CsvFormat, FilesConfig, GeneratorConfig, OutputDatabase, PostgresConfig)


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


def compiled(
    document: StreamJoin, tasks: int, tuning: Tuning | None = None, *, executors: bool = False
) -> Compiled:
    """Compile a spec.

    Args:
        document: The spec.
        tasks: The number of map tasks per batch, one per core.
        tuning: Thresholds of the state; None means the defaults.
        executors: Whether the cores are those of executors, of which there may be more later.

    Raises:
        SpecError: The spec or its SQL cannot be run.
    """
    spec, tuning = document.spec, tuning or Tuning()
    given = spec.join
    tuning = replace(
        tuning,
        probe_order=given.probe_order,
        probe_cycle=given.cycle,
        probe_history=given.history,
        path_rows=given.path_limit,
        sync=spec.checkpoint.sync,
    )
    pipeline = plan_of(document, cores=tasks, executors=executors)
    for function in functions(spec).values():
        loaded(function)  # here, rather than in the first task
    if pipeline.budget is not None:
        tuning = replace(tuning, levelled=True, seal_bytes=pipeline.budget.head)
    checkpoint = spec.checkpoint.folder
    named = dict.fromkeys(p.source for p in pipeline.inputs)
    sources = tuple(_source(name, spec.inputs[name], checkpoint) for name in named)
    states = checkpoint / "state"
    tables = tuple(_table(n, lookup, document, checkpoint) for n, lookup in pipeline.lookups)
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
    sinks = tuple(_sink(output, spec.page.rows) for output in spec.results.values())
    join = JoinTask(pipeline, states, tuning, sinks, tables, letters=letters_of(pipeline, spec))
    return Compiled(document, pipeline, source, join, checkpoint)


def _source(name: str, plan: Input, checkpoint: Path) -> SourcePlan:
    files = plan.files.max_files_per_batch if plan.files else None
    size = plan.kafka.max_bytes_per_batch if plan.kafka else None
    kept = plan.on_error == "deadLetter"
    return SourcePlan(name, _config(name, plan, checkpoint), plan.arrow_schema, files, size, kept)


def _table(stage: int, lookup: Lookup, document: StreamJoin, checkpoint: Path) -> TableTask:
    name = lookup.table.source
    given = document.spec.inputs[name]
    folder = checkpoint / "tables" / lookup.table.alias
    schema = pa.schema([given.arrow_schema.field(c) for c in lookup.table.read])
    if asked := given.postgres:
        return TableTask(lookup, PostgresTable(database(name, asked), schema), folder, stage)
    assert given.files is not None
    files = files_of(given.files)
    return TableTask(lookup, FilesTable(name, files, given.arrow_schema, lookup.table.read), folder, stage)


def with_tables(plan: Compiled, tables: tuple[TableTask, ...]) -> Compiled:
    """Return the plan with its tables replaced, once their sizes are known: some are then asked in a stage of their own."""
    pipeline = with_asking_stages(plan.pipeline.looking_up([task.lookup for task in tables]))
    places = {lookup.table.alias: number for number, lookup in pipeline.lookups}
    tables = tuple(replace(task, stage=places[task.alias]) for task in tables)
    source = replace(plan.source, pipeline=pipeline, tables=tables)
    letters = letters_of(pipeline, plan.document.spec)
    join = replace(plan.join, pipeline=pipeline, tables=tables, letters=letters)
    return replace(plan, pipeline=pipeline, source=source, join=join)


def _config(name: str, plan: Input, checkpoint: Path) -> Config:
    if plan.files:
        return files_of(plan.files, changes(plan))
    if plan.generator:
        return generator(plan.generator, plan.event_time.column if plan.event_time else None)
    if plan.postgres:
        return log_of(name, plan.postgres, plan.upsert.key if plan.upsert else ())
    assert plan.kafka is not None
    return topics(name, plan.kafka, schemas(checkpoint, name), changes(plan))


# Workers that read no topic do not load the spec's models, which takes them half a second: what they need is
# copied. The configurations have no defaults, and their fields have the names that they have in the spec.


def changes(given: Input) -> RowChanges | None:
    """Return how rows of an input say that they came or went; None if they only come."""
    if given.changes is None and given.upsert is None:
        return None
    return RowChanges(given.changes.op if given.changes else None, given.upsert.key if given.upsert else ())


def files_of(files: Files, changes: RowChanges | None = None) -> FilesConfig:
    """Return the configuration of a folder."""
    return _filled(FilesConfig, files, csv=_filled(CsvFormat, files.csv), changes=changes)


def generator(made: Generator, time_column: str | None) -> GeneratorConfig:
    """Return the configuration of a generator."""
    return _filled(GeneratorConfig, made, time_column=time_column)


def topics(name: str, kafka: KafkaTopics, schemas: Path, changes: RowChanges | None = None) -> KafkaConfig:
    """Return the configuration of an input over topics."""
    return KafkaConfig(name, kafka, _filled(CsvFormat, kafka.csv), schemas, changes)


def database(name: str, table: Postgres) -> PostgresConfig:
    """Return the configuration of a table of a database."""
    return _filled(PostgresConfig, table, table.security, name=name)


def log_of(name: str, table: Postgres, key: tuple[str, ...] = ()) -> PostgresLogConfig:
    """Return the configuration of a table that is followed by the server's log."""
    assert table.changes is not None  # else it is no stream
    return PostgresLogConfig(database(name, table), table.changes.slot, table.changes.publication, key)


def _filled(kind: type[T], *models: Model, **others: Any) -> T:
    names = {f.name for f in fields(kind)} - others.keys()
    found = {n: getattr(m, n) for m in models for n in names & type(m).model_fields.keys()}
    return kind(**found, **others)


def _sink(output: Output, shown: int) -> SinkConfig:
    """Return the configuration of an output. shown: rows of a batch for the page of the run."""
    shared: Any = {"mode": output.mode, "key": output.key, "show": shown}
    if files := output.files:
        return SinkConfig("files", folder=files.path, format=files.format, **shared)
    if console := output.console:
        return SinkConfig("console", **{**shared, "show": console.rows})
    if output.noop:
        return SinkConfig("noop", **shared)
    if output.postgres:
        return SinkConfig("postgres", postgres=results(output), **shared)
    assert output.kafka is not None
    key = output.key or output.kafka.key
    return SinkConfig("kafka", kafka=KafkaSinkConfig(output.kafka, output.mode, key), **shared)


def results(output: Output) -> PostgresSinkConfig:
    """Return the configuration of a table that takes results."""
    table = output.postgres
    assert table is not None and output.mode != "changelog"
    database = _filled(OutputDatabase, table, table.security, name="output", query=None)
    return PostgresSinkConfig(database, output.mode, output.key)
