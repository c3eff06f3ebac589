"""The commands of `kubectl streamjoin`. Each is one function; all errors end in `main`, as in `streamjoin`.

kubectl finds the program by its name, `kubectl-streamjoin`, and it asks with the rights of whoever runs it.
"""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.terminal import say
from jobs.usage import Condition, Usage
from joinlib.errors import StreamJoinError, exit_code

if TYPE_CHECKING:
    from jobs.kubectl.ask import Question
    from jobs.kubectl.cluster import ClusterNamespace

app = typer.Typer(
    name="kubectl streamjoin",
    help="StreamJoins of a cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
command = partial(app.command, cls=Usage)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A StreamJoin.", show_default=False)]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Its namespace; absent: that of the context.", show_default=False),
]
Context = Annotated[
    str | None, typer.Option(help="A context of the kubeconfig; absent: the current one.", show_default=False)
]


@command()
def status(name: Name, namespace: Namespace = None, context: Context = None) -> None:
    """Show what a job does and what is wrong with it: conditions, figures, decisions of scaling, events."""
    from jobs.kubectl.words import lines

    cluster = _cluster(namespace, context)
    say("\n".join(lines(cluster.get(name), cluster.events(name))))


@command()
def logs(
    name: Name,
    namespace: Namespace = None,
    context: Context = None,
    pod: Annotated[
        str | None, typer.Option(help="A pod of the job; absent: the driver's.", show_default=False)
    ] = None,
    tail: Annotated[int, typer.Option(min=1, help="So many of the last lines.")] = 200,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with lines to come.")] = False,
) -> None:
    """Show the log of a job's driver, or of another of its pods."""
    for line in _cluster(namespace, context).log(name, pod, tail, follow=follow):
        say(line)


@command()
def whynot(name: Name, condition: Condition, namespace: Namespace = None, context: Context = None) -> None:
    """Say for each input of a job whether rows came that meet a condition, and what became of each.

    A process beside the job's driver answers, which takes the right to exec in its pod.
    """
    _ask("whynot", name, condition, _cluster(namespace, context))


@command()
def why(name: Name, condition: Condition, namespace: Namespace = None, context: Context = None) -> None:
    """Show for each row of a job's result that meets a condition the rows of inputs that it was made of.

    A process beside the job's driver answers, which takes the right to exec in its pod.
    """
    _ask("why", name, condition, _cluster(namespace, context))


def _ask(question: "Question", name: str, condition: str, cluster: "ClusterNamespace") -> None:
    from jobs.kubectl.ask import ask

    if code := ask(cluster, name, question, condition, lambda line, err: say(line, err=err)):
        raise typer.Exit(code)


@command()
def scale(
    name: Name,
    executors: Annotated[
        int | None,
        typer.Argument(min=1, help="So many executors; absent: as scaling decides.", show_default=False),
    ] = None,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Set the number of executors of a job, or give it back to scaling; nothing restarts."""
    _cluster(namespace, context).patch(name, {"executors": {"instances": executors}})
    say(f"{name}: {'as scaling decides' if executors is None else f'{executors} executors'}")


@command()
def suspend(name: Name, namespace: Namespace = None, context: Context = None) -> None:
    """Stop a job after its batch; all state is kept."""
    _cluster(namespace, context).patch(name, {"suspend": True})
    say(f"{name}: suspended")


@command()
def resume(name: Name, namespace: Namespace = None, context: Context = None) -> None:
    """Let a suspended job go on where it was."""
    _cluster(namespace, context).patch(name, {"suspend": False})
    say(f"{name}: resumed")


@command()
def report(
    name: Name,
    namespace: Namespace = None,
    context: Context = None,
    output: Annotated[
        Path | None,
        typer.Option(help="The archive to write; absent: NAME-report-TIME.zip here.", show_default=False),
    ] = None,
) -> None:
    """Collect what helps others to help, in one archive: spec, status, pods, events, logs; no secrets and no rows."""
    from jobs.kubectl.report import report

    file = report(_cluster(namespace, context), name, output)
    say(f"written: {file}; look at it before you pass it on")


def _cluster(namespace: str | None, context: str | None) -> "ClusterNamespace":
    try:
        from jobs.kubectl.cluster import ClusterNamespace
    except ImportError as error:
        msg = "the client of Kubernetes is missing; pip install '.[kubernetes]' in a checkout"
        raise StreamJoinError(msg) from error
    return ClusterNamespace(namespace, context)


def main() -> None:
    """Run the command line."""
    try:
        app()
    except StreamJoinError as error:
        say(str(error), err=True)
        sys.exit(exit_code(error))
