"""`kubectl streamjoin why` and `whynot` against a server that plays the container: what is sent, and what comes back."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from jobs.kubectl.commands import app
from joinlib.errors import NotReady, SpecError
from tests.deploy.operator.apiserver import ApiServer
from tests.deploy.operator.execserver import STDERR, STDOUT, Exec, failure
from tests.deploy.operator.objects import stream_join
from tests.patience import HUNG_S, until

CONDITION = "o.id = 4711 AND note = '$(rm) é; -x'"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """One with two jobs, of which one is suspended; the plugin is logged in."""
    with ApiServer().running() as found:
        found.add(stream_join(), stream_join("still", suspend=True))
        config = str(found.config(tmp_path / "config", "ann"))
        monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", config)
        monkeypatch.setenv("KUBECONFIG", config)
        yield found


def asked(question: str, name: str = "late", condition: str = CONDITION) -> Result:
    return CliRunner().invoke(app, [question, name, condition, "-n", "shop"])


def test_a_question_reaches_the_container_as_it_is(server: ApiServer) -> None:
    """As a list of arguments, by no shell, in the driver's container of all that the pod has; the answer comes back."""
    server.exec = Exec([(STDOUT, b"orders o: 1 of 3 rows meets the condition\n")])
    found = asked("whynot")
    assert (found.exit_code, found.stdout) == (0, "orders o: 1 of 3 rows meets the condition\n")
    [(path, query)] = server.exec.asked
    assert path == "/api/v1/namespaces/shop/pods/late-driver-0/exec"
    assert [value for name, value in query if name == "command"] == [
        *("python", "-m", "jobs.ask", "whynot", "/etc/streamjoin/spec.yaml"),
        CONDITION,
    ]
    assert {("container", "driver"), ("stdin", "true"), ("stdout", "true"), ("stderr", "true")} <= {*query}
    assert ("tty", "true") not in query
    assert [one.who for one in server.asked if one.what == "pods"] == ["ann"]


def test_why_is_another_question(server: ApiServer) -> None:
    assert asked("why", condition="id = 1").exit_code == 0
    [(_, query)] = server.exec.asked
    assert [value for name, value in query if name == "command"][3:] == [
        *("why", "/etc/streamjoin/spec.yaml", "id = 1"),
    ]


def test_what_is_printed_goes_on(server: ApiServer) -> None:
    """Lines may be cut anywhere, also within a character; each stream is its own, and none steers the terminal."""
    text = "größer\x1b[2J\nzweite".encode()
    pieces = [(STDOUT, bytes([byte])) for byte in text]
    server.exec = Exec([*pieces[:3], (STDERR, b"careful\nless"), *pieces[3:], (STDERR, b" so\n")])
    found = asked("why")
    assert found.stdout == "größer\\x1b[2J\nzweite\n"
    assert found.stderr == "careful\nless so\n"


def test_more_than_a_frame(server: ApiServer) -> None:
    """Nothing of a long answer is lost."""
    lines = [f"row {number}".encode() for number in range(20_000)]
    server.exec = Exec([(STDOUT, b"\n".join(lines[at : at + 500]) + b"\n") for at in range(0, 20_000, 500)])
    assert asked("why").stdout.encode().splitlines() == lines


@pytest.mark.parametrize("code", [1, 2, 137])
def test_the_exit_code_is_passed_on(server: ApiServer, code: int) -> None:
    server.exec = Exec([(STDERR, b"CONDITION: no input has its columns\n")], failure(code))
    found = asked("whynot")
    assert (found.exit_code, found.stdout) == (code, "")
    assert found.stderr == "CONDITION: no input has its columns\n"


def test_a_job_that_is_not_there(server: ApiServer) -> None:
    """Nothing is run."""
    error = asked("why", "nobody").exception
    assert isinstance(error, SpecError)
    assert "shop/nobody: " in str(error) and "kubectl get sj,pods -A lists what there is" in str(error)
    assert server.exec.asked == []


def test_a_suspended_job(server: ApiServer) -> None:
    """Has no driver: how to get one, and what works without."""
    error = asked("whynot", "still").exception
    assert isinstance(error, SpecError)
    assert "still is suspended" in str(error) and "kubectl streamjoin resume still starts it" in str(error)
    assert "its volumes are mounted, by `streamjoin whynot`" in str(error)
    assert server.exec.asked == []


@pytest.mark.parametrize(
    ("status", "message", "cure"),
    [
        (
            403,
            'pods "late-driver-0" is forbidden: User "ann" cannot create resource "pods/exec"',
            "; it takes a Role that lets you get and create pods/exec",
        ),
        (
            404,
            'pods "late-driver-0" not found',
            "; kubectl streamjoin status says what becomes of the driver",
        ),
        (500, "container not found", "; kubectl streamjoin status says what becomes of the driver"),
    ],
)
def test_what_is_refused_is_told(server: ApiServer, status: int, message: str, cure: str) -> None:
    """In the API server's words, with what to do about it; nothing of the handshake."""
    server.exec = Exec(refusal=(status, message))
    error = asked("why").exception
    assert isinstance(error, SpecError)
    assert str(error).endswith(message + cure)
    assert "Handshake" not in str(error)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (None, "the connection to the driver's pod ended before the answer was complete; ask again"),
        (
            {"status": "Failure", "reason": "InternalError", "message": "no python in $PATH"},
            "did not start the command: no python in $PATH; `kubectl streamjoin status` says",
        ),
    ],
)
def test_no_outcome_is_no_answer(server: ApiServer, told: dict[str, str] | None, said: str) -> None:
    """The pod has gone meanwhile, or never began."""
    server.exec = Exec([(STDOUT, b"orders o: ")], told)
    error = asked("why").exception
    assert isinstance(error, NotReady)
    assert said in str(error)


def test_who_stops_waiting_lets_the_pod_know(server: ApiServer) -> None:
    """By the end of standard input: no signal goes there."""
    server.exec = Exec([(STDOUT, b"orders o: 1 of 3 rows meets the condition\n")], waits=True)
    command = [sys.executable, "-c", "from jobs.kubectl.commands import main; main()"]
    with subprocess.Popen(
        [*command, "why", "late", CONDITION, "-n", "shop"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"orders o")  # before the command has ended
        process.send_signal(signal.SIGINT)
        assert process.wait(HUNG_S) != 0
    until(lambda: server.exec.gone, "the connection is closed")
