"""Messages that change rows: their operations, and the keys that messages without a value delete."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.model.inputs import WEIGHT
from joinlib.sink import texts
from joinlib.source import RowChanges
from joinlib.source.kafka.bad import Bad
from joinlib.source.kafka.decode import Decoder
from joinlib.source.kafka.keys import key_columns
from joinlib.source.kafka.messages import Message
from joinlib.source.payloads import Payloads
from joinlib.spec import ddl
from joinlib.spec.inputs import KafkaMetadata
from tests.configs import topics
from tests.messages import decoded, sent
from tests.unit.source.test_kafka_decode import stream

SCHEMA = ddl.parse("id BIGINT, name STRING NOT NULL, op STRING")
OP, BY_ID, BOTH = RowChanges("op"), RowChanges(None, ("id",)), RowChanges("op", ("id",))


def decoder(how: RowChanges, *columns: str, schema: pa.Schema = SCHEMA, **more: Any) -> Decoder:
    config = topics("i", "k:1", "orders", changes=how, **more)
    return Decoder(config, schema, columns)


def rows(found: Any) -> list[tuple[Any, ...]]:
    batch = found[0]
    assert batch is None or batch.schema.names[-1] == WEIGHT
    return [tuple(r.values()) for r in batch.to_pylist()] if batch else []


def value(id: int | None, name: str, op: str = "I") -> Message:
    return sent(f'{{"id":{"null" if id is None else id},"name":"{name}","op":"{op}"}}'.encode(), key=b"9")


def test_operations_of_messages() -> None:
    """A message without a value is no row where rows have no key; an unknown word is a bad message alone."""
    given = [
        value(1, "a"),
        sent(None, key=b"1"),
        value(1, "a", "nonsense"),
        value(1, "b", "U+"),
        value(1, "a", "D"),
    ]
    found = decoded(decoder(OP, "id", "name"), given)
    assert rows(found) == [(1, "a", 1), (1, "b", 1), (1, "a", -1)]
    ((bad, why),) = found[1]
    assert bad == given[2]
    assert why.startswith("value: column 'op' holds 'nonsense', which is no operation")
    assert rows(decoded(decoder(OP), given[:1])) == [(1,)]


@pytest.mark.parametrize("format", ["json", "csv", "arrow"])
def test_a_message_without_a_value_deletes_its_key(format: Any) -> None:
    """In its place among the rows; several rows of one message stay together."""
    live: dict[str, list[bytes]] = {
        "json": [b'{"id":1,"name":"a","op":"I"}', b'{"id":2,"name":"b","op":"I"}'],
        "csv": [b"1,a,I", b"2,b,I"],
        "arrow": [stream(id=[1, 3], name=["a", "c"], op=["I", "I"]), stream(id=[2], name=["b"], op=["I"])],
    }
    one, two = live[format]
    given = [
        sent(None, key=b"1"),
        sent(one),
        sent(None, key=b"1"),
        sent(two),
        sent(None, key=b"2"),
    ]
    three = [(3, "c", 1)] if format == "arrow" else []
    expected = [(1, None, -1), (1, "a", 1), *three, (1, None, -1), (2, "b", 1), (2, None, -1)]
    for how in (BY_ID, BOTH):
        assert rows(decoded(decoder(how, "id", "name", format=format), given)) == expected
        assert rows(decoded(decoder(how, "name", format=format), given[:1])) == [(None, -1)]
    assert decoded(decoder(BY_ID, "id", format=format), [])[0] is None


def test_what_cannot_be_a_key_is_a_bad_message() -> None:
    """Alone: its neighbours come. Neither a value nor a key; a key of another kind; NULL, wherever it is."""
    given = [
        value(1, "a"), sent(None), sent(None, key=b"seven"), sent(None, key=b'{"id":null}'),
        sent(None, key=b"[1,2]"), value(None, "b"), sent(None, key=b"1"),
    ]  # fmt: skip
    found = decoded(decoder(BY_ID, "id"), given)
    assert rows(found) == [(1, 1), (1, -1)]
    assert [bad for bad, _ in found[1]] == given[1:-1]
    whys = [why for _, why in found[1]]
    assert whys[0] == "has neither a value nor a key, so it does not say what it deletes"
    assert whys[1].startswith(
        "deletes by a key that is not the text, JSON array or JSON object of upsert.key, 'id'"
    )
    assert whys[2] == whys[4] == "value: column 'id' is NULL, but belongs to upsert.key (row 0 of those)"
    assert "seven" not in str(whys)


def test_columns_from_metadata() -> None:
    """They are there in rows that are deleted, too; the key itself may be one."""
    schema = ddl.parse("id STRING, name STRING, n BIGINT")
    metadata = KafkaMetadata(key="id", offset="n")
    one = decoder(BY_ID, "n", "id", "name", schema=schema, metadata=metadata)
    given = [sent(b'{"name":"a"}', 4, b"x"), sent(None, 5, b"x"), sent(None, 6, b"[1]")]
    assert rows(decoded(one, given)) == [(4, "x", "a", 1), (5, "x", None, -1), (6, "[1]", None, -1)]
    assert rows(decoded(one, given[1:2])) == [(5, "x", None, -1)]


@pytest.mark.parametrize(
    ("schema", "keys"),
    [
        ("a BIGINT", [b"7", b"[7]", b'{"a":7}', b'{"b":1, "a":7}', b'{\n"a":7}']),
        ("a STRING", [b'{"a":"x"}', b"x"]),
        ("a STRING, b BIGINT", [b'["x",7]', b'{"b":7,"a":"x"}']),
        ("a DECIMAL(30,3)", [b"12345678901234567890.125", b'["12345678901234567890.125"]', b"[12345678901234567890.125]",
                             b'{"a":12345678901234567890.125}', b'{"a":"12345678901234567890.125"}']),
        ("a DECIMAL(38,0), b INT", [b"[12345678901234567890123,1]", b'{"b":1,"a":12345678901234567890123}']),
        ("a TIMESTAMP", [b"2026-01-31T23:59:59.000001Z", b'{"a":"2026-01-31 23:59:59.000001"}', b'["2026-01-31T23:59:59.000001Z"]']),
        ("a DATE", [b"2026-01-31", b'["2026-01-31"]']),
        ("a BOOLEAN", [b"true", b"[true]"]),
        ("a BINARY", [b'{"a":"x"}', b"x"]),
    ],
)  # fmt: skip
def test_keys_that_mean_the_same(schema: str, keys: list[bytes]) -> None:
    """However they are written, and all at once."""
    want = ddl.parse(schema)
    found = key_columns(Payloads.of(keys), want)
    assert found.schema == want
    assert found.num_rows == len(keys)
    assert len({tuple(r.values()) for r in found.to_pylist()}) == 1
    assert None not in found.to_pylist()[0].values()


def test_text_is_not_mistaken() -> None:
    """A single column of text is what it is, brackets or not."""
    words = [b"[1]", b'["x"]', b"{", b'{"b":1}', b'"x"', b"", b"null"]
    assert key_columns(Payloads.of(words), ddl.parse("a STRING")).column(0).to_pylist() == [
        w.decode() for w in words
    ]


@pytest.mark.parametrize("key", [b"x", b"[7,8]", b'{"b":7}', b"", b"{}", b"[", b"\xff", b"7.5", b'"7"'])
def test_keys_that_do_not_fit(key: bytes) -> None:
    """Said without the key."""
    with pytest.raises(Bad, match=r"upsert.key, 'a' int64$"):
        key_columns(Payloads.of([b"1", key]), ddl.parse("a BIGINT"))


@pytest.mark.parametrize(
    "schema", ["a STRING, b STRING", "a DECIMAL(38, 0), b STRING", "a STRING, b DECIMAL(9, 2)"]
)
@pytest.mark.parametrize("key", [b"[" * 50_000, b"[" * 301 + b"]" * 300 + b",1]", b'["\\ud800",1]'])
def test_keys_that_are_json_and_cannot_be_read(schema: str, key: bytes) -> None:
    """Nested without end, or half a character: one bad message."""
    made = decoder(RowChanges(None, tuple(ddl.parse(schema).names)), "a", schema=ddl.parse(schema))
    found, bad = decoded(made, [sent(None, key=b'["1","2"]'), sent(None, key=key)])
    assert [why[:37] for _, why in bad] == ["deletes by a key that is not the text"]
    assert found is not None and found.num_rows == 1


@given(st.data())
def test_keys_that_our_own_output_writes(data: st.DataObject) -> None:
    """The text of one column, or an array of several: they come back as they were."""
    kinds = {
        "s": (pa.string(), st.text(st.characters(blacklist_categories=("Cs",)), max_size=6)),
        "n": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
        "t": (
            pa.timestamp("us", "UTC"),
            st.datetimes(allow_imaginary=False).map(lambda d: d.isoformat() + "Z"),
        ),
        "d": (pa.decimal128(20, 3), st.decimals(-(10**15), 10**15, places=3)),
        "b": (pa.bool_(), st.booleans()),
    }
    names = data.draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=3, unique=True))
    count = data.draw(st.integers(1, 3))
    columns = []
    for name in names:
        kind, values = kinds[name]
        drawn = pa.array([data.draw(values) for _ in range(count)], None if name != "d" else kind)
        columns.append(drawn.cast(kind))
    batch = pa.record_batch(columns, names)
    made = texts.texts(columns[0]) if len(names) == 1 else texts.json_arrays(batch)
    found = key_columns(Payloads.of([k.encode() for k in made.to_pylist()]), batch.schema)
    if names != ["s"] or not any("{" in k for k in made.to_pylist()):
        assert found.to_pylist() == batch.to_pylist()
