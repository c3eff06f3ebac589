"""Receivers of lineage and of traces behind TLS and logins, with a real server and real certificates."""

import base64
import shutil
import ssl
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jobs.lineage import send
from jobs.report import redact
from jobs.traces.settings import settings
from jobs.traces.span import BatchTrace, Span
from jobs.traces.told import trace_sender
from joinlib.errors import SpecError
from tests.deploy.operator.test_transport import certificates
from tests.patience import HUNG_S, until
from tests.unit.jobs.test_lineage import Catalogue, serving
from tests.unit.jobs.test_traces import Collector

SECRET = "s3cret-of-receivers"
BASIC = f"Basic {base64.b64encode(f'me:{SECRET}'.encode()).decode()}"
LINEAGE = {
    "url": "OPENLINEAGE_URL",
    "headers": "OPENLINEAGE_HEADERS",
    "authority": "OPENLINEAGE_CERTIFICATE",
    "certificate": "OPENLINEAGE_CLIENT_CERTIFICATE",
    "key": "OPENLINEAGE_CLIENT_KEY",
}
TRACES = {
    "url": "OTEL_EXPORTER_OTLP_ENDPOINT",
    "headers": "OTEL_EXPORTER_OTLP_HEADERS",
    "authority": "OTEL_EXPORTER_OTLP_CERTIFICATE",
    "certificate": "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
    "key": "OTEL_EXPORTER_OTLP_CLIENT_KEY",
}
both = pytest.mark.parametrize("variables", [LINEAGE, TRACES], ids=["lineage", "traces"])
Variables = Mapping[str, str]


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificates(tmp_path_factory.mktemp("tls") / "right", "localhost")


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of another authority, for another host."""
    return certificates(tmp_path_factory.mktemp("tls") / "wrong", "catalogue.example")


def server_of(folder: Path, clients: Path | None = None) -> ssl.SSLContext:
    """What a server has that shows a certificate, and lets in only clients of an authority if there is one."""
    found = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    found.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    if clients is not None:
        found.verify_mode = ssl.CERT_REQUIRED
        found.load_verify_locations(clients / "ca.crt")
    return found


def receiver(variables: Variables) -> Catalogue:
    return Collector() if variables is TRACES else Catalogue()


def sender_of(variables: Variables, **given: Any) -> Any:
    """What sends, as the variables of these parts say."""
    environment = {variables[part]: str(value) for part, value in given.items()}
    if variables is TRACES:
        found = settings("paid", environment)
        assert found is not None
        return trace_sender(found, 0.0)
    to = send.endpoint(environment)
    assert to is not None
    return send.event_sender(to)


def thing(variables: Variables) -> Any:
    return BatchTrace(1, Span("batch", 0.0, 1.0)) if variables is TRACES else {}


def tell(variables: Variables, **given: Any) -> None:
    """Send something, and end."""
    one = sender_of(variables, **given)
    one.start()
    one.offer(thing(variables))
    one.close(HUNG_S)
    assert not one.is_alive()


@both
@pytest.mark.parametrize("login", [f"Bearer {SECRET}", BASIC])
def test_a_receiver_that_demands_a_login(
    variables: Variables, login: str, right: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Over TLS; the authority is a file, or what is in one; other headers go with it."""
    taker = receiver(variables)
    taker.demanded = {"Authorization": login, "X-Scope-OrgID": "shop,1"}
    headers = f"Authorization={login.replace(' ', '%20').replace('=', '%3D')},X-Scope-OrgID=shop%2C1"
    with serving(taker, server_of(right)) as url:
        for authority in (right / "ca.crt", (right / "ca.crt").read_text()):
            tell(variables, url=url, headers=headers, authority=authority)
    assert [taker.taken.get_nowait()[1] for _ in range(2)] == [login] * 2
    assert caplog.messages == []


def test_the_key_of_lineage_is_a_bearers(right: Path) -> None:
    """Beside headers that say something else; not beside another login."""
    taker = Catalogue()
    taker.demanded = {"Authorization": f"Bearer {SECRET}", "X-Tenant": "shop"}
    given = {"OPENLINEAGE_API_KEY": f"{SECRET}\n", "OPENLINEAGE_CERTIFICATE": str(right / "ca.crt")}
    with serving(taker, server_of(right)) as url:
        to = send.endpoint({"OPENLINEAGE_URL": url, "OPENLINEAGE_HEADERS": "X-Tenant=shop", **given})
        assert to is not None
        assert SECRET not in repr(to)
        one = send.event_sender(to)
        one.start()
        one.offer({})
        one.close(HUNG_S)
    assert taker.taken.qsize() == 1
    with pytest.raises(SpecError, match="OPENLINEAGE_API_KEY and OPENLINEAGE_HEADERS both say Authorization"):
        send.endpoint({"OPENLINEAGE_URL": "https://c", "OPENLINEAGE_HEADERS": "authorization=a", **given})


