"""Results go into a topic: in each format, with keys, and each once."""

from collections import Counter
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.csv as pc
import pytest

from tests.kafka.broker import Broker, Seen
from tests.spark.trial import Trial, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
SQL = "SELECT o.k AS k, o.s AS s, p.v AS v, p.at AS at FROM orders o LEFT JOIN payments p ON o.k = p.k"
ORDERS = [(k, s) for k in range(40) for s in ("ape", 'b"ee,', "new\nline", None)]
PAYMENTS = [(k, k * 7, 1_767_225_600_000_000 + k) for k in range(0, 40, 3)]


@pytest.fixture
def orders(trial: Trial) -> Trial:
    """A job of several batches."""
    trial.input("orders", "k BIGINT, s STRING", maxFilesPerBatch=1)
    trial.input("payments", "k BIGINT, v BIGINT, at TIMESTAMP", maxFilesPerBatch=1)
    trial.fill("orders", ORDERS, 3)
    trial.fill("payments", PAYMENTS, 3)
    return trial


def to(broker: Broker, topic: str, **more: Any) -> dict[str, Any]:
    return {"kafka": {"bootstrapServers": broker.servers, "topic": topic, **more}}


def json_rows(seen: list[Seen]) -> Counter[tuple[Any, ...]]:
    """Instants as microseconds, as the oracle has them."""
    rows = [orjson.loads(s.value or b"") for s in seen]
    table = pa.table({n: [r[n] for r in rows] for n in ("k", "s", "v", "at")})
    times = table["at"].cast(pa.timestamp("us", "UTC"))
    return rows_of(table.set_column(3, "at", times))


def test_json_with_a_key(orders: Trial, broker: Broker) -> None:
    """Each result once, an object a message; equal keys lie in one partition."""
    topic = broker.topic("json", 3)
    ran = orders.run(SQL, output=to(broker, topic, key=["k"]))
    seen = broker.read(topic)

    assert json_rows(seen) == orders.expected(SQL)
    assert ran.rows_out == len(seen)
    assert all(s.key == str(orjson.loads(s.value or b"")["k"]).encode() for s in seen)
    places = {(s.key, s.partition) for s in seen}
    assert len(places) == len({key for key, _ in places})
    assert len({p for _, p in places}) == 3


def test_several_stages(orders: Trial, broker: Broker) -> None:
    """Two keys: only the tasks of the last stage send, whatever the others hand on."""
    sql = SQL.replace("LEFT ", "") + " JOIN goods g ON o.s = g.s"
    orders.input("goods", "s STRING, price BIGINT", maxFilesPerBatch=1)
    orders.fill("goods", [(s, n) for n, s in enumerate(("ape", "new\nline", None, "ape"))], 3)
    topic = broker.topic("stages", 2)
    orders.run(sql, output=to(broker, topic))

    assert json_rows(broker.read(topic)) == orders.expected(sql) != Counter()


def test_csv_with_a_key_of_two(orders: Trial, broker: Broker) -> None:
    """A line without an end a message."""
    topic = broker.topic("csv")
    orders.run(SQL, output=to(broker, topic, format="csv", key=["k", "s"]))
    seen = broker.read(topic)

    lines = b"".join((s.value or b"") + b"\n" for s in seen)
    options = pc.ConvertOptions(
        column_types={"k": pa.int64(), "s": pa.string(), "v": pa.int64(), "at": pa.timestamp("us", "UTC")},
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    read = pc.read_csv(
        pa.BufferReader(lines),
        read_options=pc.ReadOptions(column_names=["k", "s", "v", "at"]),
        parse_options=pc.ParseOptions(newlines_in_values=True),
        convert_options=options,
    )
    assert rows_of(read) == orders.expected(SQL)
    assert [1, 'b"ee,'] in [orjson.loads(s.key or b"") for s in seen]


def test_arrow(orders: Trial, broker: Broker) -> None:
    """A stream of many rows a message."""
    topic = broker.topic("arrow", 2)
    orders.run(SQL, output=to(broker, topic, format="arrow"))
    seen = broker.read(topic)

    tables = [pa.ipc.open_stream(s.value).read_all() for s in seen]
    assert rows_of(pa.concat_tables(tables)) == orders.expected(SQL)
    assert len(seen) < 60


def test_other_partitions(trial: Trial, broker: Broker) -> None:
    """Markers of partitions that are gone, or new, or back again, neither hold up a batch nor let one in twice."""
    topic = broker.topic("repartitioned", 2)
    inner = SQL.replace("LEFT ", "")
    trial.input("orders", "k BIGINT, s STRING")
    trial.input("payments", "k BIGINT, v BIGINT, at TIMESTAMP")
    plan = trial.compiled(inner, output=to(broker, topic), join={"units": 8})
    for number, partitions in enumerate((2, 8, 1, 4)):
        trial.write("orders", f"{number}", ORDERS[number::4])
        trial.write("payments", f"{number}", PAYMENTS[number::4])
        trial.run_plan(plan, partitions)
        assert json_rows(broker.read(topic)) == trial.expected(inner)
