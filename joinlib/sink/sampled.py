"""Keeps the first rows of a task on their way into its sink, for the page of the run.

Law: what the sink gets is the same. Cost: a slice for each frame until there are enough rows; for each task a few
rows and at most 64 KiB go to the driver. A row that takes more is not kept, and neither is one whose weight says that it
went.
"""

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.sink import changelog
from joinlib.sink.console import encoded

if TYPE_CHECKING:
    from joinlib.sink.sink import Sink

_MOST = 1 << 16  # bytes of a task
_LOOKED_AT = 1000  # rows of a frame


class SampledSink:
    """A sink in front of another. rows: so many of a task are kept."""

    def __init__(self, sink: "Sink", rows: int) -> None:
        self._sink, self._rows, self._bytes = sink, rows, _MOST
        self._kept: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        if self._rows and (few := self._few(batch)).num_rows:
            self._kept.append(few)
            self._rows -= few.num_rows
            self._bytes -= few.nbytes
        self._sink.write(batch)

    def next_unit(self) -> tuple[tuple[str, ...], bytes | None]:
        files, _ = self._sink.next_unit()
        kept, self._kept = self._kept, []
        return files, encoded(kept)

    def close(self) -> None:
        self._sink.close()

    def _few(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        plain, weights = changelog.split(batch.slice(0, _LOOKED_AT))
        if weights is not None:
            plain = plain.filter(pc.greater(pa.array(weights), 0))
        few = plain.slice(0, self._rows)
        while few.num_rows and few.nbytes > self._bytes:
            few = few.slice(0, few.num_rows // 2)
        return few
