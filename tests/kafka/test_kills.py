"""Broker, driver, JVM and worker are killed at random moments while rows come; readers see each result once.

    files appear ─► streamjoin run ─► topic          every kill: SIGKILL, at a random moment
                        ▲  restarted when it ends

STREAMJOIN_FAULT_ROUNDS: how many kills (20 unless told); STREAMJOIN_FAULT_SEED: which, and when.
"""

import json
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.kafka.broker import Broker
from tests.spark.faults.scenario import Run
from tests.spark.trial import Rows, Trial

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
ROUNDS = int(os.environ.get("STREAMJOIN_FAULT_ROUNDS", "20"))
SEED = int(os.environ.get("STREAMJOIN_FAULT_SEED", random.randrange(10**6)))
VICTIMS = ("worker", "worker", "broker", "worker", "worker", "broker", "worker", "driver", "worker", "jvm")
SQL = "SELECT o.k AS k, o.v AS ov, p.v AS pv FROM orders o JOIN payments p ON o.k = p.k"
SCHEMA = "k BIGINT, v BIGINT"
RETRYING = "spark.master=local[2,8]"  # a task may fail seven times, as on a cluster
MOST = 12  # files of a batch: what has come while a run was down is soon made up for
ROWS, KEYS = 120, 40  # of a file; about as many results of each row as there are files
_ROOT = Path(__file__).parents[2]


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
class Sink:
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
        (self.folder / "faults").mkdir()

    def begin(self, *more: str) -> Run:
        """`streamjoin run`, in a session of processes of its own."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(_ROOT),
            "STREAMJOIN_FAULTS": str(self.folder / "faults"),
            "STREAMJOIN_LOCAL_DIR": str(self.folder / "indexes"),
            "TMPDIR": str(self.folder),
        }
        spec = str(self.folder / "spec.yaml")
        command = [
            sys.executable,
            "-c",
            "from jobs.cli.commands import main; main()",
            "run",
            spec,
            "--plain",
            *more,
        ]
        self.runs.append(Run(command, environment, self.folder / "stderr.txt"))
        return self.runs[-1]

    @property
    def begun(self) -> int:
        """The last batch that was begun."""
        logs = (self.folder / "checkpoint" / "spark" / "offsets").glob("*")
        return max((int(f.name) for f in logs if f.name.isdigit()), default=-1)

    def until_it_flows(self, run: Run, patience_s: float = 120.0) -> None:
        """One batch more has begun; or the run has ended."""
        before, end = self.begun, time.monotonic() + patience_s
        while self.begun == before and alive(run):
            assert time.monotonic() < end, "nothing happens any more"
            time.sleep(0.05)

    def results(self) -> Rows:
        """What a reader of committed messages sees."""
        return Counter(tuple(orjson.loads(s.value or b"").values()) for s in self.broker.read(self.topic))

    def close(self) -> None:
        for run in self.runs:
            run.close()


@contextmanager
def sink(folder: Path, broker: Broker, topic: str, most: int = MOST) -> Iterator[Sink]:
    """A job of which nothing runs on afterwards. `most`: files of a batch."""
    made = Sink(folder, broker, topic, most)
    try:
        yield made
    finally:
        made.close()


def alive(run: Run) -> bool:
    return run._process.poll() is None


def stop(run: Run) -> None:
    """In order."""
    run._process.terminate()
    run._process.wait(90)


def aborted(broker: Broker, topic: str, committed: int) -> int:
    """Messages and control records that no reader of committed messages sees."""
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": "tests"})
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
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
            died = _suffer(job, own_broker, draw)
        finally:
            feed.stopped.set()
            feeding.join()
        last = job.begin("--until-done")
        assert last.end() == 0, last._last_words()

        found = job.results()
        print(
            f"{feed.files} files, {job.begun + 1} batches, {len(job.runs)} runs, {found.total()} results, killed: {died}"
        )
        assert found == job.trial.expected(SQL)
        assert died.total() == ROUNDS


def _suffer(job: Sink, broker: Broker, draw: random.Random) -> Counter[str]:
    """Kills until there were enough; the run is begun again whenever it has ended."""
    victims = draw.sample(VICTIMS, len(VICTIMS))
    died: Counter[str] = Counter()
    run = job.begin("--conf", RETRYING)
    job.until_it_flows(run)
    while died.total() < ROUNDS:
        time.sleep(draw.uniform(0.05, 1.2))
        victim = victims[died.total() % len(victims)]
        if victim == "broker":
            broker.kill()
            time.sleep(draw.uniform(0, 0.5))
            broker.start()
            died[victim] += 1
        else:
            died[victim] += run.kill(victim)  # type: ignore[arg-type]
        if victim in ("driver", "jvm"):
            run.end()
        if not alive(run):
            run = job.begin("--conf", RETRYING)
            job.until_it_flows(run)
    run.kill_all()
    run.end()
    return died


def test_named_points(broker: Broker, tmp_path: Path) -> None:
    """Killed between flush and commit, between the commit and that of the state, and before Spark's own commit log."""
    with sink(tmp_path / "job", broker, broker.topic("points", 2)) as job:
        feed = Feed(job.trial, random.Random(1))
        for _ in range(6 * MOST):
            feed.one()
        for fault in ("produced:1", "sent:2", "collected:3"):
            (job.folder / "faults" / fault).touch()
        assert job.begin("--until-done", "--conf", RETRYING).end() == -9
        assert [f.name for f in (job.folder / "faults").iterdir()] == []
        (job.folder / "faults" / "sent:4").touch()
        worker = job.begin("--until-done")
        assert worker.end() == 1
        assert "a Python worker died" in (job.folder / "stderr.txt").read_text()
        assert job.begin("--until-done").end() == 0

        found = job.results()
        assert found == job.trial.expected(SQL)
        assert aborted(broker, job.topic, found.total()) > 20, "nothing was cut off"
