"""Decides which run owns the checkpoint: each run takes the next number, the *epoch*.

    STATES/epochs/00000007      the epoch of the latest run: an empty file, created exclusively

Law: no two runs have the same epoch, even if both believe that they own the checkpoint. Tasks and drivers
of an older run stop at the next `check`. What they still write does not count: their manifests are named by
their epoch, and Spark's logs do not accept a second file of the same name.
"""

import contextlib
from pathlib import Path

from joinlib.errors import NotReady
from joinlib.files import sync

NONE = 0  # epoch of runs that the command line did not start; it is never checked


def take(states: Path, synced: bool) -> int:
    """Return the next epoch and delete older ones.

    synced: make the epoch durable, so that no run takes it again after a power failure.
    """
    folder = _folder(states)
    folder.mkdir(parents=True, exist_ok=True)
    epoch = _take_next(folder)
    while epoch < _latest(folder):  # another run came between; it may have deleted a file of this number
        epoch = _take_next(folder)
    if synced:
        sync([folder, states, states.parent])
    for file in folder.iterdir():
        if int(file.name) < epoch:
            file.unlink(missing_ok=True)
    return epoch


def check(states: Path, epoch: int) -> None:
    """Return only if no later run has begun; the epoch NONE is never checked.

    Raises:
        NotReady: a later run has taken over the checkpoint.
    """
    if epoch != NONE and (latest := _latest(_folder(states))) > epoch:
        raise NotReady(
            f"checkpoint {states.parent}: another run has taken over (epoch {latest}, this one has {epoch});"
            " this one ends"
        )


def _take_next(folder: Path) -> int:
    """Create a file for the number after the latest epoch, and return the number."""
    while True:
        epoch = _latest(folder) + 1
        with contextlib.suppress(FileExistsError):
            (folder / f"{epoch:08d}").touch(exist_ok=False)
            return epoch


def _latest(folder: Path) -> int:
    return max((int(file.name) for file in folder.iterdir()), default=NONE)


def _folder(states: Path) -> Path:
    return states / "epochs"
