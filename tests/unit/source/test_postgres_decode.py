"""Messages of pgoutput, without a database: what they say, and that those which are cut off are refused."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from joinlib.errors import InputError
from joinlib.source.postgres import PostgresLogConfig
from joinlib.source.postgres.decode import LogDecoder, Snapshot, Target
from tests import configs

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
NONE = Snapshot(0, 0, (), 0)  # it holds nothing


def number(value: int, size: int = 4) -> bytes:
    return value.to_bytes(size, "big")


def row(*values: str | None) -> bytes:
    texts = [b"n" if v is None else b"t" + number(len(v)) + v.encode() for v in values]
    return number(len(values), 2) + b"".join(texts)


RELATION = (
    b"R" + number(1) + b"public\0t\0d" + number(2, 2)
    + b"\1id\0" + number(20) + number(0)
    + b"\0v\0" + number(25) + number(0)
)  # fmt: skip
BEGIN = b"B" + number(90, 8) + number(0, 8) + number(5)
COMMIT = b"C\0" + number(90, 8) + number(95, 8) + number(0, 8)
INSERT = b"I" + number(1) + b"N" + row("7", "abc")
UPDATE = b"U" + number(1) + b"K" + row("7", None) + b"N" + row("8", "abcd")
TRUNCATE = b"T" + number(1) + b"\0" + number(1)
DELETE = b"D" + number(1) + b"K" + row("8", None)


def decoded(messages: Sequence[bytes], schema: pa.Schema = SCHEMA) -> list[tuple[object, ...]]:
    target = Target(
        PostgresLogConfig(configs.table("t", table="t"), "slot", "p", ("id",)), schema, ("public", "t")
    )
    decoder = LogDecoder([target], 0, NONE)
    made = [batch for _, batch in decoder.decode(pa.array(messages, pa.binary()))]
    assert decoder.end == 95
    return [tuple(r.values()) for batch in made for r in batch.to_pylist()]


def test_changes_become_rows() -> None:
    found = decoded([BEGIN, RELATION, INSERT, UPDATE, DELETE, COMMIT])
    assert found == [(7, "abc", 0, 1), (7, None, 0, -1), (8, "abcd", 0, 1), (8, None, 0, -1)]


@pytest.mark.parametrize("message", [BEGIN, RELATION, INSERT, UPDATE, DELETE, TRUNCATE, COMMIT])
def test_messages_that_are_cut_off(message: bytes) -> None:
    """Wherever they are: nothing of the next message is taken for what is missing."""
    before = [m for m in (BEGIN, RELATION) if m != message]
    for size in range(len(message)):
        for behind in ([], [INSERT, DELETE, COMMIT]):
            with pytest.raises(InputError, match="not in the format of pgoutput, version 1"):
                decoded([*before, message[:size], *behind])


@pytest.mark.parametrize("length", [4, 5, 1000, 0x7FFFFFFF, 0xFFFFFFFF])
def test_values_that_are_longer_than_their_message(length: int) -> None:
    """The last value is three bytes long and says otherwise."""
    longer = INSERT[:-7] + number(length) + INSERT[-3:]
    with pytest.raises(InputError, match="not in the format of pgoutput, version 1"):
        decoded([BEGIN, RELATION, longer, INSERT, COMMIT])


def test_a_number_of_more_places_than_a_decimal_has() -> None:
    """Arrow would read outside of its memory."""
    schema = pa.schema([("id", pa.int64()), ("v", pa.decimal128(9, 2))])
    numeric = RELATION.replace(number(25), number(1700))
    long = b"I" + number(1) + b"N" + row("7", f"0.{'0' * 60}1")
    with pytest.raises(InputError, match=r"column 'v' holds a value that does not fit decimal128\(9, 2\)"):
        decoded([BEGIN, numeric, INSERT.replace(b"abc", b"1.5"), long, COMMIT], schema)
