"""The driver's HTTP, over a real socket."""

import http.client
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

import pytest

from jobs.driver.serve import Answers, application
from jobs.server import HttpServer
from joinlib.errors import SpecError
from joinlib.scale.request import REASON_MAX, ExecutorRequest
from tests.patience import HUNG_S

TOKEN = "s3cret-token"
THREE = '{"total": 3, "reason": "τ 1.77 is over 0.8"}'.encode()


@dataclass
class Driver:
    """What stands behind the endpoints."""

    ready: bool = True
    token: str | None = TOKEN
    asked: list[ExecutorRequest] = field(default_factory=list)

    def scale(self, asked: ExecutorRequest) -> None:
        if asked.total > 4:
            raise SpecError(f"total: {asked.total} is not between min, 1, and max, 4")
        self.asked.append(asked)


@dataclass
class Client:
    port: int

    def __call__(
        self, method: str, path: str, body: str | bytes | None = None, token: str | None = None
    ) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HUNG_S)
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def call(driver: Driver) -> Iterator[Client]:
    answers = Answers(
        status=lambda: {"phase": "Running"},
        page=lambda: {"job": "late"},
        metrics=lambda: b"streamjoin_batches_total 1.0\n",
        healthy=lambda: True,
        ready=lambda: driver.ready,
        scale=driver.scale,
        token=lambda: driver.token,
    )
    server = HttpServer(application(answers), 0)
    server.start()
    yield Client(server.port)
    server.stop()


def test_what_can_be_looked_at(call: Client, driver: Driver) -> None:
    """Without a token."""
    assert call("GET", "/metrics") == (200, "streamjoin_batches_total 1.0\n")
    assert call("GET", "/healthz")[0] == 200
    assert call("GET", "/readyz")[0] == 200
    assert json.loads(call("GET", "/v1/status")[1]) == {"phase": "Running"}
    driver.ready = False
    assert call("GET", "/readyz")[0] == 503


def test_executors_with_the_token(call: Client, driver: Driver) -> None:
    """The answer is what was asked for; the driver is told why."""
    status, text = call("POST", "/v1/executors", THREE, TOKEN)
    assert (status, json.loads(text)) == (200, {"total": 3})
    assert driver.asked == [ExecutorRequest(3, "τ 1.77 is over 0.8")]


def test_the_longest_reason_fits(call: Client, driver: Driver) -> None:
    """Of characters that take most room as JSON."""
    longest = ExecutorRequest(3, REASON_MAX * "𝛕")
    assert call("POST", "/v1/executors", json.dumps(asdict(longest)), TOKEN)[0] == 200
    assert driver.asked == [longest]


@pytest.mark.parametrize("token", [None, "", "s3cret-toke", "s3cret-token2", "Bearer", "ü"])
def test_nobody_without_the_token(call: Client, driver: Driver, token: str | None) -> None:
    """401, before the body is looked at."""
    assert call("POST", "/v1/executors", "x", token)[0] == 401
    assert driver.asked == []


def test_no_token_lets_nobody_in(call: Client, driver: Driver) -> None:
    """Also not with an empty one."""
    driver.token = None
    assert call("POST", "/v1/executors", THREE, "")[0] == 401
    assert call("POST", "/v1/executors", THREE, "None")[0] == 401


@pytest.mark.parametrize(
    "body",
    [
        "",
        "3",
        "{",
        "{}",
        '{"total": 3}',
        '{"reason": "r"}',
        '{"total": "3", "reason": "r"}',
        '{"total": 1.5, "reason": "r"}',
        '{"total": true, "reason": "r"}',
        '{"total": 3, "reason": "r", "x": 1}',
        '{"total": 3, "reason": 1}',
        '{"total": 3, "reason": ""}',
        '{"total": 3, "reason": " "}',
        '{"total": 3, "reason": "one\\ntwo"}',
        '{"total": 3, "reason": "\\u001b[31m"}',
        '{"total": 3, "reason": "\\u202egnirts"}',
        '{"total": 3, "reason": "\\ud800"}',
        f'{{"total": 3, "reason": "{"r" * (REASON_MAX + 1)}"}}',
        "\xff",
    ],
)
def test_bodies_that_say_nothing(call: Client, driver: Driver, body: str) -> None:
    """400, with what to write."""
    status, text = call("POST", "/v1/executors", body, TOKEN)
    assert status == 400
    assert '{"total": n, "reason": "why"}, the reason as one line of at most 300 characters' in text
    assert driver.asked == []


def test_too_many(call: Client) -> None:
    """400, with the bounds."""
    status, text = call("POST", "/v1/executors", '{"total": 5, "reason": "r"}', TOKEN)
    assert status == 400
    assert "max, 4" in text


def test_too_large(call: Client, driver: Driver) -> None:
    """A body is read up to a bound."""
    assert call("POST", "/v1/executors", b" " * 10_000 + THREE, TOKEN)[0] == 413
    assert driver.asked == []


def test_other_paths_and_methods(call: Client) -> None:
    """404 and 405."""
    assert call("GET", "/v2/status")[0] == 404
    assert call("GET", "/v1/executors")[0] == 405
    assert call("POST", "/v1/status")[0] == 405
    assert call("PUT", "/v1/executors", "{}", TOKEN)[0] == 405
