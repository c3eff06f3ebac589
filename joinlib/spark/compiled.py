"""A spec as Spark tasks: pure, nothing is started or read."""

from dataclasses import dataclass
from pathlib import Path

from joinlib.errors import SpecError
from joinlib.plan import Stage, of_spec
from joinlib.source import Config, FilesConfig, GeneratorConfig
from joinlib.source.parse import CsvFormat
from joinlib.spark.source import SourcePlan, SourceTask
from joinlib.spark.task import Emit, JoinTask
from joinlib.spec.inputs import Input
from joinlib.spec.model import StreamJoin
from joinlib.spec.output import Output
from joinlib.state.tuning import Tuning


@dataclass(frozen=True)
class Compiled:
    """What a run needs to know."""

    document: StreamJoin
    stage: Stage
    source: SourceTask
    join: JoinTask
    checkpoint: Path


def compiled(document: StreamJoin, tasks: int, tuning: Tuning | None = None) -> Compiled:
    """The tasks of a spec. `tasks`: map tasks of a batch, one for each core."""
    spec, tuning = document.spec, tuning or Tuning()
    stage = of_spec(document)
    checkpoint = spec.checkpoint.folder
    named = dict.fromkeys(p.source for p in stage.inputs)
    sources = tuple(_source(name, spec.inputs[name]) for name in named)
    state = checkpoint / "state" / "0"
    source = SourceTask(
        stage, sources, checkpoint / "sources", checkpoint / "stop", spec.batch.max_rows, tasks, state, tuning
    )
    join = JoinTask(stage, state, tuning, _emit(spec.output))
    return Compiled(document, stage, source, join, checkpoint)


def _source(name: str, plan: Input) -> SourcePlan:
    max_files = plan.files.max_files_per_batch if plan.files else None
    return SourcePlan(name, _config(name, plan), plan.arrow_schema, max_files)


def _config(name: str, plan: Input) -> Config:
    if files := plan.files:
        csv = CsvFormat(files.csv.header, files.csv.delimiter, files.csv.quote, files.csv.null)
        return FilesConfig(Path(files.path), files.format, files.order_by, files.on_bad_file, csv)
    if made := plan.generator:
        time = plan.event_time.column if plan.event_time else None
        return GeneratorConfig(made.rows, made.rows_per_second, made.keys, made.skew, made.seed, time)
    raise SpecError(
        f"inputs.{name}: only files and generator can be run so far; kafka and postgres are still to come"
    )


def _emit(output: Output) -> Emit:
    if output.mode != "append":
        raise SpecError(
            "output.mode: changelog comes with aggregates, which are still to come; write mode: append"
        )
    if files := output.files:
        return Emit("files", Path(files.path), files.format)
    if console := output.console:
        return Emit("console", show=console.rows)
    if output.noop:
        return Emit("noop")
    raise SpecError("output.kafka: writing to Kafka is still to come; write files, console or noop")
