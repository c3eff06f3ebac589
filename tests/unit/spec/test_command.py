"""The commands about specs: what they print, where, and how they exit."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jobs.cli import commands as cli

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


SPEC = """apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: bad}
spec:
  sql: %s
  inputs:
    a: {schema: id INT, files: {path: a, format: csv}}
    b: {schema: id INT, files: {path: b, format: csv}}
  output: {files: {path: out}}
  checkpoint: {path: checkpoint}
"""


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("|\n    SELECT a.id\n    FROM a\n      JOIN b ON a.id = b.idd", "8:24"),
        ("|\n\n     SELECT a.id FROM a JOIN b ON a.id = b.idd", "7:42"),
        ("SELECT a.id FROM a JOIN b ON a.id = b.idd", "5:44"),
        ("'SELECT a.id FROM a JOIN b ON a.id = b.idd'", "5:45"),
        (">-\n    SELECT a.id\n    FROM a JOIN b ON a.id = b.idd", "7:29"),
        ("SELECT a.id\n    FROM a JOIN b ON a.id = b.idd", "6:29"),
    ],
    ids=["literal", "literal, deep", "plain", "quoted", "folded", "plain lines"],
)
def test_a_mistake_in_sql_is_at_its_line(sql: str, place: str, tmp_path: Path) -> None:
    """Of the file, not of the text in it, so that editors can go there."""
    bad = tmp_path / "bad.yaml"
    bad.write_text(SPEC % sql)
    result = CliRunner().invoke(cli.app, ["validate", str(bad)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"{bad}:{place}: spec.sql: b has no column idd; did you mean 'id'?\n"


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


@pytest.mark.slow
def test_validate_starts_without_spark() -> None:
    """It plans, and answers at once all the same: neither Spark nor numba is loaded."""
    code = (
        f"import sys; sys.argv = ['streamjoin', 'validate', {str(EXAMPLE)!r}]\n"
        "from jobs.cli import commands as cli\n"
        "try: cli.main()\n"
        "finally: print(sorted({'pyspark', 'numba', 'duckdb'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
