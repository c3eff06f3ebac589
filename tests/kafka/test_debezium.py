"""A real PostgreSQL, a real Debezium, a real broker: its envelopes build the table as it is in the database."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from joinlib.model.inputs import UNCHANGED, WEIGHT
from joinlib.source import RowChanges, StreamInput, make
from joinlib.spec import ddl
from tests import configs
from tests.kafka.broker import Broker, Cannot
from tests.kafka.connector import await_rows, running
from tests.kafka.topics import read_from
from tests.postgres.database import Database
from tests.spark.trial import Trial

TABLE = """
CREATE TABLE goods (
  id bigint PRIMARY KEY, part text, price numeric(10,2), at timestamp, coarse timestamp(3), zoned timestamptz, day date,
  ok boolean, small smallint, ratio double precision, raw bytea, tags text[], long text
)
"""
SCHEMA = ddl.parse(
    "id BIGINT, part STRING, price DECIMAL(10,2), at TIMESTAMP_NTZ, zoned TIMESTAMP, day DATE, ok BOOLEAN, small SMALLINT,"
    " ratio DOUBLE, raw BINARY, tags ARRAY<STRING>, long STRING, coarse TIMESTAMP_NTZ"
)
# What messages without a schema do not say: `coarse` has another unit than `at`.
UNTOLD = ddl.parse(ddl.to_ddl(SCHEMA).replace(", coarse TIMESTAMP_NTZ", ""))
ROW = (
    "('chair', 12.50, '2026-01-31 23:59:59.000001', '2026-01-31 23:59:59.123', '2026-01-31 23:59:59.000001+02',"
    " '2026-01-31', true, 7, 0.1, '\\x00ff', '{{a,b}}', repeat('x', 3000))"
)
INSERT = (
    "INSERT INTO goods SELECT i, v.p, v.c, v.t::timestamp, v.s::timestamp, v.z::timestamptz, v.d::date, v.o, v.n, v.r,"
    f" v.b::bytea, v.a::text[], v.l FROM generate_series({{}}) i, (VALUES {ROW}) AS v(p,c,t,s,z,d,o,n,r,b,a,l)"
)
CONNECTORS = {
    "plain": {"value.converter.schemas.enable": "false", "key.converter.schemas.enable": "false",
              "decimal.handling.mode": "string", "provide.transaction.metadata": "true"},
    "told": {"value.converter.schemas.enable": "true", "key.converter.schemas.enable": "true"},
}  # fmt: skip


@pytest.fixture(scope="module")
def shop(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A database with two connectors, whose history is in the topics."""
    with Database(wal_level="logical") as database:
        database.execute(TABLE)
        database.execute("ALTER TABLE goods ALTER long SET STORAGE EXTERNAL")
        database.execute(INSERT.format("1, 20"))
        database.execute("GRANT postgres TO joiner", as_superuser=True)
        try:
            context = running(tmp_path_factory.mktemp("connect") / "run", broker, database, CONNECTORS)
            with context as log:
                try:
                    for name in CONNECTORS:
                        await_rows(broker, f"{name}.public.goods", b'"id":20')
                    history(database)
                    for name in CONNECTORS:
                        await_rows(broker, f"{name}.public.goods", b'"id":999')
                except AssertionError as error:
                    raise AssertionError(log.read_text()[-3000:]) from error
                yield database
        except Cannot as e:
            if os.environ.get("CI"):
                raise
            pytest.skip(str(e))


def history(database: Database) -> None:
    """What happens while the connectors listen."""
    for sql in (
        INSERT.format("21, 30"),
        "UPDATE goods SET price = -0.01, ok = NULL WHERE id <= 5",  # `long` is not sent
        "UPDATE goods SET long = 'short', tags = NULL, at = NULL WHERE id = 6",
        "UPDATE goods SET small = 8 WHERE id = 6",
        "DELETE FROM goods WHERE id IN (7, 8)",
        INSERT.format("8, 8"),
        "UPDATE goods SET id = 107, long = 'new' WHERE id = 9",  # the key itself
        "UPDATE goods SET day = '1969-12-31', zoned = '1969-12-31 23:59:59.999999Z', price = 99999999.99 WHERE id = 10",
        "UPDATE goods SET raw = '', part = '', tags = '{}', ratio = 'NaN' WHERE id = 11",
        "BEGIN; DELETE FROM goods; ROLLBACK",
        "BEGIN; UPDATE goods SET part = 'x' WHERE id = 12; DELETE FROM goods WHERE id = 12; COMMIT",
    ):
        with database.connected() as connection, connection.cursor() as cursor:
            for part in sql.split(";"):
                cursor.execute(part)
    database.execute("SELECT pg_logical_emit_message(false, 'note', 'hello')", as_superuser=True)
    database.execute(INSERT.format("999, 999"))


