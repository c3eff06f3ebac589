"""Segments: immutable rows that arrived together, named by their content.

Small segments are stored in the manifest (a record batch), others in a file (an Arrow IPC stream of one
record batch). It is a stream and not an IPC file because Arrow reads the footer of a file in a separate
thread, which takes a millisecond on a busy machine.

A file is written aside and renamed into place, so a name never shows half a file, and two attempts write
the same bytes under the same name. A whole file of that name is kept, because it may already be on disk,
whereas a new one is only durable once `Manifests` has synced it.

A segment is read through a memory map after its length and digest have been compared with the manifest: a
damaged segment raises an error that names it and is never joined.
"""

import mmap
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import xxhash

from joinlib.errors import StateError
from joinlib.files import mappable
from joinlib.state.manifest import Content, Segment

_AT_ONCE = 1 << 20  # bytes; below this, one copy is cheaper than Arrow's dozen small writes


class Written(NamedTuple):
    """A segment as returned by `write`."""

    name: str
    bytes: int
    digest: str  # xxh3-128 of file or content, hexadecimal
    content: Content | None = None  # where there is no file


def write(folder: Path, prefix: str, batch: pa.RecordBatch, file_from: int = 0) -> Written:
    """Write `batch` as `folder/PREFIX-DIGEST.arrow`, or return it as content if it is small.

    file_from: size in bytes from which a file is written. Cost: O(bytes), without copying a large batch.
    """
    if batch.nbytes < file_from:
        content = batch.serialize().to_pybytes()
        digest = xxhash.xxh3_128_hexdigest(content)
        return Written(f"{prefix}-{digest[:16]}", len(content), digest, content)
    return _write_file(folder, prefix, batch)


def _write_file(folder: Path, prefix: str, batch: pa.RecordBatch) -> Written:
    aside = folder / f".{prefix}.{uuid.uuid4().hex[:8]}"  # the final name has the digest
    try:
        content = _write_at_once(aside, batch) if batch.nbytes < _AT_ONCE else _write_through(aside, batch)
        digest = xxhash.xxh3_128_hexdigest(content)
        written = Written(f"{prefix}-{digest[:16]}.arrow", content.size, digest)
        if _is_there(folder, written):
            aside.unlink()
        else:
            os.replace(aside, folder / written.name)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    return written


def _is_there(folder: Path, written: Written) -> bool:
    """Return whether another attempt has written the file and it is undamaged."""
    if not (folder / written.name).exists():
        return False
    try:
        verify(folder, written)
    except StateError:
        return False
    return True


def verify(folder: Path, segment: Segment | Written) -> None:
    """Compare the segment with its length and digest in the manifest. O(bytes), about 10 GB/s.

    Raises:
        StateError: the segment is damaged.
    """
    inline = segment.content is not None
    content = pa.py_buffer(segment.content) if inline else _map(folder, segment).read_buffer()
    if content.size != segment.bytes:
        raise StateError(
            f"segment {folder / segment.name} is damaged: {content.size} bytes, {segment.bytes} were"
            f" written. {_CURE}"
        )
    if xxhash.xxh3_128_hexdigest(content) != segment.digest:
        raise StateError(
            f"segment {folder / segment.name} is damaged: its checksum does not fit its content. {_CURE}"
        )


def read(
    folder: Path, segment: Segment | Written, schema: pa.Schema, scattered: bool = False
) -> pa.RecordBatch:
    """Return the segment's rows, memory-mapped; pages are read on access.

    schema: the schema of the rows.
    scattered: whether few rows are read, at random, so that a page is read without its neighbours.
    Where memory is smaller than state, the kernel would read 32 pages for each one needed, and evict
    others for them.
    """
    if segment.content is not None:
        return pa.ipc.read_record_batch(pa.py_buffer(segment.content), schema)
    content = _map_scattered(folder, segment) if scattered else _map(folder, segment).read_buffer()
    with pa.ipc.open_stream(content) as reader:
        return reader.read_next_batch()


def chained(token: int, digest: str) -> int:
    """Return a hash of the token and one more digest, as a positive int64, never 0."""
    return xxhash.xxh3_64_intdigest(f"{token}:{digest}".encode()) >> 1 | 1


def _write_at_once(path: Path, batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content = sink.getvalue()
    with open(path, "wb", buffering=0) as file:
        file.write(content)
    return content


def _write_through(path: Path, batch: pa.RecordBatch) -> pa.Buffer:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.memory_map(str(path)).read_buffer()


def _map(folder: Path, segment: Segment | Written) -> pa.MemoryMappedFile:
    with _opened(folder, segment):
        return pa.memory_map(str(folder / segment.name))


def _map_scattered(folder: Path, segment: Segment | Written) -> pa.Buffer:
    with _opened(folder, segment), open(folder / segment.name, "rb") as file:
        content = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        content.madvise(mmap.MADV_RANDOM)
        return pa.py_buffer(content)


@contextmanager
def _opened(folder: Path, segment: Segment | Written) -> Iterator[None]:
    """Raise a StateError that names the segment if it cannot be opened."""
    try:
        with mappable(folder / segment.name):
            yield
    except OSError as error:
        raise StateError(f"segment {folder / segment.name} cannot be opened ({error}). {_CURE}") from error


_CURE = (
    "Restore this file from a copy of the checkpoint, go back to a batch that does without it (`streamjoin"
    " restore FILE`), or start with a new checkpoint folder."
)
