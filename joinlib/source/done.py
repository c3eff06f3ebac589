"""What becomes of a file that was read to its end: it stays, moves to a folder, or goes.

Law: a file goes only while it is still what was read. One that has come since under its name is to be read like any other.
"""

import os
from pathlib import Path
from typing import Literal

from joinlib.errors import InputError, SpecError
from joinlib.source.listing import Found, found_at, locate

Done = Literal["keep", "archive", "delete"]


def check(root: Path, archive: Path | None) -> None:
    """Refuses folders between which, or out of which, files cannot be moved. Makes the archive."""
    if not root.exists():  # whoever lists it has a word for that
        return
    if not root.is_dir():
        raise SpecError(f"{root} is one file, which files.done would end the input with; name its folder")
    if archive is not None:
        archive.mkdir(parents=True, exist_ok=True)
        if archive.stat().st_dev != root.stat().st_dev:
            raise SpecError(
                f"{archive} is on another disk than {root}, so files cannot be renamed into it; name a folder on the same one"
            )
    for folder in filter(None, (root, archive)):
        if not os.access(folder, os.W_OK):
            raise SpecError(
                f"{folder} cannot be written, so files that were read cannot go; allow it, or set files.done: keep"
            )


def put_away(root: Path, found: Found, archive: Path | None) -> Path:
    """Moves a file below `root` into the archive, deletes it where there is none; nothing if it is gone. The folder it was in.

    One that is in the archive under its name already keeps it: the new one is named after its time of modification too.
    """
    path = locate(root, found.path)
    try:
        if found_at(root, found.path) == found:
            if archive is None:
                path.unlink()
            else:
                path.rename(_free(archive / found.path, found))
    except FileNotFoundError:  # somebody else was first
        pass
    except OSError as error:
        raise InputError(
            f"{path}: was read, but cannot go: {error.strerror}; allow it, or set files.done: keep"
        ) from error
    return path.parent


def _free(target: Path, found: Found) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    return target.with_name(f"{found.mtime_ns}-{target.name}") if target.exists() else target
