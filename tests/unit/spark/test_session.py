"""Settings of the session that depend on where it runs, and calls into a JVM that is gone."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from py4j.java_gateway import GatewayClient, GatewayParameters, JavaGateway
from py4j.protocol import ERROR

from joinlib.spark.session import JVM_GONE, _notice_its_end, _sockets

# It takes a connection and reads nothing, so that the kernel resets it when the process ends; or it answers with an error.
_LISTENER = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
connection, _ = server.accept()
if sys.argv[1:]:
    connection.recv(100)
    connection.sendall(sys.argv[1].encode())
print("met", flush=True)
time.sleep(600)
"""
CALL = "c\no1\nx\ne\n"


@pytest.fixture
def listener(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", _LISTENER, *request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@contextmanager
def client_of(process: "subprocess.Popen[str]") -> Iterator[GatewayClient]:
    """As PySpark has one for its JVM."""
    assert process.stdout is not None
    made = JavaGateway(gateway_parameters=GatewayParameters(port=int(process.stdout.readline())))
    made.proc = process
    _notice_its_end(made)
    yield made._gateway_client
    made.close()


@pytest.mark.parametrize("listener", [[]], indirect=True)
def test_a_call_whose_connection_is_reset_says_that_the_jvm_is_gone(
    listener: "subprocess.Popen[str]",
) -> None:
    def kill() -> None:
        assert listener.stdout is not None
        listener.stdout.readline()
        time.sleep(0.3)  # what was sent lies unread
        listener.kill()

    with client_of(listener) as client:
        killing = threading.Thread(target=kill)
        killing.start()
        with pytest.raises(JVM_GONE):
            client.send_command(CALL)
        killing.join()


@pytest.mark.parametrize("listener", [[f"!{ERROR}\n"]], indirect=True)
def test_a_jvm_that_answers_with_an_error_lives(listener: "subprocess.Popen[str]") -> None:
    with client_of(listener) as client:
        assert client.send_command(CALL) == ERROR


def test_sockets_lie_where_spark_takes_them() -> None:
    """Spark refuses to start with a folder of more than 60 bytes: then it talks by TCP."""
    assert _sockets("/tmp/streamjoin-x/python") == {
        "spark.python.unix.domain.socket.dir": "/tmp/streamjoin-x"
    }
    long = f"/{'long' * 20}/python"
    assert _sockets(long) == {"spark.python.unix.domain.socket.enabled": "false"}
