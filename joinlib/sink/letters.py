"""Writes dead letters: a JSON object a line, in one staged file for a task, which its driver publishes.

    BOX/batch=7/part-00000-MARK.jsonl      with the batch, as results in files are (`publish`)

Each line says where a row came from, why it was left out, and what it was.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from joinlib.files import sync
from joinlib.model.letters import LETTER, DeadRows
from joinlib.sink.config import staged
from joinlib.sink.texts import json_objects

_ORDER = ("input", "output", "file", "partition", "at")
_SHOWN = [name for name in LETTER.names if name != "row"]


def write(
    folder: Path, letters: Sequence[pa.RecordBatch], partition: int, batch: int, attempt: int, synced: bool
) -> str:
    """Write the letters of a task and batch; return the name of the staged file."""
    file = staged(folder, batch, partition, attempt, "jsonl")
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = pa.Table.from_batches(letters).sort_by([(name, "ascending") for name in _ORDER])
    numbered = rows.select(_SHOWN).add_column(0, "batch", pa.repeat(batch, rows.num_rows))
    objects = json_objects(numbered.combine_chunks().to_batches()[0]).to_pylist()
    with file.open("w", encoding="utf-8") as out:
        for line, row in zip(objects, rows.column("row").to_pylist(), strict=True):
            out.write(f'{line[:-1]},"row":{row or "null"}}}\n')
    if synced:
        sync([file])
    return file.name


def counted(letters: Sequence[pa.RecordBatch]) -> tuple[DeadRows, ...]:
    """Count letters by what they are of and why."""
    found: Counter[tuple[str, str]] = Counter()
    for batch in letters:
        columns = (batch.column(name).to_pylist() for name in ("input", "output", "reason"))
        found.update((input or output or "", reason) for input, output, reason in zip(*columns, strict=True))
    return tuple(DeadRows(source, reason, count) for (source, reason), count in sorted(found.items()))
