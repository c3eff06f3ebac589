"""Executors' pods that the API server refuses: the driver goes on, tries again, and knows why."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.jsonserver import Answer, Request, serving_json
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
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Request) -> Answer:
        with self.lock:
            if request.path == "/posted":
                return 200, self.posted
            if request.path == "/admit":
                self.admits = True
                return 200, None
            if request.method == "POST":
                self.posted += 1
                return self._made(request.body)
        return 200, {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}

    def _made(self, pod: dict[str, Any]) -> Answer:
        name = pod["metadata"]["name"]
        if self.admits:
            return 201, {**pod, "metadata": {**pod["metadata"], "uid": name}}
        message = _QUOTA.format(name)
        return 403, {"kind": "Status", "code": 403, "status": "Failure", "message": message}


@pytest.fixture
def server() -> Iterator[str]:
    """Its address."""
    with serving_json(PodServer().answer) as port:
        yield f"http://127.0.0.1:{port}"


def test_the_driver_goes_on_and_knows_why(server: str, tmp_path: Path) -> None:
    """However often a quota refuses a pod, and while Spark waits for executors, before there is a session; the words stay the same,
    are logged once, and are over once a pod is made.
    """
    done = subprocess.run(
        [sys.executable, "-c", _DRIVE, server, str(_FAILURES)],
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
