"""Messages become rows, or are named as bad: all at once gives what one by one gives."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib import files
from joinlib.errors import InputError
from joinlib.source.kafka import consumer, decode, letters
from joinlib.source.kafka.bad import BadMessage
from joinlib.source.kafka.decode import HEADERS, Decoder
from joinlib.source.kafka.messages import Messages
from joinlib.source.kafka.reader import KafkaReader
from joinlib.source.parse import json_table
from joinlib.source.slices import Slice
from joinlib.spec.inputs import KafkaMetadata, MessageCsv, MessageFormat
from tests.configs import topics
from tests.messages import decoded, sent

SCHEMA = pa.schema([("a", pa.int64()), ("t", pa.string())])
JSON = [
    b'{"a":1,"t":"x"}', b'{"a":2}', b'{ "t":"}\\n{" }', b'{"a":3}\n', b'\n {"a":\n4}', b'{"a":5}{"a":6}', b"", b" ",
    b'{"a":', b'{"a":"no"}', b'7}', b'{"a":{"a":1}', b'{"t":"', b'"}', b"[1]", b"null", b'{"a":8}\n{"a":9}', b"\xff",
    b'{"a":[{}', b'{}]}', b'{"a":"}', b'{"a":1} null {"a":2}', b'{"a":1}\nnull\n{"a":2}', b'{"t":"\xc3\x28"}',
]  # fmt: skip
CSV = [b"1,x", b"2,", b",y", b"3", b"4,x,y", b"", b"\n", b"no,x", b"5,x\n", b"6,x\n7,y", b'8,"a', b'b",9', b'9,"a,b"', b'1,""']  # fmt: skip


def decoder(format: MessageFormat, schema: pa.Schema = SCHEMA, columns: Any = None, **more: Any) -> Decoder:
    config = topics("i", "k:1", "orders", format=format, **more)
    return Decoder(config, schema, tuple(schema.names if columns is None else columns))


def said(found: Any) -> tuple[list[Any], list[Any]]:
    rows, bad = found
    return (rows.to_pylist() if rows is not None else []), [(m.value, m.offset) for m, _ in bad]


@pytest.mark.parametrize(("format", "values"), [("json", JSON), ("csv", CSV)])
@given(data=st.data())
def test_all_at_once_is_one_by_one(format: MessageFormat, values: list[bytes], data: st.DataObject) -> None:
    """Halves of rows in two messages are no row, and a good message is not lost for a bad neighbour."""
    drawn = data.draw(st.lists(st.sampled_from(values), max_size=7))
    messages = [sent(v, at) for at, v in enumerate(drawn)]
    one = decoder(format)
    alone = [said(decoded(one, [m])) for m in messages]

    rows, bad = said(decoded(one, messages))

    assert rows == [row for found, _ in alone for row in found]
    assert bad == [message for _, found in alone for message in found]
    assert len(rows) + len(bad) == len(messages)


def test_a_topic_that_is_none_of_these_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first message is told without looking at each: a schema that is wrong is wrong for all of them."""
    parsed = []
    monkeypatch.setattr(
        decode, "json_table", lambda text, want: parsed.append(text) or json_table(text, want)
    )
    given = [sent(b'{"a":1}', 6), *(sent(b'{"a":"no"}', at) for at in range(7, 4_000))]
    client = SimpleNamespace(messages=lambda *_: iter([Messages.of(given)]))
    monkeypatch.setattr(consumer, "source", lambda _: client)
    kafka = KafkaReader(topics("i", "k:1", "orders", format="json"), SCHEMA)
    with pytest.raises(
        InputError, match=r"partition 3, offset 7: the value of column 'a' does not fit int64"
    ):
        list(kafka.read_many([Slice(0, None, 1, "orders", 3, start=6, stop=4_000)], ["a"]))
    assert len(parsed) < 50


def test_which_json_is_a_row() -> None:
    """One object, white space around it or in it; absent fields are NULL."""
    rows, bad = said(decoded(decoder("json"), [sent(v) for v in JSON]))
    assert rows == [
        {"a": 1, "t": "x"},
        {"a": 2, "t": None},
        {"a": None, "t": "}\n{"},
        {"a": 3, "t": None},
        {"a": 4, "t": None},
    ]
    assert len(bad) == len(JSON) - 5


def test_which_csv_is_a_row() -> None:
    """One line of as many values as there are columns."""
    rows, _ = said(decoded(decoder("csv", csv=MessageCsv()), [sent(v) for v in CSV]))
    assert [tuple(r.values()) for r in rows] == [
        (1, "x"), (2, None), (None, "y"), (5, "x"), (9, "a,b"), (1, ""),
    ]  # fmt: skip


def test_reasons_name_the_column_and_no_value() -> None:
    """What a reader of the error needs, and nothing that only the owner of the data may see."""
    strict = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("t", pa.timestamp("us", "UTC"))])
    one = decoder("json", strict)
    bad = [b'{"a":"secret"}', b'{"t":"2026-01-01T00:00:00Z"}', b'{"a":1,"t":"secret"}', b"secret"]
    reasons = [decoded(one, [sent(v)])[1][0].reason for v in bad]
    assert "column 'a' does not fit int64" in reasons[0]
    assert "'a' is declared NOT NULL" in reasons[1]
    assert "column 't' does not fit timestamp" in reasons[2]
    assert "one JSON object" in reasons[3]
    assert not any("secret" in r for r in reasons)


