"""Lists the files of a folder that were not seen before.

Names that begin with a dot or an underscore, empty files and sub-folders are skipped; but sub-folders
named like `batch=3` are entered, so that the output of one job can be the input of another. A file that
vanishes during the listing is ignored. Cost: a look at each name, and two of `stat` for each file that
`is_known` does not hold.

Law: nothing outside of the folder is read, moved or deleted, whatever links somebody has put there: a job may do more
than those who write its input. Links to files within it are followed, as in a volume of a ConfigMap.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from joinlib.errors import InputError

if TYPE_CHECKING:
    from joinlib.spec.inputs import Order


@dataclass(frozen=True)
class ListedFile:
    """A file in the folder."""

    path: str  # relative to the folder
    size: int
    mtime_ns: int


def listing(root: Path, order: "Order", is_known: Callable[[str], bool]) -> list[ListedFile]:
    """Return the files below `root` for which `is_known(relative path)` is false, in order.

    `root` may itself be a file.

    Raises:
        InputError: `root` does not exist or cannot be listed, or a link leads out of it.
    """
    found = [f for path in _paths(root) if not is_known(path) and (f := file_at(root, path))]
    return sorted(found, key=lambda f: (f.mtime_ns if order == "modified" else 0, f.path))


def locate(root: Path, path: str) -> Path:
    """Return the path of a listed file. If the input is a single file, its relative path is empty."""
    return root / path if path else root


def _paths(root: Path) -> Iterator[str]:
    if root.is_file():
        yield ""
        return
    try:
        yield from _below(root, "")
    except FileNotFoundError as e:
        raise InputError(f"{root}: there is no such folder; create it, or correct the input's path") from e
    except OSError as e:
        raise InputError(f"{root}: cannot be listed: {e.strerror}") from e


def _below(folder: Path, prefix: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name[0] in "._":
                continue
            if not entry.is_dir():
                yield prefix + entry.name
            elif "=" in entry.name[1:]:
                _check_links(folder, entry.name + "/")
                yield from _entered(Path(entry.path), f"{prefix}{entry.name}/")


def _entered(folder: Path, prefix: str) -> Iterator[str]:
    try:
        yield from _below(folder, prefix)
    except FileNotFoundError:  # removed since its name was read
        return


def file_at(root: Path, path: str) -> ListedFile | None:
    """Return the file as it is now; None if it is gone or empty.

    Raises:
        InputError: A link leads out of the folder.
    """
    try:
        _check_links(root, path)
        stat = locate(root, path).stat()
    except FileNotFoundError:
        return None
    return ListedFile(path, stat.st_size, stat.st_mtime_ns) if stat.st_size else None


def _check_links(root: Path, path: str) -> None:
    """Raise if a part of a path below `root` is a link, unless it is the file itself and leads to one below `root`."""
    *folders, name = path.split("/")
    at = root
    for folder in folders:
        at /= folder
        if at.is_symlink():
            raise InputError(f"{at}: links to a folder, which is not followed; put the folder itself there")
    if name and (at := at / name).is_symlink() and not at.resolve().is_relative_to(root.resolve()):
        raise InputError(f"{at}: links to a file elsewhere, which is not followed; put the file itself there")
