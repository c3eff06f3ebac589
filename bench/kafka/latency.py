"""How long does a row take from topic to topic? From the producer's time to that of a reader at read_committed.

    PYTHONPATH=. .venv/bin/python bench/kafka/latency.py [--rate 10000] [--seconds 60]

Two topics are joined into a third, one match for each pair of rows. Rows come in small sends every 5 ms, half of the
rate into each topic; a result is as old as the later of its two rows. Broker, producer, reader and job share the
machine. The first third of the time is left out: Python and Java compile in it.
"""

import argparse
import json
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median

import numpy as np
import orjson
import yaml
from confluent_kafka import Consumer, Producer

from joinlib.compiled import compiled
from joinlib.spark.job import Report, started
from joinlib.spec import load
from tests.kafka.broker import Broker, running

SQL = "SELECT a.sent AS a_sent, b.sent AS b_sent FROM a JOIN b ON a.k = b.k"
TICK_S = 0.005
CORES = 2


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
            value = orjson.dumps({"k": number, "sent": time.time()})
            producer.produce("a", value)
            producer.produce("b", value)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    spawn, reports = get_context("spawn"), list[Report]()
    ended = spawn.Event()
    with tempfile.TemporaryDirectory() as name, running(Path(name) / "broker") as broker:
        for topic in ("a", "b", "results"):
            broker.topic(topic, 1)
        plan = compiled(load(spec(broker, Path(name))), CORES)
        file = Path(name) / "found.npy"
        beside = [  # processes: threads would hold up the driver's
            spawn.Process(target=produce, args=(broker.servers, given.rate, ended)),
            spawn.Process(target=read, args=(broker.servers, ended, file)),
        ]
        conf = {"spark.sql.streaming.numRecentProgressUpdates": "10000"}
        with started(plan, reports.append, until_done=False, cores=CORES, conf=conf) as job:
            for process in beside:
                process.start()
            job.wait(given.seconds)
            ended.set()
            for process in beside:
                process.join()
            took = [p["durationMs"] for p in job.query.recentProgress if p["numInputRows"]]
        found = np.load(file)
    ages = found[found[:, 0] > found[0, 0] + given.seconds / 3, 1] * 1e3
    told = {f"p{p}": round(float(np.percentile(ages, p))) for p in (50, 90, 99, 99.9)}
    warm = took[len(took) // 3 :]
    phases = {name: median(p.get(name, 0) for p in warm) for name in warm[-1]}
    said = {"rate": given.rate, "results": len(found), "batches": len(reports), "ms": told}
    print(json.dumps({**said, "median of a batch, ms": phases}))


if __name__ == "__main__":
    main()
