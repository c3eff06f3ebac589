"""Can the inputs be read? Asked before Spark starts, because the answer takes milliseconds and Spark takes seconds."""

import tempfile
from pathlib import Path

from joinlib.errors import SpecError
from joinlib.lookup.task import TableTask
from joinlib.source import FilesConfig, GeneratorConfig, done, make
from joinlib.spark.source import SourcePlan, SourceTask


def check(task: SourceTask, *, until_done: bool) -> None:
    """Raises what reading the inputs for the first time would raise, and what would keep read files from going."""
    for source in task.sources:
        if until_done and _endless(source):
            raise SpecError(
                f"inputs.{source.name}: the generator has no end, so --until-done would not end either; give it `rows`"
            )
        if isinstance(source.config, FilesConfig) and source.config.done != "keep":
            done.check(source.config.path, source.config.archive)
        if not (task.logs / f"{source.name}.jsonl").exists():
            with tempfile.TemporaryDirectory() as logs:
                make(source.name, source.config, source.schema, Path(logs)).discover()


def tables(tasks: tuple[TableTask, ...]) -> tuple[TableTask, ...]:
    """The tables once they have been seen: there, of the columns that are declared, and how large. Waits for a database."""
    if not tasks:
        return ()
    from joinlib.lookup.load import decided  # a job without tables need not wait for kernels

    return tuple(decided(task) for task in tasks)


def _endless(source: SourcePlan) -> bool:
    config = source.config
    return isinstance(config, GeneratorConfig) and config.rows is None and config.rows_per_second is None
