"""Broker, driver, JVM and worker are killed at random moments while rows come; readers see each result once.

    files appear ─► streamjoin run ─► topic          every kill: SIGKILL, at a random moment
                        ▲  restarted when it ends

STREAMJOIN_FAULT_ROUNDS: how many kills (10 unless told, each of the victims once); STREAMJOIN_FAULT_SEED: which, and when.
"""

import json
import os
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.kafka.broker import Broker
from tests.patience import HUNG_S
from tests.spark.faults.drawn import SEED
from tests.spark.faults.flowing import Flowing, suffer
from tests.spark.faults.scenario import Run
from tests.spark.trial import Rows, Trial

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
ROUNDS = int(os.environ.get("STREAMJOIN_FAULT_ROUNDS", "10"))
VICTIMS = ("worker", "worker", "broker", "worker", "worker", "broker", "worker", "driver", "worker", "jvm")
SQL = "SELECT o.k AS k, o.v AS ov, p.v AS pv FROM orders o JOIN payments p ON o.k = p.k"
SCHEMA = "k BIGINT, v BIGINT"
MOST = 12  # files of a batch: what has come while a run was down is soon made up for
ROWS, KEYS = 120, 40  # of a file; about as many results of each row as there are files


@dataclass
class Feed:
    """Files of both inputs, one after the other while it runs."""

    trial: Trial
    draw: random.Random
    files: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)

    def one(self) -> None:
        for name in ("orders", "payments"):
            keys = (self.draw.randrange(KEYS * (self.files + 1)) for _ in range(ROWS))
            self.trial.write(name, f"{self.files:04d}", [(k, self.draw.randrange(10**6)) for k in keys])
        self.files += 1

    def run(self) -> None:
        while not self.stopped.wait(0.5):
            self.one()


@dataclass
class Sink(Flowing):
    """A job whose results go to a topic, and its runs."""

    folder: Path
    broker: Broker
    topic: str
    most: int = MOST
    runs: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.trial = Trial(self.folder, None)  # type: ignore[arg-type]  # only its files and its oracle are used
        for name in ("orders", "payments"):
            self.trial.input(name, SCHEMA)
        head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "kills"}}
        spec = {
            "sql": SQL,
            "inputs": {
                n: {"schema": SCHEMA, "files": {"path": n, "orderBy": "name", "maxFilesPerBatch": self.most}}
                for n in self.trial.schemas
            },
            "output": {"kafka": {"bootstrapServers": self.broker.servers, "topic": self.topic, "key": ["k"]}},
            "checkpoint": {"path": "checkpoint"},
            "join": {"units": 4},
        }
        (self.folder / "spec.yaml").write_text(json.dumps({**head, "spec": spec}))

    def results(self) -> Rows:
        """What a reader of committed messages sees."""
        return Counter(tuple(orjson.loads(s.value or b"").values()) for s in self.broker.read(self.topic))


@contextmanager
def sink(folder: Path, broker: Broker, topic: str, most: int = MOST) -> Iterator[Sink]:
    """A job of which nothing runs on afterwards. `most`: files of a batch."""
    made = Sink(folder, broker, topic, most)
    try:
        yield made
    finally:
        made.close()


def stop(run: Run) -> None:
    """In order."""
    run._process.terminate()
    run._process.wait(HUNG_S)


def aborted(broker: Broker, topic: str, committed: int) -> int:
    """Messages and control records that no reader of committed messages sees."""
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": "tests"})
    try:
        partitions = consumer.list_topics(topic, timeout=HUNG_S).topics[topic].partitions
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, p), 10)[1] for p in partitions]
    finally:
        consumer.close()
    return sum(ends) - committed


def test_each_result_once_after_kills(own_broker: Broker, tmp_path: Path) -> None:
    """As multisets, the topic is DuckDB's answer over all files."""
    print(f"STREAMJOIN_FAULT_SEED={SEED}")
    draw = random.Random(SEED)
    topic = own_broker.topic("results", 3)
    with sink(tmp_path / "job", own_broker, topic) as job:
        feed = Feed(job.trial, random.Random(SEED))
        feed.one()
        feeding = threading.Thread(target=feed.run)
        feeding.start()
        try:
            died = suffer(
                job, (own_broker.kill, own_broker.start), draw.sample(VICTIMS, len(VICTIMS)), ROUNDS, draw
            )
        finally:
            feed.stopped.set()
            feeding.join()
        last = job.begin("--until-done")
        assert last.end() == 0, last.last_words()

        found = job.results()
        print(
            f"{feed.files} files, {job.begun + 1} batches, {len(job.runs)} runs, {found.total()} results, killed: {died}"
        )
        assert found == job.trial.expected(SQL)
        assert died.total() == ROUNDS
