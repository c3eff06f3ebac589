"""What rows and servers say does not steer the terminal."""

import io
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from jobs.cli import commands
from jobs.cli.screen import table
from jobs.cli.shell.loop import Prompt
from jobs.cli.why import _values
from jobs.kubectl import commands as of_cluster
from jobs.terminal import lines, visible
from joinlib.errors import NotReady

CLIPBOARD = "\x1b]52;c;aGk=\x07"
STEERING = f"{CLIPBOARD}\x1b[2J\x9b2J\x7f"
SHOWN = r"\x1b]52;c;aGk=\x07\x1b[2J\x9b2J\x7f"


def test_control_characters_are_written_out() -> None:
    """In a value also those that end its line; text of other scripts stays."""
    assert visible(f"a\nb\tc\r{STEERING} é 漢 🙂") == rf"a\nb\tc\r{SHOWN} é 漢 🙂"
    assert lines(f"a\nb\tc\r{STEERING}") == f"a\nb\tc\\r{SHOWN}"


@pytest.mark.parametrize("value", [STEERING, [STEERING], {"a": STEERING}])
def test_values_of_rows(value: object) -> None:
    """In tables, whose columns a registry may name, and in what `why` says."""
    console = Console(file=io.StringIO(), width=160)
    console.print(table("", pa.table({STEERING: [value]})))
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert printed.count(SHOWN) == 2 and SHOWN in _values([("a", value)])
    assert not any(character in printed for character in STEERING if not character.isprintable())


def test_a_mistake_at_the_prompt(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=160)
    Prompt(None, console, None, tmp_path)._refused(f"the server says {STEERING}")  # type: ignore[arg-type]
    assert f"the server says {SHOWN}" in console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("program", [commands, of_cluster])
def test_texts_of_servers(
    program: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error may quote what a database, a broker or the API server says."""

    def failing() -> None:
        raise NotReady(f"the server says {STEERING}")

    monkeypatch.setattr(program, "app", failing)
    with pytest.raises(SystemExit):
        program.main()  # type: ignore[attr-defined]
    assert f"the server says {SHOWN}" in capsys.readouterr().err
