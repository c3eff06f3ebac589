"""Checks before Spark starts that the output topic can be written; takes a second at most if all is well."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, ResourceType

from joinlib.broker import PATIENCE_S
from joinlib.errors import SpecError
from joinlib.sink.config import KafkaSinkConfig
from joinlib.sink.kafka.producer import TransactionalProducer
from joinlib.sink.kafka.schemas import registered

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
