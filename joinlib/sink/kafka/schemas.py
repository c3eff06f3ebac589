"""Registers the schemas of results in a registry, before Spark starts.

The name of a record or of a message, and the numbers of its fields, are those of the schema that the subject has
already: by them readers know it.
"""

from dataclasses import replace

import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import DescriptorProto

from joinlib.errors import InputError, SpecError
from joinlib.sink.config import KafkaSinkConfig
from joinlib.source.avro.schema import parsed
from joinlib.source.kafka.registry import Refusal, RegistryClient, Unknown
from joinlib.source.protobuf.protoc import ProtoFile, compiled_files
from joinlib.source.protobuf.schema import ProtoSchema
from joinlib.spec.avro import record_name, schema_of
from joinlib.spec.protobuf import RowField, RowMessage, inner_columns, message_of, schema_text

_KEY = "_key"  # behind the name of the record or message of a topic's keys


def registered(target: KafkaSinkConfig, schema: pa.Schema) -> KafkaSinkConfig:
    """Return the target with the ids of its schemas, if messages have some: registered, unless they were before.

    Raises:
        NotReady: The registry cannot be reached.
        SpecError: It refuses, or a column has no type in the format.
    """
    if (registry := target.spec.registry) is None:
        return target
    subject, of_keys = registry.subject_of(target.topic), registry.key_subject_of(target.topic)
    if target.spec.format == "protobuf":
        id, message = _registered_message(target, subject, schema, "")
        found = replace(target, schema_id=id, message=message)
        if target.spec.key_format == "text":
            return found
        id, message = _registered_message(target, of_keys, _key_columns(target, schema), _KEY)
        return replace(found, key_schema_id=id, key_message=message)
    found = replace(target, schema_id=_registered_record(target, subject, schema, ""))
    if target.spec.key_format == "text":
        return found
    keys = _registered_record(target, of_keys, _key_columns(target, schema), _KEY)
    return replace(found, key_schema_id=keys)


def _key_columns(target: KafkaSinkConfig, schema: pa.Schema) -> pa.Schema:
    return pa.schema([schema.field(name) for name in target.key])


def _registered_message(
    target: KafkaSinkConfig, subject: str, columns: pa.Schema, suffix: str
) -> tuple[int, RowMessage]:
    """Return the id of the schema of columns in Protobuf, and the type of their messages. `suffix`: as of records."""
    message = message_of(columns, _known_message(target, subject, columns, suffix))
    return _registered(target, subject, "PROTOBUF", schema_text(columns, message)), message


def _registered_record(target: KafkaSinkConfig, subject: str, columns: pa.Schema, suffix: str) -> int:
    """Return the id of the schema of columns in Avro. `suffix`: of the record's name, if the subject has none yet."""
    try:
        known = parsed([one.text for one in _client(target, "AVRO").newest(subject)]).name
    except (Unknown, InputError):  # none yet, or it is no schema of Avro, which the registry says next
        known = ""
    return _registered(
        target, subject, "AVRO", schema_of(columns, known or record_name(target.topic) + suffix)
    )


def _known_message(target: KafkaSinkConfig, subject: str, columns: pa.Schema, suffix: str) -> RowMessage:
    """Return what the subject's newest schema has of the columns; a name alone if it has none.

    A schema that cannot be read stops the job: without its numbers, fields would get those of others.
    """
    try:
        found = _client(target, "PROTOBUF").newest(subject)
    except Unknown:  # none yet, or it is no schema of Protobuf, which the registry says next
        return RowMessage(record_name(target.topic) + suffix)
    try:
        first = ProtoSchema(compiled_files([ProtoFile(one.name, one.text) for one in found])).at([0])
    except InputError as error:
        raise SpecError(f"output.kafka.registry: the schema of subject {subject}: {error}") from None
    return known_message(first, [*columns])._replace(name=first.full_name)


def known_message(message: Descriptor, columns: list[pa.Field]) -> RowMessage:
    """Return a type of messages, and of the messages in it those that are columns."""
    types = {column.name: column.type for column in columns}
    fields = []
    for field in message.fields:
        columns_in = inner_columns(types[field.name]) if field.name in types else None
        inner = field.message_type if columns_in is not None else None
        known = known_message(inner, columns_in or []) if inner is not None else None
        fields.append(RowField(field.name, field.number, known))
    return RowMessage(message.name, tuple(fields), *_reserved(message))


def _reserved(message: Descriptor) -> tuple[tuple[tuple[int, int], ...], tuple[str, ...]]:
    """Return the ranges of numbers, and the names, that no field of a type may have."""
    found = DescriptorProto()
    message.CopyToProto(found)
    ranges = [
        *((one.start, one.end - 1) for one in found.reserved_range),
        *((one.start, one.end - 1) for one in found.extension_range),
    ]
    return tuple(ranges), tuple(found.reserved_name)


def _registered(target: KafkaSinkConfig, subject: str, kind: str, schema: str) -> int:
    """Return the id of a schema."""
    assert target.spec.registry is not None
    try:
        return _client(target, kind).register(subject, schema)
    except Refusal as refused:
        raise SpecError(
            f"output.kafka: {refused}; have the result's columns follow subject {subject}, or name another subject"
        ) from None
    except Unknown as unknown:
        raise SpecError(f"output.kafka: {target.spec.registry.url} {unknown}; correct url") from None


def _client(target: KafkaSinkConfig, kind: str) -> RegistryClient:
    assert target.spec.registry is not None
    return RegistryClient(target.spec.registry, kind)
