"""Executors' pods that the API server refuses: the driver goes on, tries again, and knows why."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.patience import HUNG_S

pytestmark = pytest.mark.spark

_QUOTA = 'pods "{}" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1'
_FAILURES = 2  # of executors, after which Spark ends the driver
# The driver: while Spark waits for executors, says why none is made after more attempts than Spark's own allocator survives, and
# what it says once a pod is made.
_DRIVE = """
import json, os, sys, threading, time
from urllib.request import urlopen
from joinlib.spark import session
from joinlib.spark.boot import home, jar
from joinlib.spark.executors import refused

home.use()
server = sys.argv[1]
kubernetes = {"container.image": "streamjoin:1", "executor.podNamePrefix": "late-exec-0a1b2c3d",
              "authenticate.oauthToken": "it", "allocation.batch.delay": "101ms", "executor.disableConfigMap": "true"}
conf = {"spark.master": f"k8s://{server}", "spark.submit.deployMode": "client", "spark.driver.host": "127.0.0.1",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0", "spark.scheduler.maxRegisteredResourcesWaitingTime": "1h",
        "spark.executor.instances": "1",
        "spark.executor.maxNumFailures": sys.argv[2], **jar.patience(),
        **{f"spark.kubernetes.{name}": value for name, value in kubernetes.items()}}
assert not refused()
starting = threading.Thread(target=session.start, args=(1, conf), daemon=True)
starting.start()

def until(true):
    while not true(): time.sleep(0.05)

def posted():
    return int(urlopen(f"{server}/posted").read())

until(lambda: posted() > 2 * int(sys.argv[2]))
until(refused)
print(json.dumps(refused()))
urlopen(f"{server}/admit")
until(lambda: not refused())
print(json.dumps("made" if starting.is_alive() else "started"), flush=True)
os._exit(0)
"""


@dataclass
class PodServer:
    """An API server of pods that has a quota, until it is told to admit them."""

    admits: bool = False
    posted: int = 0
    port: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Return status and answer."""
        if path == "/posted":
            return 200, self.posted
        if path == "/admit":
            self.admits = True
            return 200, None
        if method == "POST":
            self.posted += 1
            name = body["metadata"]["name"]
            if not self.admits:
                return 403, {
                    "kind": "Status",
                    "code": 403,
                    "status": "Failure",
                    "message": _QUOTA.format(name),
                }
            return 201, {**body, "metadata": {**body["metadata"], "uid": name}}
        return 200, {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}


@pytest.fixture
def server() -> Iterator[PodServer]:
    pods = PodServer()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            with pods.lock:
                status, answer = pods.answer(self.command, self.path, body)
            said = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = answer  # noqa: N815 - as http.server calls them

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    pods.port = http.server_port
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield pods
    http.shutdown()
    http.server_close()


def test_the_driver_goes_on_and_knows_why(server: PodServer, tmp_path: Path) -> None:
    """However often a quota refuses a pod, and while Spark waits for executors, before there is a session; the words stay the same,
    are logged once, and are over once a pod is made.
    """
    done = subprocess.run(
        [sys.executable, "-c", _DRIVE, f"http://127.0.0.1:{server.port}", str(_FAILURES)],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=HUNG_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    refused, made = map(json.loads, done.stdout.splitlines()[-2:])
    assert (refused, made) == (_QUOTA.format("late-exec-0a1b2c3d-exec-*"), "made")
    assert done.stderr.count("Failed to create executor pod") == 1
