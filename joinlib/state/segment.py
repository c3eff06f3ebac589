"""One segment: an Arrow IPC file with one record batch, immutable, named by what it holds.

Written aside and linked into place, so a name never shows half a file, and two attempts that write the same bytes agree.
Read through a memory map, after its length and digest were compared with the manifest: a damaged segment is named,
never joined.
"""

import io
import os
import threading
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import xxhash

from joinlib.errors import StateError
from joinlib.state.manifest import Segment


class Written(NamedTuple):
    """A segment's file, as its writer knows it."""

    name: str
    bytes: int
    digest: str  # xxh3-128 of the file, hexadecimal


def write(folder: Path, prefix: str, batch: pa.RecordBatch) -> Written:
    """Writes `batch` as `folder/PREFIX-DIGEST.arrow`. O(bytes), no copy in memory."""
    aside = folder / f".{prefix}.{os.getpid()}.{threading.get_ident()}"
    try:
        with open(aside, "wb", buffering=0) as file:
            hashing = _Hashing(file)
            with pa.ipc.new_file(pa.PythonFile(hashing, mode="w"), batch.schema) as writer:
                writer.write_batch(batch)
        digest = hashing.digest.hexdigest()
        name = f"{prefix}-{digest[:16]}.arrow"
        try:
            os.link(aside, folder / name)
        except (
            FileExistsError
        ):  # another attempt wrote the same; were it damaged since, these bytes are right
            os.replace(aside, folder / name)
    finally:
        aside.unlink(missing_ok=True)
    return Written(name, hashing.size, digest)


class _Hashing(io.RawIOBase):
    """A file that hashes what is written to it."""

    def __init__(self, file: io.RawIOBase) -> None:
        self.file, self.digest, self.size = file, xxhash.xxh3_128(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self.digest.update(view)
        self.size += len(view)
        written = 0
        while written < len(view):  # a raw file may take less than it is given
            written += self.file.write(view[written:]) or 0
        return written


def verify(folder: Path, segment: Segment | Written) -> None:
    """Compares the file with what the manifest says of it. O(bytes), about 10 GB/s."""
    source = _map(folder, segment)
    if source.size() != segment.bytes:
        raise StateError(
            f"segment {folder / segment.name} is damaged: {source.size()} bytes, {segment.bytes} were written. {_CURE}"
        )
    if xxhash.xxh3_128_hexdigest(source.read_buffer()) != segment.digest:
        raise StateError(
            f"segment {folder / segment.name} is damaged: its checksum does not fit its content. {_CURE}"
        )


def read(folder: Path, segment: Segment | Written) -> pa.RecordBatch:
    """The segment's rows, mapped, not copied. Pages are read when they are touched."""
    with pa.ipc.open_file(_map(folder, segment)) as reader:
        return reader.get_batch(0)


def _map(folder: Path, segment: Segment | Written) -> pa.MemoryMappedFile:
    try:
        return pa.memory_map(str(folder / segment.name))
    except OSError as error:
        raise StateError(f"segment {folder / segment.name} cannot be opened ({error}). {_CURE}") from error


_CURE = "Restore this file from a copy of the checkpoint, or start with a new checkpoint folder."
