"""Keeps the first result rows of a batch, for the console."""

from collections.abc import Sequence

import pyarrow as pa


class ConsoleSink:
    """Keeps the first `rows` rows of each unit; 0 keeps none."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._begin()

    def write(self, batch: pa.RecordBatch) -> None:
        if self._room:
            self._kept.append(batch.slice(0, self._room))
            self._room -= self._kept[-1].num_rows

    def next_unit(self) -> tuple[tuple[str, ...], bytes | None]:
        kept = self._kept
        self._begin()
        return (), encoded(kept)

    def close(self) -> None:
        """Do nothing: no resource is held."""

    def _begin(self) -> None:
        self._room = self.rows
        self._kept: list[pa.RecordBatch] = []


def encoded(rows: Sequence[pa.RecordBatch]) -> bytes | None:
    """Return rows as the driver reads them; None if there are none."""
    if not rows:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows[0].schema) as writer:
        for batch in rows:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()
