"""Locations of the state: segments in the checkpoint, indexes in a folder of the executor's machine."""

import hashlib
import os
import tempfile
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


@cache
def local_folder(state: Path) -> Path:
    """Return the folder of a stage's indexes on this machine.

    It is a cache, private to the user and to the current boot of the machine.

    Raises:
        StateError: the folder belongs to another user.
    """
    root = Path(os.environ.get(Variable.LOCAL_DIR) or tempfile.gettempdir()) / f"streamjoin-{os.getuid()}"
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if root.stat().st_uid != os.getuid():
        raise StateError(f"{root} belongs to another user; set STREAMJOIN_LOCAL_DIR to a folder of your own")
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read(8)
    path = str(state.resolve())
    digest = hashlib.blake2b(os.fsencode(path), digest_size=8).hexdigest()
    return root / f"{boot}-{digest}{path.replace('/', '-')[-_TAIL:]}"
