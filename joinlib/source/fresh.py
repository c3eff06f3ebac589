"""Checks that a file is still the one that was listed: slices are positions in it, so it must not change."""

from pathlib import Path

from joinlib.errors import InputError
from joinlib.source.slices import Slice

_FIX = "files of an input must not change: write under a name that begins with a dot, then rename"


class Unreadable(Exception):
    """A file cannot be cut into slices; the text says why.

    It fails the job or skips the file, as configured.
    """


def check_fresh(slice: Slice) -> None:
    """Check that the slice's file has the size and time of modification that it had when it was listed.

    Raises:
        InputError: It is gone or has changed.
    """
    try:
        stat = Path(slice.path).stat()
    except FileNotFoundError as e:
        raise InputError(
            f"{slice.path}: gone before it was read; put it back with its time (cp -p), or start with a new checkpoint"
        ) from e
    if stat.st_size != slice.size:
        raise InputError(
            f"{slice.path}: changed from {slice.size} to {stat.st_size} bytes before it was read; {_FIX}"
        )
    if stat.st_mtime_ns != slice.mtime_ns:
        raise InputError(f"{slice.path}: written again (same size, later time) before it was read; {_FIX}")