def stream(**columns: Any) -> bytes:
    batch = pa.record_batch(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def test_arrow_messages_may_change_their_schema() -> None:
    """Narrower types and further columns are fine from one message to the next; what does not fit is bad, and so is noise."""
    good = [
        stream(a=pa.array([1, 2]), t=["x", "y"]),
        stream(t=["z"], a=pa.array([3], pa.int8()), more=[0]),
        stream(a=pa.array([], pa.int64()), t=pa.array([], pa.string())),
    ]
    bad = [stream(a=["no"], t=["x"]), stream(a=[1]), b"noise", good[0][:-30], b""]
    one = decoder("arrow")
    rows, refused = decoded(one, [sent(v, i) for i, v in enumerate([*good, *bad])])
    assert rows is not None
    assert [tuple(r.values()) for r in rows.to_pylist()] == [(1, "x"), (2, "y"), (3, "z")]
    assert [m.offset for m, _ in refused] == [3, 4, 5, 6, 7]
    assert "declared as int64" in refused[0].reason
    assert "no column 't'" in refused[1].reason


def test_places_of_rows_that_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are as many rows as messages here, but not one in each."""
    given = [sent(stream(a=pa.array([], pa.int64())), 7), sent(stream(a=[1, 2]), 8)]
    client = SimpleNamespace(messages=lambda *_: iter([Messages.of(given)]))
    monkeypatch.setattr(consumer, "source", lambda _: client)
    kafka = KafkaReader(topics("i", "k:1", "orders", format="arrow"), SCHEMA, [])
    found = [
        (row["a"], at)
        for rows, places in kafka.located(Slice(0, None, 1, "orders", start=7, stop=9), ["a"])
        for row, at in zip(rows.to_pylist(), places.tolist(), strict=True)
    ]
    assert found == [(1, 8), (2, 8)]


@pytest.mark.parametrize("format", ["json", "arrow"])
def test_metadata_columns(format: MessageFormat) -> None:
    """They come from the message, for each of its rows; a key that is missing is NULL, one that is no text is bad."""
    schema = pa.schema(
        [
            ("k", pa.string()), ("a", pa.int64()), ("o", pa.int64()), ("p", pa.int64()),
            ("at", pa.timestamp("us", "UTC")), ("h", HEADERS), ("topic", pa.string()),
        ]
    )  # fmt: skip
    about = KafkaMetadata(key="k", offset="o", partition="p", timestamp="at", headers="h", topic="topic")
    value = b'{"a":1,"o":99}' if format == "json" else stream(a=[1, 2])
    messages = [sent(value, 7, b"k"), sent(value, 8), sent(value, 9, b"\xff")]

    rows, bad = decoded(decoder(format, schema, metadata=about), messages)

    assert rows is not None
    assert rows.schema == schema
    count = 1 if format == "json" else 2
    assert rows.column("o").to_pylist() == [7] * count + [8] * count
    assert rows.to_pylist()[0] == {
        "k": "k",
        "a": 1,
        "o": 7,
        "p": 3,
        "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        "h": [{"key": "h", "value": b"1"}],
        "topic": "orders",
    }
    assert rows.column("k").to_pylist()[-1] is None
    assert [m.offset for m, _ in bad] == [9]


def test_a_header_whose_name_is_no_text() -> None:
    """A bad message, where headers are a column; else nobody looks at it."""
    odd = Messages.of(
        [sent(b'{"a":%d}' % n)._replace(headers=((name, b"1"),)) for n, name in ((1, b"fine"), (2, b"\xff"))]
    )
    schema = pa.schema([("a", pa.int64()), ("h", HEADERS)])
    for columns, good in ((("a", "h"), [1]), (("a",), [1, 2])):
        rows, bad = decoder("json", schema, columns, metadata=KafkaMetadata(headers="h")).decode(odd)
        assert rows is not None
        assert (rows.column("a").to_pylist(), len(bad)) == (good, 2 - len(good))


@pytest.mark.parametrize("columns", [(), ("o",), ("t",)])
def test_bad_messages_are_bad_whatever_is_asked_for(columns: tuple[str, ...]) -> None:
    """Rows only counted, only metadata wanted: a message that is no object is still found."""
    schema = pa.schema([*SCHEMA, pa.field("o", pa.int64())])
    one = decoder("json", schema, columns, metadata=KafkaMetadata(offset="o"))
    rows, bad = decoded(one, [sent(b'{"a":1}'), sent(b"no"), sent(b'{"a":2}')])
    assert rows is not None
    assert (rows.num_rows, tuple(rows.schema.names), len(bad)) == (2, columns, 1)


def test_dead_letters_are_on_the_disk_before_they_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file before its name, and its name before the batch goes on."""
    calls: list[str] = []
    monkeypatch.setattr(
        files.os, "fsync", lambda handle: calls.append(Path(f"/proc/self/fd/{handle}").readlink().suffix)
    )
    refused = [BadMessage(sent(b"{"), "no object")]
    letters.write(tmp_path, "a", Slice(0, None, 1, "t", start=0, stop=8), refused)
    assert calls == [".parquet", ""]
    assert [f.name.partition("-")[0] for f in tmp_path.glob("*.parquet")] == ["a"]
