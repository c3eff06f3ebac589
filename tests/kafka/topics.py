"""Specs over topics, and rows as messages."""

import random
from collections.abc import Sequence
from typing import Any

import orjson

from tests.kafka.broker import Broker
from tests.spark.trial import Trial, table_of


def read_from(trial: Trial, broker: Broker, name: str, schema: str, **kafka: Any) -> None:
    """Declares an input over a topic, by default of its own name."""
    given = {"bootstrapServers": broker.servers, **kafka}
    trial.schemas[name] = schema
    trial.options[name] = {"kafka": given if "topics" in given else {"topic": name, **given}}


def as_json(schema: str, rows: Sequence[tuple[Any, ...]]) -> list[bytes]:
    """A JSON object for each row, as others would write it."""
    return [orjson.dumps(row, default=str) for row in table_of(schema, rows).to_pylist()]


def spread(broker: Broker, topic: str, values: Sequence[bytes], partitions: int, seed: int = 0) -> None:
    """Sends messages in random order over all partitions."""
    mixed = list(values)
    random.Random(seed).shuffle(mixed)
    for partition in range(partitions):
        broker.send(topic, mixed[partition::partitions], partition)
