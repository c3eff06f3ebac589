"""The part of an API server that lets run a command in a container: it notes what is asked, and plays the answer."""

import json
from dataclasses import dataclass, field

from aiohttp import WSMsgType, web
from joinop.names import Object

STDOUT, STDERR, ERROR = 1, 2, 3
SUCCESS: Object = {"status": "Success"}


def failure(code: int) -> Object:
    """How a command ended that exits with a code."""
    cause = {"reason": "ExitCode", "message": str(code)}
    return {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": [cause]}}


@dataclass
class Exec:
    """What a container prints, and how the command ends."""

    frames: list[tuple[int, bytes]] = field(default_factory=list)
    status: Object | None = field(default_factory=lambda: SUCCESS)  # None: the connection ends without
    refusal: tuple[int, str] | None = None
    waits: bool = False  # before it ends, until whoever asks has gone
    asked: list[tuple[str, list[tuple[str, str]]]] = field(default_factory=list)
    gone: bool = False

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.path, list(request.query.items())))
        if self.refusal is not None:
            status, message = self.refusal
            return web.json_response({"kind": "Status", "message": message, "code": status}, status=status)
        socket = web.WebSocketResponse(protocols=("v5.channel.k8s.io", "v4.channel.k8s.io"))
        await socket.prepare(request)
        for channel, content in self.frames:
            await socket.send_bytes(bytes([channel]) + content)
        if self.waits:
            async for message in socket:
                assert message.type == WSMsgType.BINARY
            self.gone = True
        elif self.status is not None:
            await socket.send_bytes(bytes([ERROR]) + json.dumps(self.status).encode())
        await socket.close()
        return socket