@both
def test_a_login_that_is_refused(variables: Variables, right: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Is told once, with what to correct, and without the login, even where the server quotes it."""
    taker = receiver(variables)
    taker.demanded = {"Authorization": "Bearer another"}
    with serving(taker, server_of(right)) as url:
        one = sender_of(
            variables, url=url, headers=f"Authorization=Bearer%20{SECRET}", authority=right / "ca.crt"
        )
        one.start()
        for _ in range(3):
            one.offer(thing(variables))
        one.close(HUNG_S)
    (said,) = caplog.messages
    assert url in said
    assert "answered 401 Unauthorized; correct the login in" in said
    assert variables["headers"] in said
    assert one.outage == said
    assert SECRET not in said
    assert taker.taken.empty()


@both
@pytest.mark.parametrize(
    ("shown", "believed", "says", "fix"),
    [
        ("right", None, "cannot be trusted: ", "name who signed it in {authority}"),
        ("right", "wrong", "cannot be trusted: ", "name who signed it in {authority}"),
        (
            "wrong",
            "wrong",
            "certificate is not valid for 'localhost'",
            "write the host that it names in {url}",
        ),
    ],
)
def test_a_server_that_is_not_trusted(
    variables: Variables,
    shown: str,
    believed: str | None,
    says: str,
    fix: str,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """By the system's authorities, by another one, or of another name: it gets nothing, and the log says what to write."""
    folders = {name: request.getfixturevalue(name) for name in ("right", "wrong")}
    trusted = {"authority": folders[believed] / "ca.crt"} if believed else {}
    taker = receiver(variables)
    with serving(taker, server_of(folders[shown])) as url:
        tell(variables, url=url, headers=f"Authorization=Bearer%20{SECRET}", **trusted)
    (said,) = caplog.messages
    assert all(part in said for part in (url, says, fix.format(**variables), "are lost until"))
    assert SECRET not in said
    assert taker.taken.empty()


@both
def test_an_authority_that_is_renewed(
    variables: Variables, right: Path, wrong: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its file is read again after a refusal, and told if it is gone by then."""
    file, taker = tmp_path / "ca.crt", receiver(variables)
    shutil.copy(wrong / "ca.crt", file)
    with serving(taker, server_of(right)) as url:
        one = sender_of(variables, url=url, authority=file)
        one.start()
        one.offer(thing(variables))
        until(lambda: bool(one.outage))
        shutil.copy(right / "ca.crt", file)
        one.offer(thing(variables))
        one.close(HUNG_S)
    assert taker.taken.qsize() == 1
    assert "again" in caplog.messages[-1]


@both
def test_a_server_that_demands_a_certificate(
    variables: Variables, right: Path, wrong: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of the client: who has one is let in, others are told so."""
    taker = receiver(variables)
    own = {"certificate": wrong / "tls.crt", "key": wrong / "tls.key"}
    with serving(taker, server_of(right, clients=wrong)) as url:
        tell(variables, url=url, authority=right / "ca.crt", **own)
        assert taker.taken.qsize() == 1
        assert caplog.messages == []
        tell(variables, url=url, authority=right / "ca.crt")
    (said,) = caplog.messages
    assert url in said
    assert (
        variables["certificate"] in said or "reset" in said or "Broken pipe" in said
    )  # whichever comes first
    assert taker.taken.qsize() == 1


@both
def test_what_cannot_be_used_stops_before_anything_is_sent(
    variables: Variables, right: Path, tmp_path: Path
) -> None:
    """With its variable, and without what stands there, which may be the secret itself."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "empty").write_text(SECRET)
    locked = tmp_path / "locked.key"
    lock = ["openssl", "ec", "-aes256", "-passout", "pass:x", "-in", right / "tls.key", "-out", locked]
    subprocess.run(lock, check=True, capture_output=True)
    certificate, key = (right / name for name in ("tls.crt", "tls.key"))
    together = "{certificate} and {key} belong together"
    for given, said in (
        ({"authority": SECRET}, "{authority}: the file cannot be read: No such file"),
        ({"authority": tmp_path / "binary"}, "{authority} has no certificate; write a PEM file"),
        ({"authority": tmp_path / "empty"}, "{authority} has no certificate; write a PEM file"),
        ({"authority": f"-----BEGIN CERTIFICATE-----{SECRET}é"}, "{authority} has no certificate"),
        ({"certificate": certificate}, together),
        ({"key": key}, together),
        ({"certificate": SECRET, "key": key}, "{certificate} and {key} are not the PEM files"),
        ({"certificate": certificate, "key": locked}, "{certificate} and {key} are not the PEM files"),
        (
            {"url": "http://c", "authority": right / "ca.crt"},
            "{authority} is for https://, which {url} is not",
        ),
        ({"headers": SECRET}, "{headers} is not a list of NAME=VALUE"),
    ):
        with pytest.raises(SpecError) as caught:
            sender_of(variables, **{"url": "https://c", **given})
        assert str(caught.value).startswith(f"environment: {said.format(**variables)}")
        assert SECRET not in str(caught.value)


@both
def test_no_report_has_a_login(variables: Variables) -> None:
    """Neither as it is written nor as it is sent."""
    hidden = redact.of({}, {variables["headers"]: f"Authorization=Bearer%20{SECRET}"})
    assert SECRET not in hidden.text(f"it said Bearer {SECRET}, Bearer%20{SECRET} and {SECRET}")
