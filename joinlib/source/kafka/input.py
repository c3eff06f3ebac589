"""Kafka topics, which grow while the job runs, as an input.

`discover` asks the brokers how far each partition reaches, cuts what is new into slices and logs it.
Positions are kept in the checkpoint; there is no consumer group and nothing to rebalance. Only
committed messages count.
"""

import time
from collections.abc import Callable, Collection, Iterable
from functools import cached_property

import pyarrow as pa

from joinlib.errors import InputError
from joinlib.source.kafka import registry
from joinlib.source.kafka.brokers import Brokers
from joinlib.source.kafka.config import KafkaConfig
from joinlib.source.kafka.ranges import OffsetRanges, Partition, advance
from joinlib.source.kafka.reader import KafkaReader
from joinlib.source.log import Log
from joinlib.source.slices import Slice

_RESAMPLE_S = 30.0
_POINTS = 4  # points per topic at which message sizes are sampled


class KafkaInput:
    """The input over one log. Making it connects to nothing yet."""

    def __init__(
        self,
        config: KafkaConfig,
        schema: pa.Schema,
        log: Log,
        brokers: Brokers | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.reader: KafkaReader = KafkaReader(config, schema)
        self._config = config
        self._log = log
        self._clock = clock
        self._brokers = brokers or Brokers(config.spec.connection, config.spec.names)
        self._sizes: dict[str, int] = {}
        self._sampled: dict[str, float] = {}

    def discover(self) -> int:
        known = self._known
        self._keep_reader()
        now = self._brokers.ends()
        self._measure(now)
        fresh = {topic: id for topic, id in self._brokers.ids.items() if known.ids.get(topic) != id}
        anew = fresh.keys() & known.ids.keys()
        entry, missing = advance(
            known.at, now, self._config.spec.starting_offsets == "latest", self._sizes, anew
        )
        if missing and self._config.spec.on_missing_offsets == "fail":
            raise InputError(self._gone(missing, anew))
        if fresh:
            entry["ids"] = fresh
        if entry:
            self._log.append([entry])
            known.add(entry)
        return known.slices

    def _keep_reader(self) -> None:
        """Keep the reader's schemas before anything is read with them, for when the job goes on."""
        for of in (registry.VALUES, registry.KEYS):
            texts = registry.reader_of(self.reader.schema, of)
            if texts and registry.kept(self._config.schemas, of) is None:
                registry.keep(self._config.schemas, texts, of)

    def slices(self, start: int, stop: int) -> list[Slice]:
        return self._known.between(start, stop)

    @property
    def kept(self) -> tuple[int, int]:
        return self._known.base, self._known.slices

    def forget(self, before: int) -> None:
        """Fold the log: slices below `before` will not be read again."""
        entries = self._known.folded(before)
        if entries is not None:
            self._log.replace(entries)
            self._known = OffsetRanges(str(self._log.path), entries)

    def lag(self, start: int = 0) -> dict[str, int]:
        known = self._known
        read = known.rows_before(start)
        return {
            "slices": known.slices - start,
            "rows": known.rows - read,
            "read": read,
            **({"lost": known.lost} if known.lost else {}),
        }

    @cached_property
    def _known(self) -> OffsetRanges:
        return OffsetRanges(str(self._log.path), self._log.entries)

    def _measure(self, now: dict[Partition, tuple[int, int]]) -> None:
        """Sample the size of new messages, no more often than needed."""
        points: dict[str, list[tuple[int, int]]] = {}
        for topic in self._config.spec.names:
            if topic in self._sampled and self._clock() - self._sampled[topic] < _RESAMPLE_S:
                continue
            fresh = sorted(
                ((high - start, p, start) for p, start, high in self._fresh(topic, now)), reverse=True
            )
            if fresh:
                points[topic] = list(_spread(fresh))
                self._sampled[topic] = self._clock()
        if points:
            self._sizes |= self._brokers.sizes(points)
        for topic in self._config.spec.names:
            self._sizes.setdefault(topic, 1)

    def _fresh(self, topic: str, now: dict[Partition, tuple[int, int]]) -> Iterable[tuple[int, int, int]]:
        """Yield (partition, start, high) where there is something to read."""
        for (name, partition), (low, high) in now.items():
            start = max(self._known.at.get((name, partition), low), low)
            if name == topic and start < high:
                yield partition, start, high

    def _gone(self, missing: dict[Partition, tuple[int, int, int]], anew: Collection[str]) -> str:
        (topic, partition), (start, low, high) = next(iter(missing.items()))
        why = "are gone: the topic was deleted and created again (its id differs)"
        if topic not in anew:
            why = "expired before they were read" if start < low else "are gone: the topic was truncated"
        return (
            f"kafka topic {topic}, partition {partition}: messages from offset {start} on {why} (there is"
            f" {low} to {high}); set `onMissingOffsets: reset` to go on with what there is, or start with a"
            " new checkpoint"
        )


def _spread(fresh: list[tuple[int, int, int]]) -> Iterable[tuple[int, int]]:
    """Yield a few points (partition, offset) spread over the longest of `fresh` (count, partition, start)."""
    each = max(_POINTS // len(fresh), 1)
    for count, partition, start in fresh[:_POINTS]:
        yield from ((partition, start + count * i // each) for i in range(each))
