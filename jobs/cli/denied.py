"""Folders and files that this user may not use, in words: which field names them, and what to do."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jobs.cli.summary import near
from joinlib.errors import SpecError
from joinlib.spec.model import StreamJoin
from joinlib.spec.output import field_of

_NO_RIGHT = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def telling(document: StreamJoin) -> Iterator[None]:
    """Raise the mistake instead of an error that names a file, in a block that does something with a job.

    Raises:
        SpecError: A file cannot be read or written.
    """
    try:
        yield
    except OSError as error:
        if (mistake := denied(error, document)) is None:
            raise
        raise mistake from error


def denied(error: OSError, document: StreamJoin | None = None) -> SpecError | None:
    """Return a mistake of people for an error that names a file; None if it names none.

    With a spec, a folder that the job has no right to write is told by its field.
    """
    if (file := _file(error)) is None:
        return None
    for field, folder in _written(document) if document and error.errno in _NO_RIGHT else ():
        if _meet(file, folder):
            return SpecError(
                f"{field}: {near(folder)} cannot be written: {_reason(error)}; give this user the right, or name another"
                " folder"
            )
    return SpecError(f"{near(file)}: {_reason(error)}")


def _meet(file: Path, folder: Path) -> bool:
    """Return whether a file is in a folder, or above it, or in what becomes the folder once it is whole."""
    whole = [
        p
        for p in (file, *file.parents)
        if p.parent == folder.parent and p.name.startswith(f".{folder.name}.")
    ]
    return bool(whole) or file == folder or folder in file.parents or file in folder.parents


def _file(error: OSError) -> Path | None:
    """Return the file that an error is about; of two, the one that would have been written."""
    found = error.filename2 or error.filename
    return Path(found) if isinstance(found, str) else None


def _reason(error: OSError) -> str:
    if isinstance(error, FileExistsError):
        return "is in the way of a folder; name another one"
    return error.strerror or type(error).__name__


def _written(document: StreamJoin) -> Iterator[tuple[str, Path]]:
    """Yield the folders that a job writes, by their fields."""
    spec = document.spec
    yield "spec.checkpoint.path", spec.checkpoint.folder
    for name, output in spec.results.items():
        if output.files:
            yield f"spec.{field_of(name)}.files.path", Path(output.files.path)
    if spec.dead_letters:
        yield "spec.deadLetters.path", Path(spec.dead_letters.path)
