"""A batch is in the topic once, whoever dies, freezes or is away; and what cannot be written is named. Without Spark."""

import threading
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError

from joinlib.errors import NotReady, SpecError, StateError
from joinlib.sink.config import KafkaSinkConfig
from joinlib.sink.kafka.producer import TransactionalProducer
from joinlib.sink.kafka.sink import KafkaSink
from joinlib.sink.kafka.topic import reached
from joinlib.worker import Worker, current, using
from tests.configs import results
from tests.kafka.broker import PASSWORD, USER, Broker
from tests.ports import free_port

pytestmark = pytest.mark.timeout(120)


def rows(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"v": pa.array(values, pa.int64())})


def target(broker: Broker, topic: str, **more: Any) -> KafkaSinkConfig:
    return results(broker.servers, topic, job=topic, **more)


def values(broker: Broker, topic: str) -> list[int]:
    """What readers of committed messages see."""
    return sorted(orjson.loads(s.value or b"")["v"] for s in broker.read(topic))


def send(to: KafkaSinkConfig, batch: int, *numbers: int) -> None:
    """A task that lives."""
    box = KafkaSink(to, 0, batch)
    box.write(rows(*numbers))
    box.close()


def test_a_batch_that_runs_again_is_skipped(broker: Broker) -> None:
    """In the process that has written it, in another one, and after batches without rows."""
    to = target(broker, broker.topic("sent-again", 2))
    send(to, 0, 1, 2)
    send(to, 0, 1, 2)
    current().close()
    send(to, 0, 1, 2)
    send(to, 5, 3)
    send(to, 5, 3)
    assert values(broker, to.topic) == [1, 2, 3]


def test_nothing_is_there_before_the_commit(broker: Broker) -> None:
    """A task that dies leaves nothing that a reader sees; the next attempt writes all of it."""
    to = target(broker, broker.topic("died"))
    send(to, 0, 1)
    dies = KafkaSink(to, 0, 1)
    dies.write(rows(*range(2, 5000)))
    assert dies._channel is not None
    dies._channel.flush()
    send(to, 1, 2, 3)
    assert values(broker, to.topic) == [1, 2, 3]


def test_who_never_began_was_not_too_slow() -> None:
    """While it opens a channel, whoever is fenced is so by another."""
    to = results(f"127.0.0.1:{free_port()}", "t")
    error = TransactionalProducer(to, 0).error("beginning transactions", KafkaError(KafkaError._FENCED))
    assert isinstance(error, NotReady)
    assert "another run" in str(error)


def test_a_task_that_takes_too_long_is_told_so(broker: Broker) -> None:
    """The broker aborts its transaction as if another had taken over: the error says what it was, and what to change."""
    to = target(broker, broker.topic("slow-task"), transaction_timeout_us="1s")
    slow = KafkaSink(to, 0, 0)
    slow.write(rows(*range(5000)))  # so many that some are sent at once
    time.sleep(4)  # the broker looks once a second
    with pytest.raises(SpecError, match=r"longer than output\.kafka\.transactionTimeout, 1s, .* raise that"):
        slow.close()
    assert values(broker, to.topic) == []
    send(target(broker, to.topic, transaction_timeout_us="1m"), 0, 1)
    assert values(broker, to.topic) == [1]


@pytest.mark.parametrize("turn", range(4))
def test_a_frozen_attempt_does_no_harm(broker: Broker, turn: int) -> None:
    """It finds that another has taken over; also one that wakes before it has begun.

    Several times: how the client fails then, varies.
    """
    to = target(broker, broker.topic(f"frozen-{uuid.uuid4()}"))
    frozen, asleep = KafkaSink(to, 0, 0), KafkaSink(to, 0, 0)
    frozen.write(rows(*range(1 + 5000 * (turn % 2))))
    assert frozen._beginning is not None
    frozen._beginning.result()
    send(to, 0, 1)
    with pytest.raises(NotReady, match="another run of this checkpoint has taken over"):
        frozen.close()
    current().close()
    asleep.write(rows(1))
    asleep.close()
    assert values(broker, to.topic) == [1]


def test_two_processes_take_turns(broker: Broker) -> None:
    """Each has a channel of its own, of which one is out of date when its turn comes."""
    to = target(broker, broker.topic("turns"))
    processes = [Worker(), Worker()]
    for batch in range(6):
        with using(processes[batch % 2]):
            send(to, batch, batch)
    assert values(broker, to.topic) == list(range(6))


def test_an_old_copy_of_a_checkpoint_is_refused(broker: Broker) -> None:
    """Its batches are not those that are in the topic."""
    to = target(broker, broker.topic("old"))
    send(to, 7, 1)
    current().close()
    with pytest.raises(
        StateError, match="holds batch 7 of this checkpoint, which is at batch 3: it is an old copy"
    ):
        send(to, 3, 1)
    assert values(broker, to.topic) == [1]


