"""Logging in: it works over TLS, says quickly what is wrong, and no secret is written anywhere."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from joinlib.broker import PATIENCE_S, settings
from joinlib.errors import SpecError, StreamJoinError
from joinlib.source import make
from joinlib.spec import ddl
from joinlib.spec.kafka import KafkaConnection
from tests.configs import topics
from tests.kafka.broker import PASSWORD, USER, Broker

ROOT = Path(__file__).parents[2]


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """As Kubernetes would mount them."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "user").write_text(f"{USER}\n")
    (folder / "password").write_text(f"{PASSWORD}\n")
    (folder / "wrong").write_text("not-the-password")
    return folder


def login(broker: Broker, secrets: Path, **more: Any) -> dict[str, Any]:
    """security of a spec that works."""
    given = {
        "protocol": "SASL_SSL",
        "mechanism": "SCRAM-SHA-512",
        "usernameFile": str(secrets / "user"),
        "passwordFile": str(secrets / "password"),
        "caFile": str(broker.certificate("ca.crt")),
        **more,
    }
    return {name: value for name, value in given.items() if value is not None}


def known(servers: str, security: dict[str, Any], folder: Path) -> int:
    config = topics("i", servers, "secured", security=security)
    one = make("i", config, ddl.parse("a BIGINT"), folder)
    found = one.discover()
    assert sum(b.num_rows for b in one.reader.read_many(one.slices(0, found), ["a"])) == 1
    return found


@pytest.fixture(scope="module")
def secured(broker: Broker) -> Broker:
    """With a message to read."""
    broker.send(broker.topic("secured"), [b'{"a":1}'])
    return broker


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_login(secured: Broker, secrets: Path, tmp_path: Path, mechanism: str) -> None:
    """Over TLS, by every mechanism."""
    assert known(secured.login, login(secured, secrets, mechanism=mechanism), tmp_path) == 1


def test_login_without_tls(
    secured: Broker, secrets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And with secrets from the environment."""
    monkeypatch.setenv("THE_USER", USER)
    monkeypatch.setenv("THE_PASSWORD", PASSWORD)
    security = {
        "protocol": "SASL_PLAINTEXT",
        "mechanism": "SCRAM-SHA-256",
        "usernameEnv": "THE_USER",
        "passwordEnv": "THE_PASSWORD",
    }
    assert known(secured.open, security, tmp_path) == 1


def test_certificates_on_both_sides(secured: Broker, tmp_path: Path) -> None:
    """The client shows one as well."""
    files = {"caFile": "ca.crt", "certFile": "client.crt", "keyFile": "client.key"}
    security = {"protocol": "SSL", **{field: str(secured.certificate(name)) for field, name in files.items()}}
    assert known(secured.mutual, security, tmp_path) == 1


@pytest.mark.parametrize(
    ("listener", "changes", "said"),
    [
        ("login", {"passwordFile": "wrong"}, "correct user or password"),
        ("login", {"passwordFile": "wrong", "mechanism": "PLAIN"}, "correct user or password"),
        ("login", {"caFile": None}, "correct security.protocol"),
        ("servers", {}, "security.protocol"),
        ("open", {"protocol": "SASL_PLAINTEXT", "caFile": None, "passwordFile": "wrong"}, "correct user or password"),
        ("login", {"protocol": "SASL_PLAINTEXT", "caFile": None}, "security.protocol"),
        ("mutual", {"protocol": "SSL", "mechanism": None, "usernameFile": None, "passwordFile": None}, "certificate"),
    ],
)  # fmt: skip
def test_what_is_wrong(
    secured: Broker,
    secrets: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    listener: str,
    changes: dict[str, Any],
    said: str,
) -> None:
    """Password, protocol or certificates: named, soon, and without the secret."""
    assert PATIENCE_S < 10
    monkeypatch.setattr("joinlib.source.kafka.brokers.PATIENCE_S", 4.0)
    changes = {k: str(secrets / v) if k == "passwordFile" and v else v for k, v in changes.items()}
    with pytest.raises(StreamJoinError, match=said) as error:
        known(getattr(secured, listener), login(secured, secrets, **changes), tmp_path / "log")
    assert PASSWORD not in str(error.value)
    assert "not-the-password" not in str(error.value)


def test_secrets_that_are_not_there(tmp_path: Path) -> None:
    """The field or variable is named."""
    base = {"protocol": "SASL_SSL", "mechanism": "PLAIN", "usernameEnv": "NO_SUCH_USER"}
    for more, said in (
        ({"passwordFile": str(tmp_path / "none")}, "the environment has no NO_SUCH_USER"),
        (
            {"passwordFile": str(tmp_path / "none"), "usernameEnv": "HOME"},
            "passwordFile: the file cannot be read",
        ),
    ):
        connection = KafkaConnection.model_validate({"bootstrapServers": "k:1", "security": {**base, **more}})
        with pytest.raises(SpecError, match=said):
            settings(connection)


@pytest.mark.spark
def test_no_secret_is_written_anywhere(broker: Broker, secrets: Path, tmp_path: Path) -> None:
    """The command joins two topics over TLS; what it prints, its files and its processes' arguments hold no secret."""
    for name, values in (("safe_a", [b'{"k":1,"x":"a"}']), ("safe_b", [b'{"k":1,"y":"b"}', b"no object"])):
        broker.send(broker.topic(name), values)
    topic = {"bootstrapServers": broker.login, "security": login(broker, secrets)}
    letters = {"onBadMessage": "deadLetter", "deadLetters": {"path": "letters"}}
    spec = {
        "sql": "SELECT a.k, a.x, b.y FROM a JOIN b ON a.k = b.k",
        "inputs": {
            "a": {"schema": "k BIGINT, x STRING", "kafka": {**topic, "topic": "safe_a"}},
            "b": {"schema": "k BIGINT, y STRING", "kafka": {**topic, "topic": "safe_b", **letters}},
        },
        "output": {"files": {"path": "out"}},
        "checkpoint": {"path": "checkpoint"},
        "join": {"units": 2},
    }
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "safe"}}
    file = tmp_path / "safe.yaml"
    file.write_text(yaml.safe_dump({**head, "spec": spec}))
    command = [sys.executable, "-m", "jobs.cli"]
    where = {**os.environ, "PYTHONPATH": str(ROOT), "STREAMJOIN_LOCAL_DIR": str(tmp_path / "local")}

    planned = subprocess.run(
        [*command, "plan", str(file)], capture_output=True, text=True, check=True, cwd=ROOT, env=where
    )
    run = subprocess.Popen(
        [*command, "run", str(file), "--until-done"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, env=where, start_new_session=True,
    )  # fmt: skip
    arguments: set[bytes] = set()
    while run.poll() is None:
        arguments |= set(_commands(run.pid))
        time.sleep(0.2)
    printed = planned.stdout + planned.stderr + run.communicate()[0]

    assert run.returncode == 0, printed
    assert "1 message could not be decoded" in printed
    found = duckdb.sql(f"SELECT k, x, y FROM read_parquet('{tmp_path}/out/batch=*/*.parquet')").fetchall()
    assert found == [(1, "a", "b")]
    assert len(arguments) > 2
    assert PASSWORD not in printed
    assert not any(PASSWORD.encode() in command for command in arguments)
    held = [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and not path.is_relative_to(secrets) and PASSWORD.encode() in path.read_bytes()
    ]
    assert held == []


def _commands(session: int) -> Iterator[bytes]:
    """Arguments of the processes of a session."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if stat.read_text().rpartition(")")[2].split()[3] == str(session):
                yield (stat.parent / "cmdline").read_bytes()
        except OSError:
            continue
