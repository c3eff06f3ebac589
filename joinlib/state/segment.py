"""One segment: an Arrow IPC file with one record batch, immutable, named by what it holds.

Written aside and linked into place, so a name never shows half a file, and two attempts that write the same bytes agree.
Read through a memory map, after its length and digest were compared with the manifest: a damaged segment is named,
never joined.
"""

import os
import threading
from pathlib import Path

import pyarrow as pa
import xxhash

from joinlib.errors import StateError
from joinlib.state.manifest import Segment


def write(folder: Path, prefix: str, batch: pa.RecordBatch) -> tuple[str, int, str]:
    """Writes `batch` as `folder/PREFIX-DIGEST.arrow`; returns name, bytes and digest. O(bytes)."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data = sink.getvalue()
    digest = xxhash.xxh3_128_hexdigest(data)
    name = f"{prefix}-{digest[:16]}.arrow"
    aside = folder / f".{name}.{os.getpid()}.{threading.get_ident()}"
    try:
        with open(aside, "wb") as file:
            file.write(data)
        try:
            os.link(aside, folder / name)
        except FileExistsError:  # another attempt wrote it; were it damaged, the next reader would say so
            os.replace(aside, folder / name)
    finally:
        aside.unlink(missing_ok=True)
    return name, data.size, digest


def verify(folder: Path, segment: Segment) -> None:
    """Compares the file with what the manifest says of it. O(bytes), about 10 GB/s."""
    source = _map(folder, segment)
    if source.size() != segment.bytes:
        raise StateError(
            f"segment {folder / segment.name} is damaged: {source.size()} bytes, {segment.bytes} were written. {_CURE}"
        )
    if xxhash.xxh3_128_hexdigest(source.read_buffer()) != segment.digest:
        raise StateError(f"segment {folder / segment.name} is damaged: its checksum does not fit its content. {_CURE}")


def read(folder: Path, segment: Segment) -> pa.RecordBatch:
    """The segment's rows, mapped, not copied. Pages are read when they are touched."""
    with pa.ipc.open_file(_map(folder, segment)) as reader:
        return reader.get_batch(0)


def _map(folder: Path, segment: Segment) -> pa.MemoryMappedFile:
    try:
        return pa.memory_map(str(folder / segment.name))
    except OSError as error:
        raise StateError(f"segment {folder / segment.name} cannot be opened ({error}). {_CURE}") from error


_CURE = "Restore this file from a copy of the checkpoint, or start with a new checkpoint folder."
