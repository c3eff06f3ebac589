"""The commands of `streamjoin`. Each is one function; all errors end in `told`.

Exit codes: 0 done; 1 not done, running it again may help; 2 a human must act first: the command line, a spec,
an input or the state is wrong, or the program is. The reason is on stderr. Commands import what they need
when they run: `validate` starts without Spark.
"""

import sys
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.terminal import say
from jobs.usage import Condition, Usage
from joinlib.errors import StreamJoinError, exit_code
from joinlib.lean import lean, loading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from joinlib.plan import Pipeline
    from joinlib.spec.model import StreamJoin

app = typer.Typer(
    name="streamjoin",
    help="Streaming joins written as SQL. Start with: streamjoin validate FILE",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
command = partial(app.command, cls=Usage)

File = Annotated[Path, typer.Argument(metavar="FILE", help="A spec file (YAML).", show_default=False)]


class Form(StrEnum):
    """How a plan is shown."""

    text = "text"
    json = "json"
    mermaid = "mermaid"


@app.callback()
def streamjoin() -> None:
    """Keep every command a subcommand, however many there are; before each, which `--help` does not wait for."""
    lean()


@command()
def validate(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Spec files (YAML).", show_default=False)
    ],
) -> None:
    """Check spec files, and that their SQL can be run.

    Every mistake of the spec is named, at its line. Of its SQL these are all unknown inputs, columns and functions, else the
    first mistake; also what no query uses is named.
    """
    from joinlib.plan.unused import unused

    failed = 0
    for file in files:
        try:
            document, _ = planned(file)
        except StreamJoinError as error:
            complain(error)
            failed += 1
        else:
            notes = [*_registered(document), *unused(document.spec)]
            say("\n".join([f"{file}: valid", *(f"  {note}" for note in notes)]))
    if failed:
        raise typer.Exit(2)


def _registered(document: "StreamJoin") -> "Iterator[str]":
    """Yield the columns of inputs whose schemas are in a registry."""
    from joinlib.spec import ddl

    for name, given in document.spec.inputs.items():
        if given.kafka is not None and given.kafka.registry is not None:
            yield f"{name}: {ddl.to_ddl(given.arrow_schema)}"


