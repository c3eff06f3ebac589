"""Dead letters: messages that cannot be decoded, in one Parquet file per slice that has some, exactly once.

The file's name is the slice's and its rows follow from the slice alone, so a batch that runs again replaces
it by the same file, by a rename; readers see complete files only. It is on the disk before its batch
counts, as are the inputs' logs.
"""

import uuid
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from joinlib.files import sync
from joinlib.source.kafka.bad import BadMessage
from joinlib.source.kafka.decode import about
from joinlib.source.kafka.messages import Messages
from joinlib.source.slices import Slice


def write(folder: Path, name: str, slice: Slice, refused: Sequence[BadMessage]) -> None:
    """Write the refused messages of a slice of input `name`, each with the reason."""
    messages = Messages.of([m for m, _ in refused])
    table = pa.table(
        {
            **{column: about(column, messages) for column in ("topic", "partition", "offset", "timestamp")},
            "error": pa.array([reason for _, reason in refused], pa.string()),
            **{column: about(column, messages) for column in ("key", "value", "headers")},
        }
    )
    file = f"{name}-{slice.path}-{slice.group:05d}-{slice.start:020d}-{slice.stop:020d}.parquet"
    aside = folder / ".staging" / f"{uuid.uuid4().hex}.parquet"
    aside.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, aside)
    sync([aside])
    aside.rename(folder / file)
    sync([folder])
