"""Handles files that were read to their end: they stay, move to an archive, or are deleted.

Law: a file is moved or deleted only while it is still the one that was read. A new file of the same
name is read like any other.
"""

import os
from pathlib import Path

from joinlib.errors import InputError, SpecError
from joinlib.source.listing import ListedFile, file_at, locate


def check(root: Path, archive: Path | None) -> None:
    """Check that files can be moved from `root` to `archive`, or deleted; make the archive.

    Raises:
        SpecError: They cannot.
    """
    if not root.exists():  # listing it raises the better error
        return
    if not root.is_dir():
        raise SpecError(f"{root} is a single file, so files.done would leave no input; name its folder")
    if archive is not None:
        archive.mkdir(parents=True, exist_ok=True)
        if archive.stat().st_dev != root.stat().st_dev:
            raise SpecError(
                f"{archive} is on another disk than {root}, so files cannot be renamed into it; name a"
                " folder on the same one"
            )
    for folder in filter(None, (root, archive)):
        if not os.access(folder, os.W_OK):
            raise SpecError(
                f"{folder} cannot be written, so files that were read cannot be put away; allow it, or set"
                " files.done: keep"
            )


def put_away(root: Path, found: ListedFile, archive: Path | None) -> Path:
    """Move a file below `root` into the archive, or delete it if there is none; do nothing if it is gone.

    Returns the folder that it was in. If the archive has a file of that name already, the new one's name also
    gets its time of modification.

    Raises:
        InputError: The file cannot be moved or deleted.
    """
    path = locate(root, found.path)
    try:
        if file_at(root, found.path) == found:
            if archive is None:
                path.unlink()
            else:
                path.rename(_free(archive / found.path, found))
    except FileNotFoundError:  # another process was first
        pass
    except OSError as error:
        raise InputError(
            f"{path}: was read, but cannot be put away: {error.strerror}; allow it, or set files.done: keep"
        ) from error
    return path.parent


def _free(target: Path, found: ListedFile) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    return target.with_name(f"{found.mtime_ns}-{target.name}") if target.exists() else target
