"""What can a user do from a terminal? Each command is one function; all mistakes end in `main`.

Exit codes: 0 done, 1 refused with a message on stderr, 2 the command line itself is wrong.
Commands import what they need when they run: `validate` starts without Spark.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from joinlib.errors import StreamJoinError

app = typer.Typer(
    name="streamjoin",
    help="Streaming joins written as SQL. Start with: streamjoin validate FILE",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def streamjoin() -> None:
    """Keep every command a subcommand, however many there are."""


@app.command()
def validate(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Spec files (YAML).", show_default=False)
    ],
) -> None:
    """Check spec files and name every mistake, at its line."""
    from joinlib.spec import load

    failed = 0
    for file in files:
        try:
            load(file)
        except StreamJoinError as error:
            complain(error)
            failed += 1
        else:
            typer.echo(f"{file}: valid")
    if failed:
        raise typer.Exit(1)


@app.command()
def schema() -> None:
    """Print the JSON schema of a spec file, for editors."""
    import json

    from joinlib.spec import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


def complain(error: StreamJoinError) -> None:
    """Print a mistake to stderr, without a traceback."""
    typer.echo(str(error), err=True)


def main() -> None:
    """Run the command line: the one place where errors become messages and an exit code."""
    try:
        app()
    except StreamJoinError as error:
        complain(error)
        sys.exit(1)


if __name__ == "__main__":
    main()
