"""A command that runs in a container, as the API server's exec hands it on: a WebSocket with a channel for each stream.

stdin     open as long as somebody waits; by its end the command learns that nobody does
stdout    lines, handed on as they come; stderr likewise
error     last of all how the command ended, as a Status of Kubernetes
"""

import json
from collections.abc import Callable
from typing import Any

from kubernetes.client import ApiException
from kubernetes.stream.ws_client import ERROR_CHANNEL, STDERR_CHANNEL, STDOUT_CHANNEL, WSClient
from websocket import WebSocketBadStatusException, WebSocketException

from joinlib.errors import NotReady

Say = Callable[[str, bool], None]  # takes a line, and whether it is one of stderr


def followed(socket: WSClient, say: Say) -> int:
    """Hand on what a command prints until it ends; return its exit code.

    Raises:
        NotReady: The command was not started, or the connection ended first.
    """
    rest, going = {STDOUT_CHANNEL: b"", STDERR_CHANNEL: b""}, True
    try:
        while going:
            socket.update(timeout=None)
            going = socket.is_open()  # what came before it closed is looked at once more
            for channel, part in rest.items():
                *lines, rest[channel] = (part + socket.read_channel(channel)).split(b"\n")
                for line in lines:
                    say(line.decode(errors="replace"), channel == STDERR_CHANNEL)
    except WebSocketException as error:
        raise NotReady(_CUT_OFF) from error
    finally:
        socket.close()
    for channel, line in rest.items():
        if line:
            say(line.decode(errors="replace"), channel == STDERR_CHANNEL)
    return _exit_code(socket.read_channel(ERROR_CHANNEL))


def answer_of(error: ApiException) -> BaseException:
    """Return what the API server said instead of opening a WebSocket, or else why it could not be asked.

    The client puts both into the text of an error without a status.
    """
    cause = error.__context__
    if isinstance(cause, WebSocketBadStatusException):
        said = (cause.resp_body or b"").decode(errors="replace")
        return ApiException(status=cause.status_code, reason=cause.status_message, body=said)
    return cause or error


def _exit_code(told: bytes) -> int:
    """Return the exit code that a Status tells."""
    if not told:
        raise NotReady(_CUT_OFF)
    status: dict[str, Any] = json.loads(told)
    if status.get("status") == "Success":
        return 0
    causes = (status.get("details") or {}).get("causes") or ()
    for cause in causes:
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    raise NotReady(
        f"the driver's container did not start the command: {status.get('message')}; `kubectl streamjoin status` says"
        " what the job does"
    )


_CUT_OFF = "the connection to the driver's pod ended before the answer was complete; ask again"
