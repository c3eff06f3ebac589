"""Reads spooled rows, in any process: files of Arrow, of which a slice is a record batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from joinlib.errors import StateError
from joinlib.model.inputs import UNCHANGED, WEIGHT
from joinlib.source.postgres.config import PostgresLogConfig
from joinlib.source.slices import Slice, SliceReader


@dataclass(frozen=True)
class SpoolReader(SliceReader):
    """Reads slices of one input: the columns that are asked for, then those of changes."""

    config: PostgresLogConfig
    schema: pa.Schema

    def read_many(self, slices: Sequence[Slice], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        want = self._wanted(columns)
        for path, group in groupby(slices, lambda s: s.path):
            try:
                yield from _batches(path, [s.group for s in group], want)
            except (pa.ArrowException, OSError) as error:
                raise StateError(
                    f"{path}: cannot be read ({str(error).splitlines()[0]}); restore the checkpoint from a copy,"
                    " or start with a new checkpoint, a new slot and a new output"
                ) from error

    def _wanted(self, columns: Sequence[str]) -> pa.Schema:
        """Return the schema of what is read: values may be NULL in a deletion, or where they were not sent."""
        made = [UNCHANGED, WEIGHT] if self.config.upsert else [WEIGHT]
        return pa.schema([
            *(self.schema.field(c).with_nullable(True) for c in columns),
            *(pa.field(name, pa.int64(), nullable=False) for name in made),
        ])  # fmt: skip


def _batches(path: str, numbers: Sequence[int], want: pa.Schema) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(path) as file:
        names = pa.ipc.open_file(file).schema.names
        options = pa.ipc.IpcReadOptions(
            included_fields=[names.index(n) for n in want.names], use_threads=False
        )
        rows = pa.ipc.open_file(file, options=options)
        for number in numbers:
            batch = rows.get_batch(number)
            yield pa.RecordBatch.from_arrays([batch.column(n) for n in want.names], schema=want)
