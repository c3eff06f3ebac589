"""Turns results with weights into what a sink takes, on their way into it.

    frames of a unit ─► changelog.rows or changelog.latest ─► the sink

With a key, a unit's rows are held until its end, since any two of them may belong together; without one they
pass frame by frame. Cost with a key: the memory of what one unit changes in a batch, twice.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from joinlib.sink import changelog

if TYPE_CHECKING:
    from joinlib.sink.config import SinkConfig
    from joinlib.sink.sink import Sink

Turned = Callable[[pa.RecordBatch], pa.RecordBatch]


class ChangingSink:
    """A sink in front of another.

    Args:
        sink: Takes what `turned` makes of the rows.
        turned: Makes the other sink's rows of results.
        whole: Whether it has to see all rows of a unit at once.
    """

    def __init__(self, sink: "Sink", turned: Turned, *, whole: bool) -> None:
        self._sink, self._turned, self._whole = sink, turned, whole
        self._held: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        if self._whole:
            self._held.append(batch)
        else:
            self._sink.write(self._turned(batch))

    def next_unit(self) -> tuple[tuple[str, ...], bytes | None]:
        if self._held:
            held, self._held = self._held, []
            made = self._turned(pa.concat_batches(held))
            del held
            self._sink.write(made)
        return self._sink.next_unit()

    def close(self) -> None:
        self._sink.close()


def changing(sink: "Sink", config: "SinkConfig", batch: int) -> "Sink":
    """Return the sink with what its mode needs in front of it."""
    if config.mode == "append":
        return sink
    if not by_key(config):
        return ChangingSink(
            sink, lambda rows: changelog.rows(rows, config.key, batch), whole=bool(config.key)
        )
    if config.kafka is not None and config.kafka.spec.format == "debezium":
        return ChangingSink(
            sink, lambda rows: changelog.rows(_unique(rows, config), config.key, batch), whole=True
        )
    return ChangingSink(sink, lambda rows: changelog.latest(rows, config.key), whole=True)


def shown(frames: Iterable[pa.RecordBatch], config: "SinkConfig") -> Iterator[pa.RecordBatch]:
    """Yield a unit's frames as rows for a DataFrame, which has batches of its own: without their number."""
    if config.mode == "append":
        yield from frames
    elif not config.key:
        yield from map(changelog.rows, frames)
    elif held := list(frames):
        yield changelog.rows(pa.concat_batches(held), config.key)


def written(config: "SinkConfig", schema: pa.Schema) -> pa.Schema:
    """Return the columns of what is written, for results of this schema without weights."""
    return schema if config.mode == "append" or by_key(config) else changelog.described(schema)


def by_key(config: "SinkConfig") -> bool:
    """Return whether the sink itself replaces the row of a key; others show what happened instead."""
    return config.mode == "upsert" and config.kind in ("kafka", "postgres")


def _unique(rows: pa.RecordBatch, config: "SinkConfig") -> pa.RecordBatch:
    changelog.latest(rows, config.key)  # raises where a key has several rows
    return rows
