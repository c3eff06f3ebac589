"""What a registry may answer, by a small one of the test's own: no answer may lead a password or a worker astray."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from joinlib.errors import NotReady, SpecError, StreamJoinError
from joinlib.source.kafka import registry
from joinlib.source.kafka.registry import RegistryClient, Unknown
from joinlib.spec.kafka import SchemaRegistry

Answer = tuple[int, dict[str, str], bytes]


class Served(ThreadingHTTPServer):
    """Answers as told, by path; keeps what it was asked."""

    answers: dict[str, Answer]
    asked: list[tuple[str, str | None]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Served

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["Authorization"]))
        code, headers, text = self.server.answers.get(self.path, (404, {}, b"{}"))
        self.send_response(code)
        for name, value in {**headers, "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def served() -> Iterator[Served]:
    with Served(("127.0.0.1", 0), Handler) as server:
        server.answers, server.asked = {}, []
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def fine(schema: str, **more: Any) -> Answer:
    return 200, {}, json.dumps({"schema": schema, **more}).encode()


def test_references_come_before_what_refers_to_them(served: Served) -> None:
    a, b = ({"name": n, "subject": n, "version": 1} for n in "ab")
    served.answers = {
        "/schemas/ids/7": fine("main", references=[b, a]),
        "/subjects/a/versions/1": fine("A"),
        "/subjects/b/versions/1": fine("B", references=[a]),
        "/subjects/x%2Fy/versions/latest": fine("new"),
    }
    client = RegistryClient(SchemaRegistry(url=served.url), "AVRO")
    assert [(one.name, one.text) for one in client.of_id(7)[:2]] == [("a", "A"), ("b", "B")]
    assert [one.text for one in client.of_id(7)] == ["A", "B", "main"]
    assert [one.text for one in client.newest("x/y")] == ["new"]
    assert all(authorization is None for _, authorization in served.asked)


def test_a_password_goes_to_the_registry_alone(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "password").write_text("hunter2\n")
    monkeypatch.setenv("REGISTRY_USERNAME", "alice")
    given = SchemaRegistry(
        url=served.url, username_env="REGISTRY_USERNAME", password_file=tmp_path / "password"
    )
    served.answers = {
        "/schemas/ids/1": fine("s"),
        "/schemas/ids/2": (302, {"Location": served.url + "/schemas/ids/1"}, b""),
    }
    client = RegistryClient(given, "AVRO")
    client.of_id(1)
    assert served.asked == [("/schemas/ids/1", "Basic " + base64.b64encode(b"alice:hunter2").decode())]
    with pytest.raises(SpecError, match=r"redirects \(302\)"):
        client.of_id(2)
    assert len(served.asked) == 2
    served.answers["/schemas/ids/3"] = (401, {}, b"alice hunter2")
    with pytest.raises(SpecError, match=r"refuses this user \(401\)") as refused:
        client.of_id(3)
    monkeypatch.setenv("REGISTRY_USERNAME", "")
    with pytest.raises(SpecError, match="variable REGISTRY_USERNAME: is empty or not set") as unset:
        client.of_id(1)
    for text in (repr(client), repr(given), str(refused.value), str(unset.value)):
        assert "hunter2" not in text


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        ((404, {}, b"{}"), Unknown, "is not known"),
        ((403, {}, b""), SpecError, "refuses this user"),
        ((422, {}, b""), SpecError, r"refuses the schema \(422\)"),
        ((409, {}, b'{"message": "no\\n default"}'), SpecError, r"refuses the schema \(409\): no default$"),
        ((400, {}, b""), SpecError, r"refuses \(400\); correct url"),
        ((503, {}, b""), NotReady, r"cannot answer \(503\)"),
        ((200, {}, b"<html>"), SpecError, "does not answer as a registry does"),
        ((200, {}, b"[]"), SpecError, "does not answer as a registry does"),
        ((200, {}, b'{"id": 1}'), SpecError, "does not answer as a registry does"),
        ((200, {}, b"[" * 100_000), SpecError, "does not answer as a registry does"),
        ((200, {}, b" " * (5 << 20)), SpecError, "longer than 4 MiB"),
        (fine("s", schemaType="PROTOBUF"), Unknown, "is of type PROTOBUF"),
    ],
)
def test_answers_that_are_no_schema(
    served: Served, answer: Answer, kind: type[Exception], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "PATIENCE_S", 0.3)
    served.answers = {"/schemas/ids/1": answer}
    with pytest.raises(kind, match=said):
        RegistryClient(SchemaRegistry(url=served.url), "AVRO").of_id(1)


def test_references_without_end_are_refused(served: Served) -> None:
    for n in range(400):
        one = {"name": "x", "subject": "x", "version": n + 1}
        served.answers[f"/subjects/x/versions/{n}"] = fine("s", references=[one])
    served.answers["/schemas/ids/1"] = served.answers["/subjects/x/versions/0"]
    with pytest.raises(Unknown, match="more than 256"):
        RegistryClient(SchemaRegistry(url=served.url), "AVRO").of_id(1)


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "PATIENCE_S", 0.3)
    with pytest.raises(NotReady, match="no answer"):
        RegistryClient(SchemaRegistry(url="http://127.0.0.1:9"), "AVRO").of_id(1)


def test_what_is_kept_is_there(tmp_path: Path) -> None:
    assert registry.kept(tmp_path / "s", 3) is None
    registry.keep(tmp_path / "s", ["a", "b"], 3)
    assert registry.kept(tmp_path / "s", 3) == ("a", "b")
    assert [f.name for f in (tmp_path / "s").iterdir()] == ["3.json"]


@pytest.mark.parametrize(
    "url",
    ["ftp://h", "https://user:secret@h", "https://h/?key=1", "h:8081", "https://", "file:///etc/passwd"],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(ValidationError, match="is not the address of a registry"):
        SchemaRegistry(url=url)


@pytest.mark.parametrize(
    "fields",
    [
        {"username_env": "A"},
        {"password_env": "A"},
        {"username_env": "A", "username_file": "a", "password_env": "B"},
    ],
)
def test_half_a_login(fields: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="one of usernameFile and usernameEnv"):
        SchemaRegistry(url="https://h", **fields)


def test_a_certificate_that_nobody_trusts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Verification is on, also with an authority of one's own."""
    (tmp_path / "ca.crt").write_text("no certificate")
    with pytest.raises(StreamJoinError, match=r"is not a PEM file"):
        RegistryClient(SchemaRegistry(url="https://127.0.0.1:9", ca_file=tmp_path / "ca.crt"), "AVRO").of_id(
            1
        )
