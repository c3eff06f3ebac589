"""A real Kafka broker for tests: one JVM in KRaft mode, on free ports, in a folder of its own.

    PLAIN    no security                                     servers
    LOGIN    SASL_SSL: SCRAM and PLAIN                        login
    MUTUAL   SSL, and the client shows a certificate          mutual
    OPEN     SASL_PLAINTEXT                                   open

It ends with the process that started it, however that ends, and with `stop` or `kill`; `start` again finds its topics.
"""

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.patience import HUNG_S
from tests.ports import free_port
from tests.watch import Watch

HERE = Path(__file__).parent
USER, PASSWORD = "alice", "correct-horse-battery"
LISTENERS = {"PLAIN": "PLAINTEXT", "LOGIN": "SASL_SSL", "MUTUAL": "SSL", "OPEN": "SASL_PLAINTEXT"}
_JAVA = (
    "-Xmx320m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Djava.net.preferIPv4Stack=true",
)


@dataclass(frozen=True)
class Seen:
    """A message, as a reader of committed ones sees it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Cannot(Exception):
    """There is no broker to be had on this machine; the text says why."""


@dataclass
class Broker:
    """One broker. `folder` holds all that it writes."""

    folder: Path
    ports: dict[str, int]
    jars: Path
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    watch: Watch | None = field(default=None, repr=False)
    named: set[str] = field(default_factory=set, repr=False)

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.ports['PLAIN']}"

    @property
    def login(self) -> str:
        return f"localhost:{self.ports['LOGIN']}"

    @property
    def mutual(self) -> str:
        return f"localhost:{self.ports['MUTUAL']}"

    @property
    def open(self) -> str:
        return f"localhost:{self.ports['OPEN']}"

    def certificate(self, name: str) -> Path:
        """ca.crt, client.crt or client.key."""
        return self.folder / "pki" / name

    # --- life ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Returns once it answers."""
        assert self.process is None
        with (self.folder / "broker.log").open("ab") as log:
            self.process = subprocess.Popen(
                self._java("kafka.Kafka", str(self._properties)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.watch = Watch(self.process.pid, "KILL")
        self._await()

    def kill(self) -> None:
        """At once, by SIGKILL; the machine lives on, and with it what was written."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """In order."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self.watch is not None:
            self.watch.off()
            self.watch = None
        if self.process is not None:
            self.process.send_signal(number)
            try:
                self.process.wait(HUNG_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def _await(self) -> None:
        assert self.process is not None
        until = time.monotonic() + HUNG_S
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        while time.monotonic() < until and self.process.poll() is None:
            with contextlib.suppress(KafkaException):
                if admin.list_topics(timeout=1).brokers:
                    return
            time.sleep(0.1)
        raise RuntimeError(f"no broker: {(self.folder / 'broker.log').read_text()[-2000:]}")

    def _java(self, main: str, *arguments: str) -> list[str]:
        return ["java", *_JAVA, "-cp", f"{self.jars}/*", main, *arguments]

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    # --- what tests do with it -------------------------------------------------------------------------------------

    def topic(self, name: str, partitions: int = 1, **config: str) -> str:
        """Makes a topic; its name. Dots in names of settings are written as underscores.

        The broker is shared: a name that another test has taken is an error, not that test's topic.
        """
        assert name not in self.named, f"another test has made the topic {name}"
        self.named.add(name)
        settings = {key.replace("_", "."): value for key, value in config.items()}
        with self._admin() as admin:
            made = admin.create_topics([NewTopic(name, partitions, 1, config=settings)])
            _done(made, KafkaError.TOPIC_ALREADY_EXISTS)
        return name

    def partitions(self, name: str, count: int) -> None:
        """Gives a topic more of them, `count` in all."""
        with self._admin() as admin:
            _done(admin.create_partitions([NewPartitions(name, count)]))

    def forget(self, name: str, partition: int, before: int) -> None:
        """Deletes the messages before an offset."""
        with self._admin() as admin:
            _done(admin.delete_records([TopicPartition(name, partition, before)]))

    def drop(self, name: str) -> None:
        """Deletes a topic; returns once nobody sees it any more."""
        with self._admin() as admin:
            _done(admin.delete_topics([name]), KafkaError.UNKNOWN_TOPIC_OR_PART)
            end = time.monotonic() + HUNG_S
            while name in admin.list_topics(timeout=HUNG_S).topics and time.monotonic() < end:
                time.sleep(0.1)
        self.named.remove(name)

    def send(
        self,
        topic: str,
        values: Iterable[bytes | None],
        partition: int = 0,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
        timestamp: int = 0,
    ) -> None:
        """Messages of one partition, in order; on disk of the broker when this returns."""
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 20, "acks": "all"})
        for value in values:
            while True:
                try:
                    producer.produce(
                        topic, value, key, partition, headers=list(headers), timestamp=timestamp or 0
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(60) == 0

    def read(self, topic: str) -> list[Seen]:
        """All committed messages of a topic, partition after partition."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "tests",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        try:
            found = consumer.list_topics(topic, timeout=HUNG_S).topics[topic].partitions
            consumer.assign([TopicPartition(topic, p, 0) for p in found])
            seen: list[Seen] = []
            ended: set[int] = set()
            while len(ended) < len(found):
                for message in consumer.consume(10_000, 0.1):
                    if message.error() is None:
                        seen.append(_seen(message))
                    elif message.error().code() == -191:  # the partition's end
                        ended.add(message.partition())
                    else:
                        raise KafkaException(message.error())
        finally:
            consumer.close()
        return sorted(seen, key=lambda s: (s.partition, s.offset))

    @contextlib.contextmanager
    def _admin(self) -> Iterator[AdminClient]:
        """Its answers come only while somebody holds it."""
        yield AdminClient({"bootstrap.servers": self.servers, "log_level": 0})


def make(folder: Path) -> Broker:
    """A broker in an empty folder, not started yet. Raises Cannot."""
    jars = _jars()
    names = (*LISTENERS, "CONTROLLER")
    broker = Broker(folder, {name: free_port() for name in names}, jars)
    folder.mkdir(parents=True, exist_ok=True)
    _certificates(folder / "pki")
    broker._properties.write_text("".join(f"{k}={v}\n" for k, v in _settings(broker).items()))
    scram = [f"{name}=[name={USER},password={PASSWORD}]" for name in ("SCRAM-SHA-256", "SCRAM-SHA-512")]
    users = [word for one in scram for word in ("--add-scram", one)]
    format = ["format", "--standalone", "-t", "c3RyZWFtam9pbi10ZXN0cw", "-c", str(broker._properties), *users]
    made = subprocess.run(
        broker._java("kafka.tools.StorageTool", *format), capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return broker


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Broker]:
    """A started broker, and its end."""
    broker = make(folder)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()
        shutil.rmtree(folder / "data", ignore_errors=True)


def _settings(broker: Broker) -> dict[str, object]:
    pki = broker.folder / "pki"
    listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in broker.ports.items())
    told = ",".join(
        f"{name}://{'127.0.0.1' if name == 'PLAIN' else 'localhost'}:{broker.ports[name]}"
        for name in LISTENERS
    )
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    logins = {
        f"listener.name.{name}.{mechanism}.sasl.jaas.config": jaas
        for name in ("login", "open")
        for mechanism, jaas in (
            ("plain", f'{plain} user_{USER}="{PASSWORD}";'),
            ("scram-sha-256", f"{scram};"),
            ("scram-sha-512", f"{scram};"),
        )
    }
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "listeners": listeners,
        "advertised.listeners": told,
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in {**LISTENERS, "CONTROLLER": "PLAINTEXT"}.items()
        ),
        "inter.broker.listener.name": "PLAIN",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{broker.ports['CONTROLLER']}",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        **logins,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": pki / "broker.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": pki / "ca.crt",
        "listener.name.mutual.ssl.client.auth": "required",
        "log.dirs": broker.folder / "data",
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
        "transaction.max.timeout.ms": 3_600_000,
        "group.initial.rebalance.delay.ms": 0,
        "log.retention.check.interval.ms": 1000,
        "log.cleaner.dedupe.buffer.size": 8 << 20,
        "log.cleaner.backoff.ms": 500,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "log.segment.bytes": 64 << 20,
        "broker.session.timeout.ms": 2000,  # one that was killed may register again after it
        "broker.heartbeat.interval.ms": 300,
    }


def _jars() -> Path:
    found = subprocess.run([HERE / "fetch"], capture_output=True, text=True, check=False)
    if found.returncode:
        raise Cannot(found.stderr.strip() or found.stdout.strip())
    return Path(found.stdout.strip())


def _certificates(pki: Path) -> None:
    """An authority, a broker's certificate with its key in one file, and a client's."""
    pki.mkdir()

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=pki, check=True, capture_output=True)

    key = ["-newkey", "rsa:2048", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=tests", "-days", "30")
    (pki / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in ("broker", "client"):
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        sign = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30", "-extfile", "names"]
        openssl("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.crt", *sign)
    (pki / "broker.pem").write_bytes((pki / "broker.key").read_bytes() + (pki / "broker.crt").read_bytes())


def _seen(message: Message) -> Seen:
    headers = tuple(message.headers() or ())
    return Seen(message.partition(), message.offset(), message.key(), message.value(), headers)


def _done(futures: dict[object, object], done_before: int | None = None) -> None:
    """Waits. The client asks again where an answer is late: then the second one may say that it was done before."""
    for future in futures.values():
        try:
            future.result(HUNG_S)  # type: ignore[attr-defined]
        except KafkaException as e:
            if e.args[0].code() != done_before:
                raise
