"""Topics as inputs of a run, against a real broker."""

import random
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pytest

from joinlib.direct.report import Report
from joinlib.errors import InputError
from joinlib.spark.job import RunningJob
from tests.kafka.broker import Broker
from tests.kafka.topics import as_json, read_from, spread
from tests.spark.trial import Trial, plain, until

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


TWO = {"orders": "k BIGINT, name STRING", "payments": "k BIGINT, amount DOUBLE"}
TWO_SQL = "SELECT o.k, o.name, p.amount FROM orders o JOIN payments p ON o.k = p.k"


def two(trial: Trial, broker: Broker, prefix: str, partitions: int = 2, **kafka: Any) -> dict[str, str]:
    """Two topics of their own as the inputs of TWO_SQL; their names. `kafka` is for the payments."""
    names = {name: broker.topic(f"{prefix}_{name}", partitions) for name in TWO}
    for name, schema in TWO.items():
        read_from(trial, broker, name, schema, topic=names[name], **(kafka if name == "payments" else {}))
    return names


def test_dead_letters_come_once(broker: Broker, trial: Trial) -> None:
    """Bad messages are kept with their place and reason and counted, also if their batch runs again; the rest is joined."""
    letters = {"onBadMessage": "deadLetter", "deadLetters": {"path": "letters"}}
    topics = two(trial, broker, "bad", **letters)
    orders, payments = [(k, f"n{k}") for k in range(50)], [(k, k / 2) for k in range(50)]
    spread(broker, topics["orders"], as_json(TWO["orders"], orders), 2)
    bad = [b"no", b'{"k":"x"}', b'{"k":1', b"2}"]
    spread(broker, topics["payments"], as_json(TWO["payments"], payments) + bad, 2)
    first = trial.run(TWO_SQL)
    found = kept(trial)

    last = max(int(f.name) for f in (trial.folder / "checkpoint/spark/commits").glob("[0-9]*"))
    for name in (f"{last}", f".{last}.crc"):
        (trial.folder / "checkpoint/spark/commits" / name).unlink(missing_ok=True)
    again = trial.run(TWO_SQL)

    assert sorted(value for *_, value in found) == sorted(bad)
    assert len({(partition, offset) for _, partition, offset, _, _ in found}) == len(bad)
    assert {topic for topic, *_ in found} == {topics["payments"]}
    assert all("JSON object" in error or "column 'k'" in error for *_, error, _ in found)
    assert first.reports[-1].batch == last
    assert [r.batch for r in again.reports] == [last]
    assert sum(r.bad[1] for r in first.reports) == again.reports[0].bad[1] == len(bad)
    assert kept(trial) == found
    assert trial.output(TWO_SQL) == trial.expected(TWO_SQL, orders=orders, payments=payments)


def kept(trial: Trial) -> list[tuple[Any, ...]]:
    """The dead letters, as any reader of the folder sees them."""
    columns = 'topic, partition, "offset", error, value'
    return duckdb.sql(
        f"SELECT {columns} FROM read_parquet('{trial.folder}/letters/*.parquet') ORDER BY ALL"
    ).fetchall()


def test_a_bad_message_stops_the_job(broker: Broker, trial: Trial) -> None:
    """Unless the spec says otherwise; it is named by its place, not by its content."""
    topics = two(trial, broker, "stops", 1)
    broker.send(topics["payments"], [b'{"k":1,"amount":2}', b'{"k":1,"amount":"secret"}'])
    with pytest.raises(InputError) as error:
        trial.run(TWO_SQL)
    said = plain(error.value)
    assert "topic stops_payments, partition 0, offset 1: the value of column 'amount'" in said
    assert "onBadMessage" in said
    assert "secret" not in said


def test_a_broker_that_restarts_and_a_topic_that_grows(own_broker: Broker, trial: Trial) -> None:
    """While a job runs: nothing is lost and nothing comes twice, also of partitions that are new."""
    topics = two(trial, own_broker, "grow")
    orders = [(k % 5_000, f"n{k}") for k in range(20_000)]
    payments = [(k, k / 2) for k in range(6_000)]
    spread(own_broker, topics["orders"], as_json(TWO["orders"], orders), 2)
    spread(own_broker, topics["payments"], as_json(TWO["payments"], payments[:2_000]), 2)

    def act(job: RunningJob, reports: list[Report]) -> None:
        until(job, lambda: sum(r.rows_in for r in reports) > 2_000)
        own_broker.kill()
        own_broker.start()
        own_broker.partitions(topics["payments"], 5)
        for partition in range(5):
            more = as_json(TWO["payments"], payments[2_000 + partition :: 5])
            own_broker.send(topics["payments"], more, partition)
        until(job, lambda: sum(r.rows_in for r in reports) >= len(orders) + len(payments))

    trial.watch(trial.compiled(TWO_SQL, batch={"maxRows": 3_000}), act)

    assert trial.output(TWO_SQL) == trial.expected(TWO_SQL, orders=orders, payments=payments)
