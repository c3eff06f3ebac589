"""A run that is behind is killed at random moments, with the next batch read ahead: from topic to topic, each result once.

STREAMJOIN_FAULT_SEED: when.
"""

import json
import random
from collections import Counter
from pathlib import Path

import orjson
import pytest

from joinlib.model.tuning import Tuning
from tests.kafka.broker import Broker
from tests.kafka.topics import spread
from tests.spark.faults.backlog import Backlog
from tests.spark.faults.drawn import SEED

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
BATCH = Tuning.small_rows + 2000  # rows: a smaller one is a single task, and nothing is read ahead
ROWS = 16 * BATCH  # of each input
FEW = 4  # of so many rows one meets another
INPUTS = "orders", "payments"


def spec(broker: Broker, results: str) -> str:
    brokers = {"bootstrapServers": broker.servers}
    inputs = {n: {"schema": "k BIGINT, v BIGINT", "kafka": {"topic": n, **brokers}} for n in INPUTS}
    asked = {
        "sql": "SELECT o.k AS k, o.v AS ov, p.v AS pv FROM orders o JOIN payments p ON o.k = p.k",
        "inputs": inputs,
        "output": {"kafka": {"topic": results, **brokers}},
        "checkpoint": {"path": "checkpoint"},
        "batch": {"maxRows": BATCH},
        "join": {"units": 4},
    }
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "backlog"}}
    return json.dumps({**head, "spec": asked})


def test_each_result_once_while_the_next_batch_is_read(own_broker: Broker, tmp_path: Path) -> None:
    """The driver dies, at last one of those that read and join, whom Spark replaces; the topic is the join of all rows."""
    print(f"STREAMJOIN_FAULT_SEED={SEED}")
    draw = random.Random(SEED)
    for name, factor in zip(INPUTS, (1, FEW), strict=True):
        own_broker.topic(name, 3)
        messages = [b'{"k":%d,"v":%d}' % (row * factor, row) for row in range(ROWS)]
        spread(own_broker, name, messages, 3, seed=factor)
    results = own_broker.topic("results", 2)
    (tmp_path / "spec.yaml").write_text(spec(own_broker, results))
    Backlog(tmp_path).suffer(draw)
    found = Counter(tuple(orjson.loads(seen.value or b"").values()) for seen in own_broker.read(results))
    assert found == Counter((k * FEW, k * FEW, k) for k in range(ROWS // FEW))
