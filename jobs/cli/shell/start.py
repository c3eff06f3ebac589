"""Starts the prompt: what runs queries in the background, the inputs, and a folder for what queries keep until it ends."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.cli.logs import aside
from jobs.cli.shell import tables
from jobs.cli.shell.catalog import Catalog, of_inputs
from jobs.cli.shell.loop import HELP, Prompt, interactive, piped, typed
from jobs.flow import default_cores
from joinlib.errors import SpecError
from joinlib.registered import load
from joinlib.spec.model import StreamJoin
from joinlib.spec.nearest import hint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def prompt(file: Path | None, inputs: Sequence[str], times: Sequence[str], commands: Sequence[str]) -> bool:
    """Run the commands, else what is piped in, else what is typed. Return whether all succeeded.

    A mistake that somebody has typed is no failure of the prompt.

    Raises:
        StreamJoinError: There is nothing to query.
    """
    import sys

    from rich.console import Console

    with tempfile.TemporaryDirectory(prefix="streamjoin-sql-") as name:
        folder = Path(name)
        catalog = Catalog(_document(file, inputs, times), folder)
        log = folder / "spark.log"
        with aside(log) as terminal, _session() as spark:
            console = Console(file=terminal, width=None if terminal.isatty() else 160)
            prompted = Prompt(catalog, console, spark, log)
            if commands:
                prompted.run(text for each in commands for text in _cut(each))
            elif not interactive():
                prompted.run(piped(sys.stdin))
            else:
                console.print(
                    f"{', '.join(catalog.columns())}\n{HELP}", style="dim", highlight=False, markup=False
                )
                prompted.run(typed(prompted, terminal, _state() / "sql-history"))
                return True
        return not prompted.failed


def _cut(text: str) -> list[str]:
    import io

    return list(piped(io.StringIO(text)))


def _document(file: Path | None, inputs: Sequence[str], times: Sequence[str]) -> StreamJoin:
    names = [text.partition("=")[0] for text in inputs]
    _known(times, names)
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise SpecError(f"--input {twice[0]}=: it is there twice; give each input a name of its own")
    given = dict(tables.given(text, list(times)) for text in inputs)
    if file is None:
        if not given:
            raise SpecError("there is nothing to query; name a spec file, or write --input NAME=PATH")
        return of_inputs(given)
    document = load(file)
    if not given:
        return document
    both = {**document.spec.inputs, **of_inputs(given).spec.inputs}
    return document.model_copy(update={"spec": document.spec.model_copy(update={"inputs": both})})


def _known(times: Sequence[str], names: Sequence[str]) -> None:
    """Refuse event times of what is no --input."""
    for time in times:
        name, dot, column = time.partition(".")
        if not dot or not column:
            raise SpecError(f"--time {time}: write NAME.COLUMN, such as orders.ordered_at")
        if name not in names:
            near = f"; {hint(name, names, 'there is')}" if names else ""
            raise SpecError(f"--time {time}: there is no --input {name}{near}")


@contextlib.contextmanager
def _session() -> "Iterator[Callable[[], SparkSession]]":
    """Yield what gives the session, which is made for the first query that needs one."""
    from joinlib.spark.boot import prefork
    from joinlib.spark.session import start

    prefork.begin()  # meanwhile it loads what tasks run
    made: list[SparkSession] = []

    @cache
    def session() -> "SparkSession":
        made.append(start(default_cores()))
        return made[0]

    try:
        yield session
    finally:
        for spark in made:
            spark.stop()


def _state() -> Path:
    """Where programs keep what was typed."""
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "streamjoin"
