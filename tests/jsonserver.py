"""A server of JSON on this machine, over TLS or not. What it answers, a test says."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = tuple[int, Any]  # a status, and what is sent as JSON


@dataclass(frozen=True)
class Request:
    """What a client asks for."""

    method: str
    path: str
    query: dict[str, str]
    token: str
    body: Any


@contextmanager
def serving_json(answer: Callable[[Request], Answer], tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serves on a port of its own, which is yielded. `answer` is called by several threads at once."""

    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            token = self.headers.get("Authorization", "")
            status, said = answer(
                Request(self.command, parts.path, query, token, json.loads(body) if body else None)
            )
            text = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any  # noqa: N815 - as http.server calls them

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.handle_error = lambda *_: None  # type: ignore[method-assign]  # what a test breaks on purpose
    if tls is not None:
        http.socket = tls.wrap_socket(http.socket, server_side=True)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield http.server_port
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
