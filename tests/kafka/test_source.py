"""Topics as inputs of a run, against a real broker."""

import random

import pytest

from tests.kafka.broker import Broker
from tests.kafka.topics import as_json, read_from, spread
from tests.spark.trial import Trial

pytestmark = pytest.mark.spark

THREE = {
    "orders": "order_id BIGINT, customer STRING",
    "shipments": "order_id BIGINT, carrier STRING, shipped TIMESTAMP",
    "payments": "order_id BIGINT, amount DOUBLE",
}
THREE_SQL = """SELECT o.order_id, o.customer, s.carrier, s.shipped, p.amount FROM orders o
    JOIN shipments s ON o.order_id = s.order_id JOIN payments p ON o.order_id = p.order_id"""


def test_three_topics_in_random_order(broker: Broker, trial: Trial) -> None:
    """A join of three topics of 200 000 messages each is what DuckDB makes of the same rows."""
    from datetime import datetime, timedelta

    count = 200_000
    draw = random.Random(7)
    begun = datetime(2026, 1, 1)  # noqa: DTZ001 - read as UTC
    rows = {
        "orders": [(i, f"c{i % 997}") for i in range(count)],
        "shipments": [
            (draw.randrange(count), f"r{i % 7}", begun + timedelta(milliseconds=i)) for i in range(count)
        ],
        "payments": [(draw.randrange(count), i / 4) for i in range(count)],
    }
    for name, schema in THREE.items():
        broker.topic(name, 4)
        spread(broker, name, as_json(schema, rows[name]), 4)
        read_from(trial, broker, name, schema)

    ran = trial.run(THREE_SQL, batch={"maxRows": 250_000})

    assert ran.rows_in == 3 * count
    assert len(ran.reports) > 2
    assert trial.output(THREE_SQL) == trial.expected(THREE_SQL, **rows)
