"""Keeps the first result rows of a batch, for the console."""

import pyarrow as pa


class ConsoleSink:
    """Keeps the first `rows` rows of each unit; 0 keeps none."""

    def __init__(self, rows: int, schema: pa.Schema) -> None:
        self.rows, self.schema = rows, schema
        self._begin()

    def write(self, batch: pa.RecordBatch) -> None:
        if self._room:
            self._kept.append(batch.slice(0, self._room))
            self._room -= self._kept[-1].num_rows

    def next_unit(self) -> tuple[tuple[str, ...], bytes | None]:
        kept = self._kept
        self._begin()
        if not kept:
            return (), None
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.schema) as writer:
            for batch in kept:
                writer.write_batch(batch)
        return (), sink.getvalue().to_pybytes()

    def close(self) -> None:
        """Do nothing: no resource is held."""

    def _begin(self) -> None:
        self._room = self.rows
        self._kept: list[pa.RecordBatch] = []
