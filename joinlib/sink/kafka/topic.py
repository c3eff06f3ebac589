"""Checks before Spark starts that the output topic can be written; takes a second at most if all is well."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, ResourceType

from joinlib.broker import PATIENCE_S
from joinlib.errors import InputError, SpecError
from joinlib.sink.config import KafkaSinkConfig
from joinlib.sink.kafka.producer import TransactionalProducer
from joinlib.source.avro.schema import parsed
from joinlib.source.kafka.registry import Refusal, RegistryClient, Unknown
from joinlib.spec.avro import record_name, schema_of

_NOTHING = pa.schema([])
_FIRST_S = 30.0  # for the first transaction of a cluster, for which its brokers make two topics
_ANSWER_S = 2.0
_FRAME = 512  # bytes of a batch around a message
_KEPT_S = 24 * 3600  # assumed offset retention if brokers hide it; their default is 7 days
_NEEDED = {AclOperation.WRITE: "WRITE", AclOperation.READ: "READ, for the offsets in its transactions,"}


def reached(
    target: KafkaSinkConfig, job: str, interrupted: tuple[int, float] | None, schema: pa.Schema = _NOTHING
) -> KafkaSinkConfig:
    """Return the target with the limits that its cluster reports, and the ids of its schemas in a registry.

    Writes nothing that stays, but the schemas where the registry does not have them.

    Args:
        target: The topic.
        job: The checkpoint's id.
        schema: The columns of the messages.
        interrupted: The batch that was begun and not finished, and how many seconds ago it began.

    Raises:
        NotReady: The brokers or the registry cannot be reached.
        SpecError: The topic cannot be written with these settings, or the registry refuses the schema.
    """
    target = registered(replace(target, job=job), schema)
    probe = TransactionalProducer(target, "probe", _FIRST_S)
    admin = AdminClient(probe.settings)
    _permitted(probe, admin)
    probe.open()
    probe.begin(0)
    probe.abort()
    size = _setting(admin, ResourceType.TOPIC, target.topic, "max.message.bytes")
    batch, age_s = interrupted or (-1, 0.0)
    repeat = target.spec.on_forgotten == "repeat"
    minutes = _setting(admin, ResourceType.BROKER, _a_broker(probe, admin), "offsets.retention.minutes")
    kept_s = minutes * 60 if minutes else _KEPT_S
    return replace(
        target,
        max_bytes=max(size - _FRAME, 1000) if size else target.max_bytes,
        doubtful=batch if age_s > kept_s and not repeat else -1,
    )


def registered(target: KafkaSinkConfig, schema: pa.Schema) -> KafkaSinkConfig:
    """Return the target with the ids of its schemas, if messages have some: registered, unless they were before.

    A record is called as in the schema that its subject has already, since readers know it by that name.

    Raises:
        NotReady: The registry cannot be reached.
        SpecError: It refuses, or a column has no type in Avro.
    """
    if (registry := target.spec.registry) is None:
        return target
    values = _registered(target, registry.subject_of(target.topic), schema, "")
    if target.spec.key_format != "avro":
        return replace(target, schema_id=values)
    columns = pa.schema([schema.field(name) for name in target.key])
    keys = _registered(target, registry.key_subject_of(target.topic), columns, "_key")
    return replace(target, schema_id=values, key_schema_id=keys)


def _registered(target: KafkaSinkConfig, subject: str, columns: pa.Schema, suffix: str) -> int:
    """Return the id of the schema of columns. `suffix`: of the record's name, if the subject has none yet."""
    assert target.spec.registry is not None
    client = RegistryClient(target.spec.registry, "AVRO")
    try:
        known = parsed([one.text for one in client.newest(subject)]).name
    except (Unknown, InputError):  # none yet, or it is no schema of Avro, which the registry says next
        known = ""
    try:
        return client.register(subject, schema_of(columns, known or record_name(target.topic) + suffix))
    except Refusal as refused:
        raise SpecError(
            f"output.kafka: {refused}; have the result's columns follow subject {subject}, or name another subject"
        ) from None
    except Unknown as unknown:
        raise SpecError(f"output.kafka: {target.spec.registry.url} {unknown}; correct url") from None


def _permitted(probe: TransactionalProducer, admin: AdminClient) -> None:
    """Check that the topic exists and that this user may write to it."""
    topic = probe.target.topic

    def ask(seconds: float) -> Any:
        told = admin.describe_topics(
            TopicCollection([topic]),
            include_authorized_operations=True,
            request_timeout=min(seconds, _ANSWER_S),
        )
        try:
            return told[topic].result().authorized_operations
        finally:
            admin.poll(0)  # report errors that the client has met meanwhile, such as a refused password

    allowed = probe.persist("looking it up", ask, PATIENCE_S)
    for operation, name in _NEEDED.items():
        if allowed and operation not in allowed:
            raise SpecError(f"output.kafka: this user needs {name} of topic {topic}; grant it")


def _setting(admin: AdminClient, kind: ResourceType, name: str, key: str) -> int | None:
    """Return a setting of the cluster; None if this user may not see it."""
    resource = ConfigResource(kind, name)
    told = admin.describe_configs([resource], request_timeout=PATIENCE_S)
    try:
        return int(told[resource].result()[key].value)
    except (KafkaException, KeyError, TypeError, ValueError):
        return None


def _a_broker(probe: TransactionalProducer, admin: AdminClient) -> str:
    told = probe.persist("looking it up", lambda seconds: admin.list_topics(timeout=seconds))
    return str(min(told.brokers))
