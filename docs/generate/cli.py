"""docs/reference/cli.md: every command, argument and option, as `streamjoin COMMAND --help` and kubectl's plugin have them."""

import types
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

from typer import Typer
from typer.main import get_command

from docs.generate.markdown import code, page, table
from jobs.cli.commands import app
from jobs.kubectl.commands import app as plugin

_HEAD = """\
# Command line reference

<!-- Made by docs/build from jobs/cli; edit the commands, not this page. -->

`streamjoin COMMAND --help` prints the same. Mistakes are printed on stderr, one a line, as
`FILE:LINE: field: what is wrong; what to write instead`.

## Exit codes

| Code | Meaning |
|---|---|
| 0 | done |
| 1 | not done; running the command again may help |
| 2 | somebody must act first: the command line, a spec, an input or the state is wrong, or the program is |
| 130 | ended at once by a second Ctrl-C; running the command again goes on from the last batch |

## Environment variables

| Variable | Meaning |
|---|---|
| `STREAMJOIN_LOCAL_DIR` | folder for indexes and other files that can be rebuilt; default: the temporary folder |
| `JAVA_HOME` | the Java that Spark runs on; default: `java` on the path |
| `XDG_CACHE_HOME` | where the archive of Java's classes (180 MB) is kept, with which runs start faster; default: `~/.cache` |
| `OPENLINEAGE_URL` and others | where events of [lineage](../how-to/lineage.md) are sent |
| `OTEL_EXPORTER_OTLP_ENDPOINT` and others | where [traces of batches](../how-to/traces.md) are sent |
"""
_PLUGIN = """
## The plugin of kubectl

`pip install '.[kubernetes]'` in a checkout also installs `kubectl-streamjoin`, which kubectl finds by its name. It asks the
cluster of the kubeconfig, with the rights of whoever runs it."""
_VALUES = {int: "NUMBER", float: "NUMBER", Path: "PATH", str: "TEXT"}


def made() -> str:
    """The page."""
    lines = [_HEAD, *_commands("streamjoin", app), _PLUGIN, *_commands("kubectl streamjoin", plugin)]
    return page(line for part in lines for line in part.split("\n"))


def _commands(program: str, typed: Typer) -> Iterator[str]:
    group: Any = get_command(typed)
    for name, command in group.commands.items():
        yield from _command(f"{program} {name}", command)


def _command(name: str, command: Any) -> Iterator[str]:
    parameters = [p for p in command.params if p.name != "help"]
    arguments = [p for p in parameters if p.param_type_name == "argument"]
    options = [p for p in parameters if p.param_type_name == "option"]
    words = [f"{_argument(p)}{'...' if p.nargs == -1 else ''}" for p in arguments]
    yield f"\n## `{name}`\n"
    yield " ".join(command.help.split())
    yield "\n```text"
    yield " ".join([name, *words, *(["[OPTIONS]"] if options else [])])
    yield "```"
    if parameters:
        hints = get_type_hints(command.callback)
        rows = [(code(_written(p, hints)), _default(p), p.help or "") for p in (*arguments, *options)]
        yield from table(("Argument or option", "Default", "Meaning"), rows)


def _written(parameter: Any, hints: Mapping[str, Any]) -> str:
    if parameter.param_type_name == "argument":
        return _argument(parameter)
    words = ", ".join(parameter.opts)
    return words if parameter.is_flag else f"{words} {parameter.metavar or _value(hints[parameter.name])}"


def _argument(parameter: Any) -> str:
    name = str(parameter.metavar or parameter.name.upper())
    return name if parameter.required else f"[{name}]"


def _value(kind: Any) -> str:
    """What stands for a value of a type."""
    if isinstance(kind, types.UnionType):
        kind = next(one for one in get_args(kind) if one is not type(None))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(choice.value) for choice in kind)
    return _VALUES[kind]


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    value = parameter.default
    if value is None or value is False or value == () or value == []:
        return ""
    return code(str(getattr(value, "value", value)))
