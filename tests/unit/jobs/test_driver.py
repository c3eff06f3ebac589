"""What a driver takes from its environment, and how it says what went wrong."""

import pytest

from jobs.driver import one_line
from jobs.surroundings import surroundings
from joinlib.errors import SpecError

POD = {
    "POD_NAME": "late-driver-0",
    "POD_NAMESPACE": "shop",
    "POD_IP": "10.0.0.7",
    "POD_UID": "uid-1",
    "STREAMJOIN_IMAGE": "streamjoin:1",
    "STREAMJOIN_EXECUTOR_TEMPLATE": "/etc/streamjoin/executor.yaml",
    "TMPDIR": "/scratch",
}


def test_a_pod() -> None:
    """Each run has a name of its own, also in the same pod."""
    one, two = surroundings(POD).place, surroundings(POD).place
    assert one is not None
    assert two is not None
    assert (one.pod.name, one.pod.uid, one.temporary, one.cpu) == ("late-driver-0", "uid-1", "/scratch", None)
    assert len(one.run) == 8
    assert one.run != two.run


def test_no_pod() -> None:
    """No place, no token."""
    around = surroundings({})
    assert (around.place, around.token(), around.port) == (None, None, 8080)


def test_half_a_pod() -> None:
    """What is missing is named."""
    with pytest.raises(SpecError, match="POD_IP, STREAMJOIN_IMAGE not set"):
        surroundings({**POD, "POD_IP": "", "STREAMJOIN_IMAGE": ""})


def test_one_line() -> None:
    """Line breaks go, a Java stack trace is cut off, and the length is bounded."""
    assert (
        one_line(SpecError("a.yaml:3: wrong\na.yaml:4: wrong too")) == "a.yaml:3: wrong a.yaml:4: wrong too"
    )
    assert one_line(RuntimeError("it failed.\n: java.lang.X: no\n\tat a.b.C(D.java:1)\n\tat e.f")) == (
        "it failed. : java.lang.X: no"
    )
    assert one_line(KeyboardInterrupt()) == "KeyboardInterrupt"  # type: ignore[arg-type]
    assert len(one_line(SpecError("x" * 5000))) == 2000
