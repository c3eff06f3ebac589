"""Locations of the state: segments in the checkpoint, indexes in a folder of the executor's machine."""

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from joinlib.deploy import Variable
from joinlib.errors import StateError

_TAIL = 40  # trailing characters of the path in the name of its index folder; a hash makes it unique


@dataclass(frozen=True)
class Location:
    """The folders of a side: its unit's segments in the checkpoint, and its indexes on the executor.

    skip_bits: top bits that are equal in the hashes of all rows of the unit.
    """

    segments: Path
    indexes: Path
    skip_bits: int
    stagger: int = 0  # differs between sides and units


def state_folder(states: Path, stage: int) -> Path:
    """Return the folder of a stage's segments."""
    return states / str(stage)


def unit_folder(state: Path, unit: int) -> Path:
    """Return the folder of a unit's segments."""
    return state / f"{unit:05d}"


def census_folder(states: Path, stage: int = 0) -> Path:
    """Return where the statistics of a batch are written: of the keys by which rows go to a stage."""
    census = states.parent / "sources" / "census"
    return census / f"stage{stage}" if stage else census


@cache
def local_folder(state: Path) -> Path:
    """Return the folder of a stage's indexes on this machine.

    It is a cache, private to the user and to the current boot of the machine.

    Raises:
        StateError: the folder belongs to another user, or others may write there.
    """
    root = Path(os.environ.get(Variable.LOCAL_DIR) or tempfile.gettempdir()) / f"streamjoin-{os.getuid()}"
    with suppress(FileExistsError):
        root.mkdir(mode=0o700, parents=True)
    _check_own(root)
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read(8)
    path = str(state.resolve())
    digest = hashlib.blake2b(os.fsencode(path), digest_size=8).hexdigest()
    return root / f"{boot}-{digest}{path.replace('/', '-')[-_TAIL:]}"


def _check_own(root: Path) -> None:
    """Refuse what somebody else has put where the folder should be: whoever writes there changes what is joined."""
    found = root.lstat()  # not through a link, which may lead to a folder of this user's own
    if found.st_uid != os.getuid():
        why = "belongs to another user"
    elif not stat.S_ISDIR(found.st_mode):
        why = "is no folder"
    elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        why = "may be written by others"
    else:
        return
    raise StateError(f"{root} {why}; remove it, or set STREAMJOIN_LOCAL_DIR to a folder of your own")