@command()
def plan(
    file: File,
    form: Annotated[Form, typer.Option("--format", help="For people, programs, or a picture.")] = Form.text,
    alternatives: Annotated[
        bool,
        typer.Option(
            "--alternatives",
            help="List the orders of joins that were considered, with what each is expected to take; * is the one "
            "that is run.",
        ),
    ] = False,
    diff: Annotated[
        Path | None,
        typer.Option(
            metavar="OLD",
            help="Show instead what has changed since this spec, and whether its state can go on; exit code 2 if not.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show how a spec's SQL is run, what is stored for how long, and why."""
    if form is not Form.text and (diff is not None or alternatives):
        other = "--alternatives" if diff is None else "--diff"
        raise typer.BadParameter(
            f"{form} is a form of the plan; {other} is text: leave one out", param_hint="--format"
        )
    if diff is not None:
        _show_change(diff, file)
        return
    from dataclasses import replace

    from joinlib.plan import landing
    from joinlib.plan.explain import orders
    from joinlib.plan.explain.formats import render
    from joinlib.plan.explain.words import spoken
    from joinlib.plan.unused import unused

    document, pipeline = planned(file)
    if alternatives:
        say("\n".join(orders.alternatives(spoken(pipeline))))
        return
    pipeline = replace(pipeline, notes=(*pipeline.notes, *unused(document.spec)))
    typer.echo(render(pipeline, form.value))
    for name in document.spec.results if form is Form.text else ():
        if lines := list(landing.describe(document.spec, name)):
            title = f"Output {name}".rstrip()
            say("\n".join(["", title, *(f"  {line}" for line in lines)]))


def _show_change(old: Path, new: Path) -> None:
    from jobs.cli.diff import differ
    from joinlib.spec import telling_of

    before, (after, _) = planned(old)[0], planned(new)
    with telling_of(new):
        change = differ(before, after)
    say(change.text)
    if change.reasons:
        raise typer.Exit(2)


def planned(file: Path) -> "tuple[StreamJoin, Pipeline]":
    """Return the job of a spec, and its plan.

    Raises:
        SpecError: The spec or its SQL cannot be run; the message lists every reason.
    """
    from jobs.flow import default_cores
    from joinlib.checkpoint.planned import plan_of
    from joinlib.expr.declared import loaded
    from joinlib.plan.spec import functions
    from joinlib.registered import load
    from joinlib.spec import telling_of

    document = load(file)
    with telling_of(file):
        pipeline = plan_of(document, cores=default_cores())
        for function in functions(document.spec).values():
            loaded(function)
    return document, pipeline


@command()
def lineage(file: File) -> None:
    """Print what a spec reads and writes, and of which columns each column is made, as an event of OpenLineage."""
    import json
    from datetime import UTC, datetime

    from jobs.lineage.event import job_event, subject
    from jobs.lineage.told import namespace

    document, pipeline = planned(file)
    about = subject(document, pipeline, namespace(document))
    typer.echo(json.dumps(job_event(about, datetime.now(UTC)), indent=2))


@command("test")
def run_cases(
    file: File,
    cases: Annotated[
        Path | None,
        typer.Option(help="The file of cases; absent: NAME.test.yaml beside NAME.yaml.", show_default=False),
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Run this case; may be repeated. Absent: all.", show_default=False),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Also write the outcome as JUnit XML.", show_default=False),
    ] = None,
) -> None:
    """Run a spec's cases, rows that arrive and results that are expected, in this process and without Spark."""
    import time

    from jobs.cli.cases import report
    from joinlib.spec.cases import cases_beside, load_cases

    document, _ = planned(file)
    given = load_cases(cases or cases_beside(file))
    verdicts = []
    for verdict in report.judged(document, given, case or (), time.perf_counter):
        say(verdict.line)
        verdicts.append(verdict)
    failures = [verdict.failure for verdict in verdicts if verdict.failure]
    if junit is not None:
        report.junit(junit, file.stem, verdicts)
    say("\n".join(["", *failures, f"{len(verdicts)} cases, {len(failures)} failed"]).strip())
    if failures:
        raise typer.Exit(2)


@command()
def run(
    file: File,
    until_done: Annotated[
        bool, typer.Option("--until-done", help="Read what is there now, close the inputs and end.")
    ] = False,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Cores to use; absent: all.", show_default=False)
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A setting of Spark, where a batch needs it; may be repeated.",
            show_default=False,
        ),
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a table that is redrawn.")] = False,
    page: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="PORT",
            help="Serve a page about the run at this port, to browsers of this machine; 0: any port.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a spec on this machine; run it again to go on where it was. Ctrl-C stops it."""
    from joinlib.spark.boot import archive, prefork

    prefork.begin()  # while it loads what tasks run, this process loads the planner
    with loading():
        from jobs.cli.logs import aside
        from joinlib.registered import load
        from joinlib.spec import telling_of

    document, settings = load(file), dict(map(_setting, conf or []))
    log = document.spec.checkpoint.folder / "logs" / "spark.log"
    with aside(log) as terminal, telling_of(file):
        with loading():
            from jobs.cli.run import Options, run

        used_spark = run(document, Options(until_done, cores, settings, plain, page), terminal, log)
    if used_spark:
        archive.make_later()


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--conf")
    return key, value


@command()
def status(file: File) -> None:
    """Show what a spec's checkpoint holds and whether a run is alive, without starting Spark."""
    from jobs.cli.status import status
    from joinlib.registered import load

    say(status(load(file)))


@command()
def whynot(file: File, condition: Condition) -> None:
    """Say for each input whether rows came that meet a condition, and what became of each."""
    from jobs.cli import why
    from joinlib.registered import load
    from joinlib.spec import telling_of

    document = load(file)
    with telling_of(file):
        say(why.whynot(document, condition))


@command()
def why(file: File, condition: Condition) -> None:
    """Show for each row of the result that meets a condition the rows of inputs that it was made of."""
    from jobs.cli import why
    from joinlib.registered import load
    from joinlib.spec import telling_of

    document = load(file)
    with telling_of(file):
        say(why.why(document, condition))


@command()
def state(
    file: File,
    sql: Annotated[
        str | None,
        typer.Argument(
            metavar="SELECT", help="A query; absent: list the tables that there are.", show_default=False
        ),
    ] = None,
) -> None:
    """Query what a checkpoint stores, while the job runs: rows of joins and window functions, groups as they stand."""
    from rich.console import Console

    from jobs.cli.state import state, stored
    from joinlib.registered import load
    from joinlib.spec import telling_of

    document = load(file)
    with telling_of(file):
        known = stored(document)
    state(document, known, sql, Console(width=None if sys.stdout.isatty() else 160))


@command()
def report(
    file: File,
    output: Annotated[
        Path | None,
        typer.Option(help="The archive to write; absent: NAME-report-TIME.zip here.", show_default=False),
    ] = None,
) -> None:
    """Collect what helps others to help, in one archive: spec, plan, status, log, versions; no secrets and no rows."""
    from jobs.cli.report import report
    from joinlib.registered import load

    say(f"written: {report(load(file), output)}; look at it before you pass it on")


@command()
def restore(
    file: File,
    to_batch: Annotated[
        int | None,
        typer.Option(
            min=0, help="Go back to this batch; absent: only list those that are whole.", show_default=False
        ),
    ] = None,
) -> None:
    """Go back to an earlier batch of a damaged checkpoint, and withdraw the result files of later batches."""
    from jobs.cli.restore import restore
    from joinlib.registered import load

    say(restore(load(file), to_batch))


@command()
def fork(
    file: File,
    new: Annotated[
        Path,
        typer.Option(
            "--as", metavar="NEW", help="The spec file (YAML) of the second job.", show_default=False
        ),
    ],
) -> None:
    """Begin a second job with the state of a first one, which may run on beside it; no stored row is copied."""
    from jobs.cli.fork import fork
    from joinlib.registered import load
    from joinlib.spec import telling_of

    first, second = load(file), load(new)
    with telling_of(new):
        say(fork(first, second))


@command()
def compare(
    one: Annotated[Path, typer.Argument(metavar="A", help="A spec file (YAML).", show_default=False)],
    other: Annotated[Path, typer.Argument(metavar="B", help="A spec file (YAML).", show_default=False)],
) -> None:
    """Compare the results of two jobs, one of them a fork of the other, up to where both have read the same rows.

    The first job's may also be in a Kafka topic or a table of PostgreSQL. Exit code 2: they differ.
    """
    from jobs.cli.compare import compared
    from joinlib.registered import load

    found = compared(load(one), load(other))
    say(found.text)
    if not found.equal:
        raise typer.Exit(2)


@command()
def switch(
    file: File,
    to: Annotated[
        Path,
        typer.Option(
            "--to",
            metavar="FORK",
            help="The spec file (YAML) of the job's fork, in the same folder.",
            show_default=False,
        ),
    ],
) -> None:
    """Write the spec of a job's fork into the job's file; its checkpoint and its outputs stay those of the job.

    The job must not run. Its next run goes on behind its last batch: no row is lost, and none is there twice.
    """
    from jobs.cli.switch import switch
    from joinlib.spec import telling_of

    with telling_of(to):
        say(switch(file, to))


@command()
def scale(
    file: File,
    simulate: Annotated[
        Path,
        typer.Option(
            metavar="TRACE",
            help="CSV with the columns seconds,bytes,arriving,waiting: state of all executors; rows that come per"
            " second and rows that wait, which may be left out.",
            show_default=False,
        ),
    ],
    startup: Annotated[float, typer.Option(min=0, help="Seconds that a new executor needs.")] = 30.0,
    rate: Annotated[
        float | None,
        typer.Option(
            min=1, help="Rows that one executor reads per second while rows wait.", show_default=False
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw it, as PNG, SVG or PDF.", show_default=False)
    ] = None,
) -> None:
    """Show what a spec's scaling would do with a load, without running anything."""
    from jobs.cli import scale
    from joinlib.registered import load

    policy, ticks = scale.simulated(load(file), simulate, startup, rate)
    say(scale.table(ticks))
    if plot is not None:
        scale.plot(policy, ticks, plot)


@command()
def sql(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="A spec file (YAML), whose inputs and views are there.", show_default=False
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=PATH",
            help="A folder or a file as an input; may be repeated. Its columns are those of its first file.",
            show_default=False,
        ),
    ] = None,
    time: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME.COLUMN",
            help="The event time of such an input; may be repeated.",
            show_default=False,
        ),
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Option(
            "--command", "-c", metavar="SQL", help="Run this and end; may be repeated.", show_default=False
        ),
    ] = None,
) -> None:
    """Try queries at a prompt, over the inputs of a spec or over files: SELECT, WATCH, EXPLAIN, CREATE VIEW, HELP."""
    from jobs.cli.shell.start import prompt

    if not prompt(file, inputs or [], time or [], command or []):
        raise typer.Exit(2)


@command()
def schema() -> None:
    """Print the JSON schema of a spec file, for editors."""
    import json

    from joinlib.spec import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


def complain(error: StreamJoinError) -> None:
    """Print a mistake to stderr, without a traceback."""
    say(str(error), err=True)


@contextmanager
def told() -> "Iterator[None]":
    """The one place where errors become messages and an exit code."""
    try:
        yield
    except StreamJoinError as error:
        complain(error)
        sys.exit(exit_code(error))
    except OSError as error:
        from jobs.cli.denied import denied

        if (mistake := denied(error)) is None:  # no file of people's
            raise
        complain(mistake)
        sys.exit(exit_code(mistake))


def main() -> None:
    """Run the command line."""
    with told():
        app()
