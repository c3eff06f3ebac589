"""Ports of servers that tests start are taken by nobody else before those listen."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ports

KERNELS = Path("/proc/sys/net/ipv4/ip_local_port_range")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[range]:
    """Two that no other test gets; free again afterwards."""
    monkeypatch.setattr(ports, "_given", given := list[socket.socket]())
    found = range(23_900, 23_902)
    monkeypatch.setattr(ports, "_PORTS", found)
    yield found
    for name in given:
        name.close()


def test_no_port_is_given_twice(few: range) -> None:
    """Although nobody listens yet, and though another process asks."""
    other = f"from tests import ports; ports._PORTS = range{few.start, few.stop}; print(ports.free_port())"
    first = ports.free_port()
    said = subprocess.run([sys.executable, "-c", other], check=True, capture_output=True, text=True)
    assert {first, int(said.stdout)} == set(few)


def test_a_port_that_somebody_listens_at_is_not_given(few: range) -> None:
    with socket.create_server(("127.0.0.1", few[0])):
        assert ports.free_port() == few[1]
        with pytest.raises(StopIteration):
            ports.free_port()


def test_the_kernel_gives_none_of_them_to_connections() -> None:
    assert ports._PORTS.stop <= int(KERNELS.read_text().split()[0])
