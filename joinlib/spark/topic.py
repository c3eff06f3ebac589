"""Can the output topic be written? Asked before Spark starts, because the answer takes a second at most where all is well."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, ResourceType

from joinlib.broker import PATIENCE_S
from joinlib.errors import SpecError
from joinlib.spark import batches
from joinlib.spark.channel import Channel
from joinlib.spark.task import KafkaTarget

_FIRST_S = 30.0  # the first transaction of a cluster: its brokers make two topics
_ANSWER_S = 2.0
_FRAME = 512  # bytes of a batch around a message
_KEPT_S = 24 * 3600  # offsets, at least, by brokers that do not tell: 7 days unless set otherwise
_NEEDED = {AclOperation.WRITE: "WRITE", AclOperation.READ: "READ, for the offsets in its transactions,"}


def reached(target: KafkaTarget, job: str, checkpoint: Path, *, repeat: bool) -> KafkaTarget:
    """The target with what its cluster says of itself. Raises where it could not be written; leaves nothing behind.

    job: the checkpoint's id. repeat: a batch that Kafka may have forgotten is written again.
    """
    target = replace(target, job=job)
    probe = Channel(target, "probe", _FIRST_S)
    admin = AdminClient(probe.settings)
    _permitted(probe, admin)
    probe.open()
    probe.begin(0)
    probe.abort()
    size = _setting(admin, ResourceType.TOPIC, target.topic, "max.message.bytes")
    batch, age_s = _cut_off(checkpoint / "spark")
    minutes = _setting(admin, ResourceType.BROKER, _a_broker(probe, admin), "offsets.retention.minutes")
    kept_s = minutes * 60 if minutes else _KEPT_S
    return replace(
        target,
        max_bytes=max(size - _FRAME, 1000) if size else target.max_bytes,
        doubtful=batch if age_s > kept_s and not repeat else -1,
    )


def _permitted(probe: Channel, admin: AdminClient) -> None:
    """The topic is there, and this user may write it."""
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
            admin.poll(0)  # what the client has met meanwhile, such as a refused password

    allowed = probe.persist("looking it up", ask, PATIENCE_S)
    for operation, name in _NEEDED.items():
        if allowed and operation not in allowed:
            raise SpecError(f"output.kafka: this user needs {name} of topic {topic}; grant it, see README")


def _setting(admin: AdminClient, kind: ResourceType, name: str, key: str) -> int | None:
    """A setting of the cluster; None if this user may not see it."""
    resource = ConfigResource(kind, name)
    told = admin.describe_configs([resource], request_timeout=PATIENCE_S)
    try:
        return int(told[resource].result()[key].value)
    except (KafkaException, KeyError, TypeError, ValueError):
        return None


def _a_broker(probe: Channel, admin: AdminClient) -> str:
    told = probe.persist("looking it up", lambda seconds: admin.list_topics(timeout=seconds))
    return str(min(told.brokers))


def _cut_off(spark: Path) -> tuple[int, float]:
    """The batch that was begun and not finished, and how many seconds ago; -1, 0 if there is none."""
    if (begun := batches.cut_off(spark)) is None:
        return -1, 0.0
    return begun, time.time() - (spark / "offsets" / str(begun)).stat().st_mtime
