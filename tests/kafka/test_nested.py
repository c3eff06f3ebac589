"""Changes of a nested query in a topic: what a reader of committed messages builds of them is the query's answer."""

from collections import Counter
from typing import Any

import orjson
import pytest

from tests.kafka.broker import Broker
from tests.spark.nested import ANSWER, SQL, fill
from tests.spark.trial import Trial

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def run(trial: Trial, broker: Broker, topic: str, mode: str) -> None:
    fill(trial)
    kafka = {"bootstrapServers": broker.servers, "topic": broker.topic(topic, 2)}
    trial.run(SQL, output={"mode": mode, "key": ["s"], "kafka": kafka})


def test_the_last_message_of_each_key(broker: Broker, trial: Trial) -> None:
    """A group that is gone leaves a tombstone, and may come back."""
    run(trial, broker, "nested-upserts", "upsert")
    table: dict[bytes | None, tuple[Any, ...]] = {}
    gone = 0
    for seen in broker.read("nested-upserts"):
        table.pop(seen.key, None)
        gone += seen.value is None
        if seen.value is not None:
            told = orjson.loads(seen.value)
            table[seen.key] = (told["s"], told["n"], told["v"])
    assert Counter(table.values()) == ANSWER
    assert gone == 2, "b, and c"


def test_the_sum_of_all_changes(broker: Broker, trial: Trial) -> None:
    run(trial, broker, "nested-changes", "changelog")
    total: Counter[tuple[Any, ...]] = Counter()
    for seen in broker.read("nested-changes"):
        told = orjson.loads(seen.value or b"")
        weight = 1 if told["_change_type"] in ("insert", "update_postimage") else -1
        total[told["s"], told["n"], told["v"]] += weight
    assert {row: n for row, n in total.items() if n} == ANSWER
