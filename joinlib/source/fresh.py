"""Is a file still what was listed? Slices are positions in it: it must not change before they are read."""

from pathlib import Path

from joinlib.errors import InputError
from joinlib.source.slices import Slice

_FIX = "files of an input must not change: write under a name that begins with a dot, then rename"


class Unreadable(Exception):
    """A file cannot be cut into slices; the text is the reason. Fails the job or skips the file, as configured."""


def check_fresh(slice: Slice) -> None:
    """The slice's file has the size and the modification time it had when it was listed."""
    try:
        stat = Path(slice.path).stat()
    except FileNotFoundError as e:
        raise InputError(
            f"{slice.path}: gone before it was read; put it back, or start with a new checkpoint"
        ) from e
    if stat.st_size != slice.size:
        raise InputError(
            f"{slice.path}: changed from {slice.size} to {stat.st_size} bytes before it was read; {_FIX}"
        )
    if stat.st_mtime_ns != slice.mtime_ns:
        raise InputError(f"{slice.path}: written again (same size, later time) before it was read; {_FIX}")
