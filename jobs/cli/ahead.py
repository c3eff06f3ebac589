"""Decides whether Spark is started before a run knows its first batch: as early as can be, where it will be needed.

A JVM takes seconds to start, in which the rest is loaded and planned. Sizes of files are all that is known then.
"""

from collections.abc import Iterator

from joinlib.checkpoint import batches
from joinlib.errors import InputError
from joinlib.source.listing import ListedFile, listing
from joinlib.spec.model import StreamJoin

# Above these, batches are most likely not small (`direct.allowance`). A slice of a file is never divided between batches.
_LARGE_FILE = 1 << 22  # bytes of one file
_LARGE = 1 << 26  # bytes of all files


def much_waits(document: StreamJoin) -> bool:
    """Whether a job that has read nothing so far has large files to read."""
    if batches.begun(document.spec.checkpoint.folder / "spark") is not None:
        return False
    sizes = [file.size for file in _files(document)]
    return max(sizes, default=0) > _LARGE_FILE or sum(sizes) > _LARGE


def _files(document: StreamJoin) -> Iterator[ListedFile]:
    """Yield the files of all inputs but tables. One that cannot be listed has none: the run says what is wrong."""
    for given in document.spec.inputs.values():
        if given.files is not None and given.role != "table":
            try:
                yield from listing(given.files.path, "name", lambda _: False)
            except InputError:
                continue
