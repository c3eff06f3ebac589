"""What the commands print without Spark, and how they refuse."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jobs.cli import commands as cli

MANIFESTS = sorted((Path(__file__).parents[3] / "manifests").glob("[0-9]*.yaml"))
GENERATED = next(m for m in MANIFESTS if m.name.startswith("01"))


def call(*args: str | Path) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of a command."""
    result = CliRunner().invoke(cli.app, [str(a) for a in args], env={"COLUMNS": "80"})
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda m: m.stem)
def test_every_example_is_valid_and_has_a_plan(manifest: Path) -> None:
    """The examples are what users copy from."""
    assert call("validate", manifest) == (0, f"{manifest}: valid\n", "")
    code, out, _ = call("plan", manifest)
    assert code == 0
    assert any(
        does in out
        for does in ("JOIN of", " lookup", "groups of", " over ", "Window functions", "As-of join")
    )
    assert "Result" in out


def test_the_examples_are_a_ladder() -> None:
    """Numbered without a gap, each its own job and checkpoint."""
    from joinlib.spec import load

    assert [m.name[:2] for m in MANIFESTS] == [f"{n:02d}" for n in range(1, len(MANIFESTS) + 1)]
    documents = [load(m) for m in MANIFESTS]
    assert len({d.metadata.name for d in documents}) == len(documents)
    assert len({str(d.spec.checkpoint.path) for d in documents}) == len(documents)


@pytest.mark.parametrize("command", ["validate", "plan", "run", "status", "schema"])
def test_help_of_every_command(command: str) -> None:
    """Each has a sentence, and the overview names it."""
    assert call(command, "--help")[0] == 0
    assert command in call("--help")[1]


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("validate", "validate [OPTIONS] FILE..."),
        ("state", "state [OPTIONS] FILE [SELECT]"),
        ("sql", "sql [OPTIONS] [FILE]"),
    ],
)
def test_help_says_what_a_command_takes(command: str, usage: str) -> None:
    """As the reference does, without braces; a flag takes nothing, and has no type."""
    out = call(command, "--help")[1]
    assert f" {usage} " in out
    assert "<bool>" not in out


def test_wrong_usage_is_told_in_words() -> None:
    """A value that is none of those there are, and options that exclude each other."""
    code, _, err = call("plan", GENERATED, "--format", "xml")
    assert code == 2
    assert "'--format': 'xml' is not one of 'text', 'json', 'mermaid'." in err
    for other in (["--diff", GENERATED], ["--alternatives"]):
        code, out, err = call("plan", GENERATED, "--format", "json", *other)
        assert (code, out) == (2, "")
        assert f"json is a form of the plan; {other[0]} is text" in " ".join(err.replace("│", "").split())


@pytest.mark.parametrize("setting", ["spark", "=1", "spark.x"])
def test_a_setting_is_key_and_value(setting: str) -> None:
    """What is no KEY=VALUE is wrong usage, and nothing starts."""
    code, _, err = call("run", GENERATED, "--conf", setting)
    assert code == 2
    assert "is not KEY=VALUE" in err


@pytest.mark.parametrize("command", ["plan", "run", "status", "restore"])
def test_a_spec_with_a_mistake_is_refused(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is started or written: a message, exit code 2."""
    bad = tmp_path / "bad.yaml"
    bad.write_text("kind: StreamJoin\n")
    monkeypatch.setattr(sys, "argv", ["streamjoin", command, str(bad)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert f"{bad}:1: spec: is missing" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [bad]


def test_sql_that_cannot_be_run_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message says where in the file; no checkpoint is made."""
    bad = tmp_path / "bad.yaml"
    bad.write_text(GENERATED.read_text().replace("o.amount", "o.amuont").replace("../", ""))
    monkeypatch.setattr(sys, "argv", ["streamjoin", "run", str(bad)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith(f"{bad}:7:24: spec.sql: o has no column amuont")
    assert list(tmp_path.iterdir()) == [bad]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (".", ".: Is a directory"),
        ("folder", "folder: Is a directory"),
        ("file/junit.xml", "file: is in the way of a folder; name another one"),
    ],
)
def test_a_file_that_cannot_be_written_is_named(
    path: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the reason and exit code 2, never a traceback: it is no defect of the program."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    spec = str(MANIFESTS[0].parent / "examples" / "cases" / "paid-orders.yaml")
    monkeypatch.setattr(
        sys, "argv", ["streamjoin", "test", spec, "--case", "paid within the hour", "--junit", path]
    )
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"{said}\n"


@pytest.mark.slow
@pytest.mark.parametrize("command", [["--help"], ["plan", str(GENERATED)], ["status", str(GENERATED)]])
def test_commands_that_need_no_spark_do_not_load_it(command: list[str]) -> None:
    """They answer at once."""
    code = (
        f"import sys; sys.argv = ['streamjoin', *{command!r}]\n"
        "from jobs.cli import commands as cli\n"
        "try: cli.main()\n"
        "finally: print('pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_the_orders_that_were_considered() -> None:
    """Instead of the plan."""
    code, out, _ = call("plan", next(m for m in MANIFESTS if m.name.startswith("11")), "--alternatives")
    assert code == 0
    assert "nothing is known of the inputs" in out or "* " in out
    assert "Result" not in out
    assert call("plan", GENERATED, "--alternatives")[1].startswith("Nothing is to be chosen")
