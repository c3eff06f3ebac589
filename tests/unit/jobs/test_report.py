"""A report has what helps, and neither secrets nor rows: planted ones are searched for in the whole archive."""

import stat
import zipfile
from pathlib import Path

import pytest

from jobs.cli.report import report
from jobs.report.redact import GONE, Redaction, of
from joinlib.errors import SpecError
from joinlib.spec.load import parse
from joinlib.spec.model import StreamJoin

SPEC = r"""
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: late}
spec:
  sql: SELECT o.id, c.name FROM orders o JOIN customers c ON o.id = c.id WHERE o.region = ${region}
  parameters: {region: {type: STRING, value: "PARAMETER-value, it's folded and quoted in YAML as \"PLANTED\", because it is a long text"}}
  inputs:
    orders:
      schema: id BIGINT, region STRING
      kafka:
        bootstrapServers: broker:9093
        topics: [orders]
        security: {protocol: SASL_SSL, mechanism: PLAIN, usernameFile: user, passwordFile: password, caFile: ca}
    customers:
      schema: id BIGINT, name STRING
      postgres: {uriEnv: SHOP_URI, table: customers}
  output: {noop: {}}
  checkpoint: {path: checkpoint}
"""
SECRETS = (
    "FILE-user",
    "FILE-password",
    "hunter2-in-uri",
    "NAMED",
    "unnamed-but-after-a-word",
    "of-an-address",
    "PARAMETER-value",
    "PLANTED",
)
ROWS = ("Meier", "4711", "13.37", "Bergstrasse")
LOG = """26/11/24 10:00:00 INFO MicroBatchExecution: Resuming at batch 12 with offsets
2026-11-24 10:00:00,123 ERROR a task failed: ValueError: no such street as Bergstrasse
26/11/24 10:00:01 ERROR Executor: Exception in task 0.0: java.lang.RuntimeException: no such street Bergstrasse
\tat org.apache.spark.scheduler.Task.run(Task.scala:141)
  File "/venv/joinlib/engine/turn.py", line 44, in units
ValueError: cannot convert Meier to BIGINT in row 4711
pyarrow.lib.ArrowInvalid: Could not convert 'Meier' with type str: 13.37
joinlib.errors.InputError: in/a.csv: is cut off; repair it
26/11/24 10:00:02 WARN TaskSetManager: lost 'Meier': joinlib.errors.NotReady: run again
connecting to postgres://bob:of-an-address@db/shop with password=unnamed-but-after-a-word and NAMED-2024-env
Traceback: the key was "Meier"
"""


@pytest.fixture
def document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StreamJoin:
    monkeypatch.setenv("SHOP_URI", "postgresql://bob:hunter2-in-uri@db.shop/shop")
    monkeypatch.setenv("OTHER_PASSWORD", "NAMED-2024-env")
    for name, text in {"user": "FILE-user\n", "password": "FILE-password", "ca": "-----BEGIN\nabc\n"}.items():
        (tmp_path / name).write_text(text)
    logs = tmp_path / "checkpoint" / "logs"
    logs.mkdir(parents=True)
    (logs / "spark.log").write_text(
        LOG + "login FILE-user with FILE-password at postgresql://bob:hunter2-in-uri@db.shop/shop\n"
    )
    (tmp_path / "checkpoint" / "state").mkdir()
    (tmp_path / "checkpoint" / "state" / "1.arrow").write_bytes(b"Meier,4711")
    return parse(SPEC, "late.yaml", tmp_path)


def test_nothing_that_was_planted_is_in_it(document: StreamJoin, tmp_path: Path) -> None:
    """Secrets of files, variables, addresses and words; rows that errors quote, and those of the state."""
    file = report(document, tmp_path / "late.zip")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with zipfile.ZipFile(file) as archive:
        parts = {name.partition("/")[2]: archive.read(name).decode() for name in archive.namelist()}
    found = {word for word in (*SECRETS, *ROWS) for text in (*parts, *parts.values()) if word in text}
    assert found == set()

    assert "SELECT o.id" in parts["spec.yaml"]
    assert "passwordFile" in parts["spec.yaml"]
    assert "region STRING" in parts["spec.yaml"]
    assert "inner lookup of c" in parts["plan.txt"]
    assert "no run so far" in parts["status.txt"]
    assert "state/1.arrow" in parts["checkpoint.txt"]
    assert "pyspark 4" in parts["versions.txt"]
    assert '"batch": null' in parts["metrics.json"]
    for kept in (
        "Resuming at batch 12",
        "10:00:01 ERROR Executor: Exception in task",
        "java.lang.RuntimeException: …",
        "at org.apache.spark.scheduler.Task.run(Task.scala:141)",
        'turn.py", line 44, in units',
        "ValueError: …",
        "WARN TaskSetManager: lost …: joinlib.errors.NotReady: run again",
        "joinlib.errors.InputError: in/a.csv: is cut off; repair it",
        f"postgres://{GONE}@db/shop",
    ):
        assert kept in parts["log.txt"], kept


def test_a_file_that_is_there_is_kept(document: StreamJoin, tmp_path: Path) -> None:
    """It is named, and what to do."""
    (tmp_path / "late.zip").write_text("mine")
    with pytest.raises(SpecError, match="File exists; name another file with --output"):
        report(document, tmp_path / "late.zip")
    assert (tmp_path / "late.zip").read_text() == "mine"


def test_what_cannot_be_told_stops_nothing(document: StreamJoin, tmp_path: Path) -> None:
    """A checkpoint that is damaged is what reports are for."""
    (tmp_path / "checkpoint" / "streamjoin.json").write_text("{")
    file = report(document, tmp_path / "late.zip")
    with zipfile.ZipFile(file) as archive:
        assert b"could not be told: " in archive.read("late/status.txt")


@pytest.mark.parametrize(
    "text", ["password: x1", 'PASSWORD="a b"', "Authorization: Bearer abc.def", "api_key='k'", "token=t&x=1"]
)
def test_words_that_announce_a_secret(text: str) -> None:
    """Whatever follows them goes."""
    assert Redaction().text(text).partition(GONE)[2] in ("", "&x=1")


def test_short_values_hide_nothing() -> None:
    """A user called `a` must not black out the report."""
    assert of({}, {"DB_USER": "a", "DB_PASSWORD": "long-enough"}).secrets == ("long-enough",)
