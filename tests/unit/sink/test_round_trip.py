"""What one job writes, another reads: its messages build the table that the result is."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.sink import changelog
from joinlib.source import RowChanges
from joinlib.source.kafka.decode import Decoder
from tests.configs import results, topics
from tests.messages import decoded, sent, written

SCHEMA = pa.schema({"id": pa.int64(), "part": pa.string(), "v": pa.int64()})
TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "id": (pa.int64(), 7),
    "s": (pa.string(), 'ä "\\\n'),
    "double": (pa.float64(), 0.1),
    "decimal": (pa.decimal128(12, 3), Decimal("-1234.500")),
    "day": (pa.date32(), date(2026, 1, 31)),
    "at": (pa.timestamp("us", "UTC"), datetime(2026, 1, 31, 23, 59, 59, 123456, UTC)),
    "local": (pa.timestamp("us"), datetime(2026, 1, 31, 23, 59, 59)),  # noqa: DTZ001
    "flag": (pa.bool_(), True),
    "raw": (pa.binary(), b"\x00\xff"),
    "nothing": (pa.string(), None),
}
KEYS = st.tuples(st.integers(0, 2), st.sampled_from(["a", 'b"']))
TABLES = st.lists(st.dictionaries(KEYS, st.integers(0, 9), max_size=5), min_size=1, max_size=4)


def read(
    made: list[tuple[bytes | None, bytes | None]], schema: pa.Schema, format: Any, key: tuple[str, ...]
) -> list[tuple[Any, ...]]:
    config = topics("i", "k:1", "t", format=format, changes=RowChanges(None, key))
    batch, bad = decoded(
        Decoder(config, schema, tuple(schema.names)), [sent(value, key=name) for name, value in made]
    )
    assert not bad, bad[0].reason
    return (
        []
        if batch is None
        else [tuple(row[n] for n in (*schema.names, "$weight")) for row in batch.to_pylist()]
    )


def changes(before: dict[Any, int], after: dict[Any, int]) -> pa.RecordBatch:
    """The changes that lead from one table to the next, as the engine has them: what went is first."""
    gone = [(*k, v, -1) for k, v in before.items() if after.get(k) != v]
    new = [(*k, v, 1) for k, v in after.items() if before.get(k) != v]
    columns = (
        list(zip(*gone, *new, strict=True)) if not gone and not new else list(zip(*(gone + new), strict=True))
    )
    return pa.record_batch(
        [
            *(pa.array(c, f.type) for c, f in zip(columns[:3], SCHEMA, strict=True)),
            pa.array(columns[3], pa.int64()),
        ]
        if columns
        else [pa.array([], t) for t in (*SCHEMA.types, pa.int64())],
        [*SCHEMA.names, "$weight"],
    )


@given(tables=TABLES, format=st.sampled_from(["json", "csv", "debezium"]))
def test_upserts_build_the_table(tables: list[dict[Any, int]], format: Any) -> None:
    """Batch after batch, with a key of two columns; in every format that has keys."""
    target = results("k:1", "t", mode="upsert", key=("id", "part"), format=format)
    there: dict[Any, int] = {}
    for number, (before, after) in enumerate(zip([{}, *tables], tables, strict=False)):
        batch = changes(before, after)
        turned = (
            changelog.rows(batch, target.key, number)
            if format == "debezium"
            else changelog.latest(batch, target.key)
        )
        for i, part, v, weight in read(written(turned, target), SCHEMA, format, target.key):
            there.pop((i, part), None)
            if weight > 0:
                there[i, part] = v
        assert there == after


@pytest.mark.parametrize("format", ["json", "debezium"])
@pytest.mark.parametrize("key", [n for n in TYPES if n != "nothing"])
def test_values_of_every_type_come_back(format: Any, key: str) -> None:
    """Also as the key of a row that is gone. JSON input takes a text for BINARY as it is, base64 or not."""
    if format == "json" and key == "raw":
        return
    types = {n: t for n, t in TYPES.items() if (format, n) != ("json", "raw")}
    schema = pa.schema([(n, kind) for n, (kind, _) in types.items()])
    row = pa.record_batch([pa.array([v], kind) for kind, v in types.values()], schema=schema)
    target = results("k:1", "t", mode="upsert", key=(key,), format=format)
    for weight in (1, -1):
        batch = pa.record_batch(
            [*row.columns, pa.array([weight])], schema.append(pa.field("$weight", pa.int64()))
        )
        turned = changelog.rows(batch, (key,), 0) if format == "debezium" else batch
        found = read(written(turned, target), schema, format, (key,))
        values = [v for _, v in types.values()]
        if weight > 0:
            assert found == [(*values, 1)]
        else:
            assert {(row[schema.names.index(key)], row[-1]) for row in found} == {(TYPES[key][1], -1)}
