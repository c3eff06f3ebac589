"""An operator of this checkout, outside the cluster, for one namespace; skipped with the reason where there
is no cluster.
"""

import os
import shutil
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from joinlib.spec.crd import crd
from tests.cluster.kube import Kube
from tests.patience import HUNG_S
from tests.ports import free_port

ROOT = Path(__file__).parents[3]


@dataclass
class Outside:
    """Starts and stops operators."""

    namespace: str
    log: Path
    port: int = field(default_factory=free_port)

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}",
            "JOINOP_NAMESPACES": self.namespace,
            "JOINOP_PORT": str(self.port),
            "JOINOP_ALLOW": '{"volumes": ["claim", "secret", "hostPath"]}',
        }
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "joinop"], env=environment, stdout=log, stderr=log
            )
        try:
            yield process
        finally:
            process.terminate()
            assert process.wait(HUNG_S) == 0, self.log.read_text()[-2000:]

    def ask(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=HUNG_S) as answer:
            return answer.read().decode()

    def unexpected(self) -> list[str]:
        """Lines of the log that should not be there: one may be of a server that has just started, and is asked again."""
        lines = self.log.read_text().splitlines()
        return [line for line in lines if " INFO joinop " not in line and "will retry" not in line]


@pytest.fixture(scope="session")
def cluster() -> Kube:
    """A cluster with our kind, and no other operator."""
    if not os.environ.get("KUBECONFIG"):
        pytest.skip("KUBECONFIG names no cluster; `make e2e` brings one up")
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl on the PATH")
    kube = Kube("default")
    if kube.run(
        "get", "deployments", "-A", "-l", "app.kubernetes.io/name=streamjoin-operator", "-o", "name"
    ).strip():
        pytest.skip("another operator serves this cluster; remove it first")
    kube.run("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=yaml.safe_dump(crd()))
    kube.run("wait", "crd/streamjoins.streamjoin.dev", "--for=condition=Established", "--timeout=30s")
    return kube


@pytest.fixture
def space(cluster: Kube) -> Iterator[Kube]:
    """A namespace of its own, with nobody to wait for its removal."""
    kube = Kube(f"t-{uuid.uuid4().hex[:8]}")
    cluster.run("create", "namespace", kube.namespace)
    yield kube
    cluster.run("delete", "namespace", kube.namespace, "--wait=false")


@pytest.fixture
def operator(space: Kube, tmp_path: Path) -> Iterator[Outside]:
    """An operator that runs."""
    outside = Outside(space.namespace, tmp_path / "operator.log")
    with outside.running():
        space.until("the operator is there", lambda: _answers(outside))
        yield outside
    assert not outside.unexpected()


def _answers(outside: Outside) -> bool:
    try:
        return outside.ask("/healthz") == "ok\n"
    except OSError:
        time.sleep(0.2)
        return False
