"""Where messages end that cannot be decoded: one Parquet file for each slice that has some, exactly once.

Its name is the slice's and its rows follow from the slice alone, so a batch that is run again writes the same file
again, by a rename; readers see whole files only. It is on the disk before its batch counts, as inputs' logs are.
"""

import uuid
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from joinlib.files import sync
from joinlib.source.kafka.decode import Refused, about
from joinlib.source.slices import Slice


def write(folder: Path, name: str, slice: Slice, refused: Sequence[Refused]) -> None:
    """Keeps the messages of a slice of input `name`, with why each is here."""
    messages = [m for m, _ in refused]
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
