"""What the formats are that have their schemas in a registry: Avro, and Protobuf.

Both begin with a zero byte and four bytes of the schema's id. Behind them Protobuf says which message type of the
schema it is: how many numbers follow, and the number of each type within the one before; a single zero byte is the
first type of the file. Numbers are those of Avro, zigzag.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from joinlib.source.avro import program as avro
from joinlib.source.avro import types as avro_types
from joinlib.source.avro.columns import AvroRows
from joinlib.source.avro.keys import as_record
from joinlib.source.avro.schema import AvroField, AvroType, parsed
from joinlib.source.kafka.bad import Bad
from joinlib.source.kafka.registry import Registered
from joinlib.source.protobuf import program as protobuf
from joinlib.source.protobuf import types as protobuf_types
from joinlib.source.protobuf.columns import ProtobufRows
from joinlib.source.protobuf.keys import keys_of
from joinlib.source.protobuf.protoc import ProtoFile, compiled_files
from joinlib.source.protobuf.schema import ProtoSchema
from joinlib.spec.inputs import KafkaTopics

ID = 5  # bytes of what both begin with
_MOST_INDEXES = 64
_STRANGE = (
    "does not say, behind the number of its schema, which message type it is; is it written with a registry?"
)


class MessageReader(Protocol):
    """Reads messages of one schema."""

    def table(self, values: Sequence[bytes | None], header: int = 0) -> pa.Table: ...


class Codec(Protocol):
    """A format. Its schemas are kept as texts, the reader's and each writer's."""

    @property
    def kind(self) -> str:
        """What registries call it."""

    def texts(self, found: Sequence[Registered]) -> tuple[str, ...]:
        """Return a schema, after those that it refers to, as it is kept; raise InputError if it is none."""

    def head(self, value: bytes) -> bytes:
        """Return what stands before the body of a message; raise Bad if nothing of the kind does."""

    def columns(self, texts: Sequence[str]) -> pa.Schema:
        """Return the columns of a schema; raise InputError if it has none."""

    def rows(
        self, texts: Sequence[str], head: bytes, want: pa.Schema, reader: Sequence[str]
    ) -> MessageReader:
        """Return what reads messages of a schema to columns; raise InputError if it cannot be."""

    def check(self, reader: Sequence[str], want: pa.Schema) -> None:
        """Raise InputError if columns cannot be read from messages of the reader's schema."""


@dataclass(frozen=True)
class AvroCodec:
    """Records in Avro."""

    kind: str = "AVRO"

    def texts(self, found: Sequence[Registered]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.text for one in found))

    def head(self, value: bytes) -> bytes:
        return value[:ID]

    def columns(self, texts: Sequence[str]) -> pa.Schema:
        return avro_types.columns_of(parsed(texts))

    def rows(
        self, texts: Sequence[str], head: bytes, want: pa.Schema, reader: Sequence[str]
    ) -> MessageReader:
        known = parsed(reader) if reader else None
        return AvroRows(avro.compiled(parsed(texts), want, known), want.names)

    def check(self, reader: Sequence[str], want: pa.Schema) -> None:
        known = parsed(reader)
        avro.compiled(known, want, known)


@dataclass(frozen=True)
class AvroKeyCodec(AvroCodec):
    """Keys in Avro, which may be of any type."""

    def columns(self, texts: Sequence[str]) -> pa.Schema:
        """Return a column that the whole of a key fits."""
        return avro_types.columns_of(AvroType("record", fields=(AvroField("key", parsed(texts)),)))

    def rows(
        self, texts: Sequence[str], head: bytes, want: pa.Schema, reader: Sequence[str]
    ) -> MessageReader:
        known = parsed(reader) if reader else None
        writer = as_record(parsed(texts), want, known)
        return AvroRows(avro.compiled(writer, want, as_record(known, want) if known else None), want.names)

    def check(self, reader: Sequence[str], want: pa.Schema) -> None:
        known = as_record(parsed(reader), want)
        avro.compiled(known, want, known)


@dataclass(frozen=True)
class ProtobufCodec:
    """Messages in Protobuf. `message`: the full name of their type; the first of the reader's schema if None."""

    message: str | None
    kind: str = "PROTOBUF"

    def texts(self, found: Sequence[Registered]) -> tuple[str, ...]:
        return (compiled_files([ProtoFile(one.name, one.text) for one in found]),)

    def head(self, value: bytes) -> bytes:
        return value[: _indexes(value)[1]] if len(value) >= ID else value

    def columns(self, texts: Sequence[str]) -> pa.Schema:
        return protobuf_types.columns_of(ProtoSchema(texts[-1]).named(self.message))

    def rows(
        self, texts: Sequence[str], head: bytes, want: pa.Schema, reader: Sequence[str]
    ) -> MessageReader:
        writer, known = (
            ProtoSchema(texts[-1]).at(_indexes(head)[0]),
            ProtoSchema(reader[-1]).named(self.message),
        )
        return ProtobufRows(protobuf.tables(writer, want, known), want.names)

    def check(self, reader: Sequence[str], want: pa.Schema) -> None:
        known = ProtoSchema(reader[-1]).named(self.message)
        protobuf.tables(known, want, known)


@dataclass(frozen=True)
class ProtobufKeyCodec(ProtobufCodec):
    """Keys in Protobuf, of the first type of the reader's schema."""

    message: str | None = None

    def columns(self, texts: Sequence[str]) -> pa.Schema:
        """Return a column that the whole of a key fits."""
        return pa.schema([pa.field("key", pa.struct(list(super().columns(texts))), nullable=False)])

    def rows(
        self, texts: Sequence[str], head: bytes, want: pa.Schema, reader: Sequence[str]
    ) -> MessageReader:
        return keys_of(
            ProtoSchema(texts[-1]).at(_indexes(head)[0]), want, ProtoSchema(reader[-1]).named(None)
        )

    def check(self, reader: Sequence[str], want: pa.Schema) -> None:
        known = ProtoSchema(reader[-1]).named(None)
        keys_of(known, want, known)


def codec_of(kafka: KafkaTopics) -> Codec:
    """Return the format of topics that have a registry."""
    assert kafka.registry is not None
    return AvroCodec() if kafka.format == "avro" else ProtobufCodec(kafka.registry.message)


def key_codec_of(kafka: KafkaTopics) -> Codec | None:
    """Return the format of keys whose schemas are in a registry; None if they are text."""
    return {"text": None, "avro": AvroKeyCodec(), "protobuf": ProtobufKeyCodec()}[kafka.key_format]


def _indexes(value: bytes) -> tuple[list[int], int]:
    """Return which message type it is, and where the body begins."""
    count, at = _number(value, ID)
    if not 0 <= count <= _MOST_INDEXES:
        raise Bad(_STRANGE)
    found = []
    for _ in range(count):
        index, at = _number(value, at)
        found.append(index)
    return found or [0], at


def _number(value: bytes, at: int) -> tuple[int, int]:
    """Return a number of few bytes, and where it ends."""
    found = 0
    for shift in range(0, 35, 7):
        if at >= len(value):
            break
        byte = value[at]
        at += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return (found >> 1) ^ -(found & 1), at
    raise Bad(_STRANGE)