def test_what_kafka_may_have_forgotten_is_refused(broker: Broker) -> None:
    """A batch that was cut off longer ago than offsets are kept; not a younger one, and not one whose marker is there."""
    to = target(broker, broker.topic("forgotten"))
    week = 7 * 24 * 3600.0
    assert reached(to, to.job, None).doubtful == -1
    assert reached(to, to.job, (3, 1.0)).doubtful == -1
    repeated = target(broker, to.topic, on_forgotten="repeat")
    assert reached(repeated, to.job, (3, week + 3600)).doubtful == -1
    doubtful = reached(to, to.job, (3, week + 3600))
    assert doubtful.doubtful == 3

    with pytest.raises(StateError, match=r"Kafka has forgotten whether its results are in topic forgotten"):
        send(doubtful, 3, 1)
    send(to, 2, 1)
    current().close()
    send(doubtful, 3, 2)
    current().close()
    send(doubtful, 3, 2)
    assert values(broker, to.topic) == [1, 2]


def test_a_broker_that_restarts_in_mid_batch(own_broker: Broker) -> None:
    """Killed between two frames, and away when the task would commit: it waits, nothing is lost."""
    to = target(own_broker, own_broker.topic("restart", 2))
    send(to, 0, 0)
    box = KafkaSink(to, 0, 1)
    box.write(rows(*range(1, 20_000)))
    own_broker.kill()
    own_broker.start()
    box.write(rows(*range(20_000, 40_000)))
    own_broker.kill()
    back = threading.Timer(1.0, own_broker.start)
    back.start()
    box.close()
    back.join()
    send(to, 2, 40_000)
    assert values(own_broker, to.topic) == list(range(40_001))


@pytest.mark.parametrize("format", ["json", "arrow", "csv"])
def test_a_row_too_large_for_a_message(broker: Broker, format: Any) -> None:
    """Named with both sizes; nothing of its batch is there. One that fits goes through, also where topics take more."""
    small = broker.topic(f"small-{format}", max_message_bytes="20000")
    large = broker.topic(f"large-{format}", max_message_bytes="3000000")
    row = pa.record_batch({"s": ["x" * 18_000]})
    to = reached(target(broker, small, format=format), small, None)
    box = KafkaSink(to, 0, 0)
    box.write(row)
    box.write(pa.record_batch({"s": ["x" * 24_000]}))
    with pytest.raises(
        SpecError, match=rf"takes 2\d{{4}} bytes, a message of topic {small} at most 19488; raise"
    ):
        box.close()
    send(to, 1, 5)
    assert len(broker.read(small)) == 1
    to = reached(target(broker, large, format=format), large, None)
    box = KafkaSink(to, 0, 0)
    box.write(pa.record_batch({"s": ["x" * 2_500_000]}))
    box.write(pa.record_batch({"s": ["y" * 1_900_000] * 3}))
    box.close()
    assert len(broker.read(large)) == 4


# --- before Spark starts -----------------------------------------------------------------------------------------------


def refused(error: type[Exception], to: KafkaSinkConfig) -> str:
    """What it says, within the time that a user waits for it."""
    with pytest.raises(error) as said:
        reached(to, "job", None)
    assert PASSWORD not in str(said.value)
    return str(said.value)


def test_a_topic_that_is_not_there(broker: Broker) -> None:
    """It is named, and not made."""
    assert "topic nowhere" in refused(SpecError, target(broker, "nowhere"))
    assert "create the topic" in refused(SpecError, target(broker, "nowhere"))


def test_a_broker_that_is_not_there() -> None:
    """Its address is named."""
    port = free_port()
    to = results(f"127.0.0.1:{port}", "t")
    assert f"127.0.0.1:{port}" in refused(NotReady, to)


def test_tls_with_scram(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows go through; a wrong password, or a client without TLS, is a clear error without secrets."""
    topic = broker.topic("sent-secured")
    secret = tmp_path / "password"
    secret.write_text(PASSWORD)
    monkeypatch.setenv("KAFKA_USER", USER)
    security = {
        "protocol": "SASL_SSL",
        "mechanism": "SCRAM-SHA-512",
        "username_env": "KAFKA_USER",
        "password_file": secret,
        "ca_file": broker.certificate("ca.crt"),
    }
    to = reached(results(broker.login, topic, security=security), "secured", None)
    send(to, 0, 1, 2)
    assert values(broker, topic) == [1, 2]

    secret.write_text("wrong-" + PASSWORD)
    assert "correct user or password" in refused(SpecError, replace(to, job="job"))
    assert "security.protocol" in refused(NotReady, results(broker.login, topic))