def opened(folder: Path, broker: Broker, topic: str, schema: Any) -> StreamInput:
    how = RowChanges(None, ("id",))
    return make(
        "i", configs.topics("i", broker.servers, topic, changes=how, format="debezium"), schema, folder
    )


def table(input: StreamInput, schema: Any) -> tuple[dict[int, dict[str, Any]], int]:
    """The table that the topic's messages build, and how many values were filled in from the row before."""
    state: dict[int, dict[str, Any]] = {}
    filled = 0
    for batch in input.reader.read_many(input.slices(0, input.discover()), schema.names):
        assert batch.schema.names == [*schema.names, UNCHANGED, WEIGHT]
        for row in batch.to_pylist():
            mask, weight = row.pop(UNCHANGED), row.pop(WEIGHT)
            if weight < 0:
                state.pop(row["id"], None)
                continue
            for at, name in enumerate(schema.names):
                if mask >> at & 1:
                    row[name] = state[row["id"]][name]
                    filled += 1
            state[row["id"]] = row
    return state, filled


@pytest.mark.parametrize(("name", "schema"), [("plain", UNTOLD), ("told", SCHEMA)])
def test_the_table_as_it_is(shop: Database, broker: Broker, tmp_path: Path, name: str, schema: Any) -> None:
    """Every value of every type, after a snapshot and a history of what can happen to a row."""
    columns = ", ".join(f.name if f.name != "price" else "price::text AS price" for f in schema)
    found = shop.execute(f"SELECT {columns} FROM goods ORDER BY id")
    assert found is not None
    there = pa.table([found.column(f.name).cast(f.type) for f in schema], schema)
    state, filled = table(opened(tmp_path, broker, f"{name}.public.goods", schema), schema)
    rows = [state[id] for id in sorted(state)]
    for row in (*rows, *(expected := there.to_pylist())):
        row["ratio"] = repr(row["ratio"])  # NaN is NaN
    assert rows == expected
    assert len(rows) == 29
    assert filled >= 5


def test_a_snapshot_that_comes_again(shop: Database, broker: Broker, tmp_path: Path) -> None:
    """The same rows a second time change nothing, and boundaries of transactions are no rows."""
    again = broker.topic("goods-again")
    for topic in ("plain.public.goods", "plain.transaction", "plain.public.goods"):
        for seen in broker.read(topic):
            broker.send(again, [seen.value], key=seen.key)
    assert broker.read("plain.transaction")
    once, _ = table(opened(tmp_path / "1", broker, "plain.public.goods", UNTOLD), UNTOLD)
    twice, _ = table(opened(tmp_path / "2", broker, again, UNTOLD), UNTOLD)
    assert repr(sorted(once.items())) == repr(sorted(twice.items()))


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize("format", ["json", "debezium"])
def test_from_table_to_table(shop: Database, broker: Broker, trial: Trial, format: str) -> None:
    """A join of what two connectors tell, into a topic by key: who reads that builds the query's answer."""
    for name, schema in (("plain", UNTOLD), ("told", SCHEMA)):
        kafka = {"topic": f"{name}.public.goods", "format": "debezium"}
        read_from(trial, broker, name, ddl.to_ddl(schema), **kafka)
        trial.options[name]["upsert"] = {"key": ["id"]}
    sql = (
        "SELECT p.id AS id, p.price AS price, t.coarse AS coarse, p.long AS long, t.small AS small"
        " FROM plain p LEFT JOIN told t ON p.part = t.part AND p.small = t.small AND p.id = t.id"
    )
    topic = broker.topic(f"answer-{format}")
    output = {"kafka": {"bootstrapServers": broker.servers, "topic": topic, "format": format}}
    trial.run(sql, output={"mode": "upsert", "key": ["id"], **output})

    schema = ddl.parse("id BIGINT, price DECIMAL(10,2), coarse TIMESTAMP_NTZ, long STRING, small SMALLINT")
    how = RowChanges(None, ("id",))
    config = configs.topics("i", broker.servers, topic, changes=how, format=format)
    answer = make("i", config, schema, trial.folder / "answer")
    state: dict[int, Any] = {}
    for batch in answer.reader.read_many(answer.slices(0, answer.discover()), schema.names):
        for id, *rest, weight in zip(
            *(batch.column(n).to_pylist() for n in (*schema.names, WEIGHT)), strict=True
        ):
            state.pop(id, None)
            if weight > 0:
                state[id] = rest
    found = shop.execute(
        "SELECT p.id, p.price::text, t.coarse, p.long, t.small FROM goods p LEFT JOIN goods t ON p.part = t.part AND"
        " p.small = t.small AND p.id = t.id"
    )
    assert found is not None
    there = pa.table([c.cast(f.type) for c, f in zip(found.columns, schema, strict=True)], schema)
    assert state == {id: rest for id, *rest in (row.values() for row in there.to_pylist())}
