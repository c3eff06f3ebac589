"""A report has what helps, and neither secrets nor rows: planted ones are searched for in the whole archive."""

import os
import stat
import threading
import time
import zipfile
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from unittest.mock import Mock

import pytest

from jobs.cli.report import report
from jobs.kubectl.cluster import ClusterNamespace
from jobs.kubectl.report import texts
from jobs.report.redact import GONE, Redaction, of
from joinlib.errors import SpecError
from joinlib.spec.load import parse
from joinlib.spec.model import StreamJoin
from tests.patience import HUNG_S

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
    ("text", "left"),
    [
        ("password: x1", "password: «left out»"),
        ('PASSWORD="a b"', "PASSWORD=«left out»"),
        ("api_key='k'", "api_key=«left out»"),
        ("accessKey -> k", "accessKey -> «left out»"),
        ("token=t&x=1", "token=«left out»"),
        ("password=a,b;c}d e", "password=«left out» e"),
        ("password: 'it''s, a secret'", "password: «left out»"),
        ("password: 'cut off in the mid", "password: «left out»"),
        (r'{"password": "a\"b, c", "k": 1}', '{"password": «left out», "k": 1}'),
        (r"{\"password\": \"abc\"}", r"{\"password\": «left out»"),
        ('{"tokens": ["a", "b"], "k": 1}', '{"tokens": «left out», "k": 1}'),
        ("a:\n  password: |-\n    one\n\n    two\n  b: 1", "a:\n  password: «left out»\n  b: 1"),
        ("tokens:\n- one\n- two\nb: 1", "tokens:«left out»\nb: 1"),
        ("Authorization: Bearer abc.def", "Authorization: «left out»"),
        ("Authorization: Token abc", "Authorization: «left out»"),
        ('authorization=Digest username="u", response="r"\nnext', "authorization=«left out»\nnext"),
        ("'Authorization': 'Basic dTpw', 'k': 1", "'Authorization': «left out», 'k': 1"),
        ("sent Bearer eyJabc.def_-1 to it", "sent Bearer «left out» to it"),
        ("at postgres://u:p@ss@host/db", "at postgres://«left out»@host/db"),
        ("at url=postgres://u:a/b@host/db, k=1", "at url=postgres://«left out»@host/db, k=1"),
        ("http://a/b http://u:p@c", "http://a/b http://«left out»@c"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nDEK-Info: AES-1\n\nMIIE\n-----END RSA PRIVATE KEY-----\nk",
            "«left out»\nk",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMIIE", "«left out»"),
    ],
)
def test_what_announces_a_secret(text: str, left: str) -> None:
    """What follows it goes as a whole, and what stands behind that stays."""
    assert Redaction().text(text) == left


@pytest.mark.parametrize(
    "written",
    [
        "p@ss,w/rd!",
        "p%40ss%2Cw%2Frd%21",
        "p%40ss,w%2Frd!",
        "it's a b",
        "it''s a b",
        "it%27s%20a%20b",
        "it%27s+a+b",
        "in-the-query",
    ],
)
def test_parts_of_connection_strings(written: str) -> None:
    """Passwords as they are written, as they are sent, and as an address or SQL has them."""
    known = of(
        {"uriEnv": "SHOP"},
        {
            "SHOP": "postgresql://app:p%40ss,w%2Frd!@db/shop?sslpassword=in-the-query&x=1",
            "OTHER_DSN": r"host=db password='it\'s a b' user=u",
        },
    )
    assert known.text(f"refused {written} for it") == f"refused {GONE} for it"


@pytest.mark.parametrize("user", ["u", "us", "use", "ärger"])
def test_a_secret_in_base64(user: str) -> None:
    """Wherever it stands in what was encoded: at most its outermost characters are left."""
    known = of({}, {"DB_PASSWORD": "hunter2?>~pass"})
    for encode in (b64encode, urlsafe_b64encode):
        text = known.text(encode(f"{user}:hunter2?>~pass".encode()).decode())
        assert GONE in text and len(text.partition(GONE)[2]) <= 4


@pytest.mark.parametrize(
    "text",
    [
        "a" * 400_000,
        "token" * 80_000,
        "a." * 200_000,
        "a://" * 100_000,
        "1," * 200_000,
        "\"'" * 200_000,
        "password " * 50_000,
        "password" + " " * 400_000,
        ("password" + "\n" * 400) * 1000,
        ("a." * 2000 + "\n") * 100,
        ("token" * 800 + "\n") * 100,
        ("a://" * 1000 + "\n") * 100,
        "-----BEGIN PRIVATE KEY-----" * 15_000,
        ("-----BEGIN PRIVATE KEY-----\n" + "a-" * 2000 + "\n") * 100,
        "password:\n " * 40_000,
    ],
)
def test_time_is_linear(text: str) -> None:
    """Lines of a log have up to 8 MB; with a quadratic pattern each of these took minutes."""
    began = time.process_time()
    Redaction(("hunter2",)).log(text)
    assert time.process_time() - began < 5


def test_a_long_line_is_cut_between_words() -> None:
    """In the middle of a login nothing would tell that it is one."""
    text = Redaction().text("x " * 2040 + "postgres://u:" + "p" * 40 + "@host/db more")
    assert text.endswith("x …") and "ppp" not in text
    assert Redaction(("known",)).text("x" * 4090 + "known" * 9 + "x" * 4096) == "…"


def test_files_of_the_spec(tmp_path: Path) -> None:
    """They are read for their secrets: not certificates, not what is no file, and not on the machine of who asks a cluster."""
    (tmp_path / "password").write_text("hunter2\n")
    (tmp_path / "ca").write_text("certificate")
    os.mkfifo(tmp_path / "pipe")
    spec = {"passwordFile": str(tmp_path / "password"), "caFile": str(tmp_path / "ca")}
    assert "hunter2" in of(spec, {}).secrets and "certificate" not in of(spec, {}).secrets
    assert of(spec, {}, files=False).secrets == ()
    asking = threading.Thread(target=of, args=({"keyFile": str(tmp_path / "pipe")}, {}), daemon=True)
    asking.start()
    asking.join(HUNG_S)
    assert not asking.is_alive()


def test_files_that_a_clusters_spec_names_are_not_read(tmp_path: Path) -> None:
    """They would be those of whoever asks; what a report leaves out would tell what they hold."""
    (tmp_path / "mine").write_text("content-of-mine")
    spec = {"inputs": {"a": {"postgres": {"passwordFile": str(tmp_path / "mine")}}}}
    cluster = Mock(spec=ClusterNamespace)
    cluster.get.return_value = {"metadata": {"name": "late", "namespace": "n"}, "spec": spec}
    cluster.pods.return_value = [{"metadata": {"name": "late-driver"}}]
    cluster.log.return_value = ["said content-of-mine"]
    assert texts(cluster, "late")["late-driver.log"] == "said content-of-mine\n"


def test_short_values_hide_nothing() -> None:
    """A user called `a` must not black out the report."""
    assert of({}, {"DB_USER": "a", "DB_PASSWORD": "long-enough"}).text("a long-enough b") == f"a {GONE} b"
