"""How long does a row take from topic to topic? From the producer's time to that of a reader at read_committed.

    PYTHONPATH=. .venv/bin/python bench/kafka/latency.py [--rate 10000] [--seconds 60] [--repetitions 3] [--systems SYSTEM ...]

Two topics are joined into a third, one match for each pair of rows, exactly once. Rows come in small sends every 5 ms,
half of the rate into each topic; a result is as old as the later of its two rows. Broker, producer, reader and job share
the machine. The first third of the time is left out: Python and Java compile in it. Each system has a broker of its own.

    streamjoin       batches as soon as there are rows
    flink-100ms      Flink's SQL join, state on the heap, a checkpoint every 100 ms, with which results are committed
    flink-1s         the same, a checkpoint every second
    kafka-streams    exactly_once_v2, a commit every 100 ms (its default); joined within an hour, since it needs a window
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import orjson
import yaml
from confluent_kafka import Consumer, Producer

from bench.kafka.peers import peers
from joinlib.compiled import compiled
from joinlib.spark.job import RunningJob, started
from joinlib.spec import load
from tests.kafka.broker import Broker, running

SQL = "SELECT a.sent AS a_sent, b.sent AS b_sent FROM a JOIN b ON a.k = b.k"
TICK_S = 0.005
CORES = 2
Told = dict[str, Any]


def spec(broker: Broker, folder: Path) -> Path:
    kafka = {"bootstrapServers": broker.servers}
    given = {n: {"schema": "k BIGINT, sent DOUBLE", "kafka": {**kafka, "topic": n}} for n in ("a", "b")}
    body = {
        "sql": SQL,
        "inputs": given,
        "output": {"kafka": {**kafka, "topic": "results"}},
        "batch": {"interval": "0s"},
        "checkpoint": {"path": "checkpoint"},
    }
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "latency"}}
    file = folder / "latency.yaml"
    file.write_text(yaml.safe_dump({**head, "spec": body}))
    return file


def produce(servers: str, rate: int, ended: Event) -> None:
    """Send rows in time, until `ended`: row n of one topic has the key of row n of the other."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 1, "acks": "all"})
    begun, row = time.time(), 0
    while not ended.is_set():
        due = int((time.time() - begun) * rate / 2)
        for number in range(row, due):
            value, key = orjson.dumps({"k": number, "sent": time.time()}), str(number).encode()
            producer.produce("a", value, key)
            producer.produce("b", value, key)
        row = due
        producer.poll(0)
        time.sleep(TICK_S)
    producer.flush(30)


def read(servers: str, ended: Event, file: Path) -> None:
    """Note when each result came, and how old it was."""
    found: list[tuple[float, float]] = []
    settings = {
        "bootstrap.servers": servers,
        "group.id": "reader",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 5,
    }
    consumer = Consumer(settings)
    consumer.subscribe(["results"])
    while not ended.is_set():
        messages, now = consumer.consume(10_000, 0.005), time.time()
        for message in messages:
            if message.error() is None:
                row = orjson.loads(message.value())
                found.append((now, now - max(row["a_sent"], row["b_sent"])))
    consumer.close()
    np.save(file, np.array(found))


@contextmanager
def streamjoin(broker: Broker, folder: Path, told: Told) -> Iterator[None]:
    """Ours; told what the steps of a batch take."""
    plan = compiled(load(spec(broker, folder)), CORES)
    ended = threading.Event()
    took: list[dict[str, float]] = []

    def wait(job: RunningJob) -> None:
        batch = -1
        while not ended.is_set():
            job.wait(0.3)
            for said in job.progress(batch):
                batch = said["batchId"]
                took.append(said["durationMs"])

    with started(plan, lambda _: None, until_done=False, cores=CORES) as job:
        waiting = threading.Thread(target=wait, args=(job,))
        waiting.start()
        yield
        ended.set()
        waiting.join()
        warm = took[len(took) // 3 :]
        told["batches"] = len(took)
        told["median of a batch, ms"] = {
            name: round(median(p.get(name, 0) for p in warm), 1) for name in warm[-1]
        }


def peer(command: Callable[[str, Path], list[str]]) -> Callable[[Broker, Path, Told], Any]:
    """Another system, in a process of its own."""

    @contextmanager
    def run(broker: Broker, folder: Path, _: Told) -> Iterator[None]:
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command(broker.servers, folder), stdout=log, stderr=log)
        try:
            time.sleep(5)  # until it is there
            yield
            if process.poll() is not None:
                raise SystemExit((folder / "log").read_text()[-2000:])
        finally:
            process.kill()
            process.wait()

    return run


SYSTEMS: Mapping[str, Callable[[Broker, Path, Told], Any]] = {
    "streamjoin": streamjoin,
    "flink-100ms": peer(lambda servers, folder: peers.flink(servers, folder, 100)),
    "flink-1s": peer(lambda servers, folder: peers.flink(servers, folder, 1000)),
    "kafka-streams": peer(lambda servers, folder: peers.streams(servers, folder, 100)),
}


def measured(name: str, rate: int, seconds: float) -> Told:
    """One run of a system."""
    spawn = get_context("spawn")
    ended, told = spawn.Event(), Told(system=name, rate=rate)
    with tempfile.TemporaryDirectory() as place, running(Path(place) / "broker") as broker:
        for topic in ("a", "b", "results"):
            broker.topic(topic, 1)
        file = Path(place) / "found.npy"
        beside = [  # processes: threads would hold up the driver's
            spawn.Process(target=produce, args=(broker.servers, rate, ended)),
            spawn.Process(target=read, args=(broker.servers, ended, file)),
        ]
        with SYSTEMS[name](broker, Path(place), told):
            for process in beside:
                process.start()
            time.sleep(seconds)
            ended.set()
            for process in beside:
                process.join()
        found = np.load(file)
    ages = found[found[:, 0] > found[0, 0] + seconds / 3, 1] * 1e3 if len(found) else found
    if not len(ages):
        raise SystemExit(f"{name}: no results after the first third of {seconds:g} s; give it more --seconds")
    ms = {f"p{p}": round(float(np.percentile(ages, p))) for p in (50, 90, 99, 99.9)}
    return {"system": name, "rate": rate, "results": len(found), "ms": ms, **told}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=int, default=10_000, help="rows a second, of both topics")
    parser.add_argument("--seconds", type=float, default=60, help="of each run")
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=["streamjoin"], metavar="SYSTEM")
    given = parser.parse_args()
    for _ in range(given.repetitions):
        for name in given.systems:
            print(json.dumps(measured(name, given.rate, given.seconds)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
