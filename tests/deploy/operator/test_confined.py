"""What a spec makes of the process that checks it is the end of that process, and of nothing else."""

import os
from typing import Any

import pytest
from joinop import admission
from joinop.admission import Admitted, Rejected, verdict_of
from joinop.confined import Confined

from tests.deploy.operator.objects import stream_join

BAD = (
    "while True: pass",
    "held = bytearray(1 << 30)\nwhile True: held = held[:]",
    "os._exit(3)",
    "os.abort()",
)


def ran(text: str) -> str:
    """What the text, a program, returns is who ran it."""
    exec(text)
    return f"{os.getpid()}"


@pytest.fixture
def limited() -> Confined[str]:
    return Confined(ran, seconds=1.0, memory=64 << 20)


@pytest.mark.parametrize("text", BAD)
def test_what_needs_too_much_is_ended(limited: Confined[str], text: str) -> None:
    """And the next one has a process of its own, which stays."""
    first = limited("pass")
    assert first not in (None, str(os.getpid()))
    assert limited("held = bytearray(32 << 20)") == first
    assert limited(text) is None
    second = limited("pass")
    assert second not in (None, first)
    assert limited("pass") == second


def test_waiting_is_no_work(limited: Confined[str]) -> None:
    """Time is counted on the CPU: a busy machine refuses nothing."""
    assert limited("import time; time.sleep(2)") is not None


def nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels):
        found = {"a": found}
    return found


def test_one_spec_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gets a verdict, whatever its constants compute and however deep it is."""
    monkeypatch.setattr(admission, "_confined", Confined(admission.judged, seconds=2.0, memory=64 << 20))
    endless = f"SELECT id FROM orders WHERE regexp_like('{'a' * 40}!', '^(a+)+$')"
    large = "SELECT id, repeat('x', 120000000) AS r FROM orders"
    for bad, said in (
        (stream_join(sql=endless), "takes more than"),
        (stream_join(sql=large), "takes more than"),
        (stream_join(pods={"affinity": nested(300)}), "nested too deeply"),
        (stream_join(pods={"affinity": nested(5000)}), "nested too deeply"),
    ):
        verdict = verdict_of(bad)
        assert isinstance(verdict, Rejected)
        assert said in verdict.problems[0]
        assert isinstance(verdict_of(stream_join(checkpoint__path=f"/data/{len(said)}")), Admitted)
