"""The commands about specs: what they print, where, and how they exit."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jobs import cli

EXAMPLE = Path(__file__).parents[3] / "manifests" / "01-console.yaml"


def test_validate_says_valid() -> None:
    """A good file is confirmed on stdout."""
    result = CliRunner().invoke(cli.app, ["validate", str(EXAMPLE)])
    assert (result.exit_code, result.stdout) == (0, f"{EXAMPLE}: valid\n")


def test_validate_reads_all_files(tmp_path: Path) -> None:
    """A bad file does not hide a good one; the mistakes are on stderr and the exit code is 2."""
    bad = tmp_path / "bad.yaml"
    bad.write_text("kind: StreamJoin\n")
    result = CliRunner().invoke(cli.app, ["validate", str(bad), str(EXAMPLE)])
    assert (result.exit_code, result.stdout) == (2, f"{EXAMPLE}: valid\n")
    assert f"{bad}:1: spec: is missing" in result.stderr


def test_schema_is_json() -> None:
    """Editors read it from a file."""
    result = CliRunner().invoke(cli.app, ["schema"])
    assert json.loads(result.stdout)["title"] == "StreamJoin"


def test_no_arguments_is_wrong_usage() -> None:
    """Exit code 2 belongs to the command line itself."""
    assert CliRunner().invoke(cli.app, ["validate"]).exit_code == 2


def test_a_mistake_in_any_command_is_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`main` turns errors into one message and an exit code, without a traceback: 1 where running again may help."""

    def refuse() -> None:
        raise cli.StreamJoinError("orders.yaml: no")

    monkeypatch.setattr(cli, "app", refuse)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert (stop.value.code, capsys.readouterr().err) == (1, "orders.yaml: no\n")


def test_validate_starts_without_spark() -> None:
    """It answers at once: neither Spark, nor numba, nor pandas is loaded."""
    code = (
        f"import sys; sys.argv = ['streamjoin', 'validate', {str(EXAMPLE)!r}]\n"
        "from jobs import cli\n"
        "try: cli.main()\n"
        "finally: print(sorted({'pyspark', 'numba', 'pandas', 'duckdb'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
