"""Which run has the checkpoint? Each takes the next number, the *epoch*, and what an older one still does is told by its own.

    STATES/epochs/00000007      the epoch of the latest run: an empty file, made by whoever could make it

Law: no two runs have one epoch, even if both believe that the checkpoint is theirs alone. Tasks and drivers of an older run
stop where they look (`check`); what they write all the same does not count: their manifests are named by their epoch, and
Spark's logs take no second file of a name.
"""

import contextlib
from pathlib import Path

from joinlib.errors import NotReady
from joinlib.files import sync

NONE = 0  # of what is no run of the command line: nobody looks after it


def take(states: Path, synced: bool) -> int:
    """The next epoch. `synced`: no run gets it again, not after a power cut either."""
    folder = _folder(states)
    folder.mkdir(parents=True, exist_ok=True)
    epoch = _made(folder)
    while epoch < _latest(folder):  # of a run that came between, and may have swept one that had this number
        epoch = _made(folder)
    if synced:
        sync([folder, states, states.parent])
    for file in folder.iterdir():
        if int(file.name) < epoch:
            file.unlink(missing_ok=True)
    return epoch


def check(states: Path, epoch: int) -> None:
    """Returns only if no later run has begun."""
    if epoch != NONE and (latest := _latest(_folder(states))) > epoch:
        raise NotReady(
            f"checkpoint {states.parent}: another run has taken over (its {latest}th, this is the {epoch}th); this one ends"
        )


def _made(folder: Path) -> int:
    """The number behind the latest, as a file that was not there."""
    while True:
        epoch = _latest(folder) + 1
        with contextlib.suppress(FileExistsError):
            (folder / f"{epoch:08d}").touch(exist_ok=False)
            return epoch


def _latest(folder: Path) -> int:
    return max((int(file.name) for file in folder.iterdir()), default=NONE)


def _folder(states: Path) -> Path:
    return states / "epochs"
