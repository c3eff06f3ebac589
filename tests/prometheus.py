"""A Prometheus of Debian's, on a port and in a folder of its own.

The programs are taken from the path, or out of Debian's package, which is unpacked and not installed: it would start a service.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.patience import HUNG_S
from tests.ports import free_port

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "streamjoin"


def program(name: str) -> str:
    """`prometheus` or `promtool`; skips where Debian cannot be reached."""
    found = shutil.which(name)
    kept = sorted(CACHE.glob(f"prometheus-*/usr/bin/{name}"))
    return found or str(kept[-1] if kept else _unpacked() / "usr" / "bin" / name)


def _unpacked() -> Path:
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        if not (package := _downloaded(Path(folder))):
            pytest.skip("there is no prometheus, and Debian's package cannot be reached")
        made = Path(folder) / "made"
        subprocess.run(["dpkg", "-x", package, made], check=True)
        target = CACHE / package.stem.replace("_", "-")  # name and version
        if not target.exists():
            made.chmod(0o755)
            made.rename(target)
        return target


def _downloaded(folder: Path) -> Path | None:
    folder.chmod(0o777)  # apt's own user writes there
    if not shutil.which("apt-get"):
        return None
    for update in (False, True):
        if update:
            subprocess.run(
                [Path(__file__).parents[1] / "tools" / "apt"], check=False, capture_output=True, timeout=280
            )
        fetch = ["apt-get", "download", "-q", "prometheus"]
        subprocess.run(fetch, cwd=folder, check=False, capture_output=True, timeout=120)
        if found := [*folder.glob("prometheus_*.deb")]:
            return found[0]
    return None


@dataclass(frozen=True)
class Prometheus:
    """One that runs."""

    url: str

    def ask(self, path: str, **parameters: Any) -> Any:
        """The data of an answer; what it refuses is an AssertionError."""
        request = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(request, timeout=HUNG_S) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def now(self, query: str) -> list[dict[str, Any]]:
        """An instant query's series."""
        return self.ask("query", query=query)["result"]

    def over(self, query: str, begin: float, end: float, step_s: float) -> list[dict[str, Any]]:
        """A range query's series."""
        return self.ask("query_range", query=query, start=begin, end=end, step=step_s)["result"]


@contextmanager
def running(folder: Path, config: Mapping[str, Any], host: str = "127.0.0.1") -> Iterator[Prometheus]:
    """A Prometheus with this configuration, ready; gone afterwards."""
    port = free_port()
    (folder / "prometheus.yml").write_text(yaml.safe_dump(dict(config)))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                program("prometheus"),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={host}:{port}",
                "--log.level=warn",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        _ready(process, f"http://{host}:{port}", folder / "log")
        yield Prometheus(f"http://{host}:{port}")
    finally:
        process.terminate()
        process.wait(HUNG_S)


def _ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + HUNG_S
    while process.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"prometheus does not start: {log.read_text()[-2000:]}")
