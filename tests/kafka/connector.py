"""A real Debezium for tests: Kafka Connect with the connector for PostgreSQL, in one JVM.

    with running(folder, broker, database, {"plain": {...}}) as connect:   a connector for each name
        topics are called NAME.public.TABLE

It ends with the process that started it, however that ends.
"""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.kafka.broker import HERE, Broker, Cannot
from tests.ports import free_port
from tests.postgres.database import NAME, PASSWORD, Database
from tests.watch import Watch

_JAVA = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_JSON = "org.apache.kafka.connect.json.JsonConverter"


@contextlib.contextmanager
def running(
    folder: Path, broker: Broker, database: Database, connectors: Mapping[str, Mapping[str, str]]
) -> Iterator[Path]:
    """Connectors that run; yields the log's path. What they are told more is theirs alone."""
    jars = _jars()
    folder.mkdir()
    files = [_properties(folder / "worker.properties", _worker(folder, broker))]
    for name, more in connectors.items():
        files.append(_properties(folder / f"{name}.properties", {**_connector(name, database), **more}))
    command = [
        "java",
        *_JAVA,
        "-cp",
        f"{jars}/*",
        "org.apache.kafka.connect.cli.ConnectStandalone",
        *map(str, files),
    ]
    log = folder / "connect.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=folder)
    watch = Watch(process.pid, "KILL")
    try:
        yield log
    finally:
        watch.off()
        process.send_signal(signal.SIGKILL)
        process.wait()


def await_rows(broker: Broker, topic: str, end: bytes, seconds: float = 120) -> None:
    """Wait until the topic has a message whose value holds `end`."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(KeyError):  # there is no such topic yet
            if any(seen.value and end in seen.value for seen in broker.read(topic)):
                return
        time.sleep(0.5)
    raise AssertionError(f"{topic} has no {end!r} yet")


def _worker(folder: Path, broker: Broker) -> dict[str, object]:
    return {
        "bootstrap.servers": broker.servers,
        "key.converter": _JSON,
        "value.converter": _JSON,
        "offset.storage.file.filename": folder / "offsets",
        "offset.flush.interval.ms": 1000,
        "listeners": f"HTTP://127.0.0.1:{free_port()}",
    }


def _connector(name: str, database: Database) -> dict[str, object]:
    return {
        "name": name,
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "database.hostname": "127.0.0.1",
        "database.port": database.port,
        "database.user": "postgres",
        "database.password": PASSWORD,
        "database.dbname": NAME,
        "topic.prefix": name,
        "slot.name": name,
        "publication.name": name,
        "schema.include.list": "public",
        "publication.autocreate.mode": "filtered",
        "poll.interval.ms": 100,
        "topic.creation.default.replication.factor": 1,
        "topic.creation.default.partitions": 1,
    }


def _properties(path: Path, settings: Mapping[str, object]) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path


def _jars() -> Path:
    found = subprocess.run([HERE / "fetch", "debezium.xml"], capture_output=True, text=True, check=False)
    if found.returncode:
        raise Cannot(found.stderr.strip() or found.stdout.strip())
    return Path(found.stdout.strip().splitlines()[-1].removeprefix("\x1b[0m" * 4))
