"""Fail-fast input checks, before Spark starts: they take milliseconds, and Spark takes seconds."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from joinlib.engine.sources import SourcePlan, SourceTask
from joinlib.errors import SpecError
from joinlib.lookup.task import TableTask
from joinlib.source import FilesConfig, GeneratorConfig, PostgresLogConfig, done, feeds, make
from joinlib.source.files import FileInput


def check(task: SourceTask, *, until_done: bool) -> None:
    """Check that every input can be read, and that files which are done can be archived or deleted.

    Args:
        task: The inputs of the query.
        until_done: Whether the run ends once all that is there has been read; an endless generator is then an
            error.

    Raises:
        StreamJoinError: An input cannot be read: whatever its first `discover` would raise.
        SpecError: An option of an input cannot be honoured.
    """
    for source in task.sources:
        if until_done and _endless(source):
            raise SpecError(
                f"inputs.{source.name}: the generator has no end, so --until-done would not end either; add"
                " `rows`"
            )
        if isinstance(source.config, FilesConfig) and source.config.done != "keep":
            done.check(source.config.path, source.config.archive)
        known = (task.logs / f"{source.name}.jsonl").exists()
        if not known and not isinstance(source.config, PostgresLogConfig):  # to discover would make a slot
            with tempfile.TemporaryDirectory() as logs:
                make(source.name, source.config, source.schema, Path(logs)).discover()
    for feed in feeds(task.sources, task.logs):
        feed.check()


def rewritten(task: SourceTask) -> Iterator[str]:
    """Yield a warning for each input with files that were written again after they were read: nobody reads them again."""
    for source in task.sources:
        if not (task.logs / f"{source.name}.jsonl").exists():
            continue
        known = make(source.name, source.config, source.schema, task.logs, mends=False)
        found = list(known.rewritten()) if isinstance(known, FileInput) else []
        if found:
            was, now = found[0]
            more = f"; so have {len(found) - 1:,} more" if len(found) > 1 else ""
            yield (
                f"inputs.{source.name}: {was.path} has {now.size} bytes and had {was.size} when it was read{more}. A name"
                " is read once, so write new rows to new files"
            )


def tables(tasks: tuple[TableTask, ...]) -> tuple[TableTask, ...]:
    """Return the tables after a look at each: that it exists, has the declared columns, and how large it is.

    Waits for a database that is not reachable yet.
    """
    if not tasks:
        return ()
    from joinlib.lookup.load import decided  # a job without tables need not wait for kernels

    return tuple(decided(task) for task in tasks)


def _endless(source: SourcePlan) -> bool:
    config = source.config
    return isinstance(config, GeneratorConfig) and config.rows is None and config.rows_per_second is None
