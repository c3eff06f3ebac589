"""Publishes file output from the driver: whole batches only, each exactly once.

    .staging/batch=7/part-*        written by attempts, some of which have died; each has its own file
    .staging/ready-7-…/            just the files that the batch's receipts name, for one publisher
    batch=7/part-00000-MARK.csv    by one rename of the folder, which fails if it exists
    .swept-…/                      what was staged when the folder was claimed, being deleted

Any reader of the folder sees whole batches only, even while the job runs. A batch without rows leaves no
folder. With `synced`, output survives a power cut: a folder's entries are on the disk before it is renamed,
and its own name afterwards.

A folder that exists already is the same batch only if its mark is the same: file names hold a digest of
what the batch has read. After a return to an old copy of a checkpoint, batches are composed
differently; they would be mistaken for those that exist, or their rows would be published a second
time. Both cases are refused.
"""

import contextlib
import json
import re
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from joinlib import fault
from joinlib.errors import SpecError, StateError
from joinlib.files import sync, whole
from joinlib.sink.config import staging

_OWNER = "_streamjoin.json"
_MARKED = re.compile(r"part-\d+-([0-9a-f]{16})\b")


def claim(folder: Path, checkpoint_id: str, synced: bool = False) -> None:
    """Claim the folder for this checkpoint, and clear what dead attempts have staged.

    Raises:
        SpecError: The folder belongs to another checkpoint, or holds batches of unknown origin.
    """
    _make(folder, synced)
    owner = folder / _OWNER
    if not owner.exists():
        if any(folder.glob("batch=*")):
            raise SpecError(f"output folder {folder} holds batches of something else; use an empty folder")
        with whole(owner, hidden=True, synced=synced) as aside:
            aside.write_text(json.dumps({"checkpoint": checkpoint_id}))
    if owner_of(folder) != checkpoint_id:
        raise SpecError(
            f"output folder {folder} belongs to another checkpoint; use an empty folder, or the checkpoint"
            " that wrote it"
        )
    sweep(folder, ".staging")


def owner_of(folder: Path) -> str | None:
    """Return the id of the checkpoint that has claimed the folder; None if none has."""
    owner = folder / _OWNER
    return str(json.loads(owner.read_text())["checkpoint"]) if owner.exists() else None


def check_age(folder: Path, begun: int | None) -> None:
    """Check that the folder holds no batch later than `begun`, the latest one that the checkpoint knows.

    Raises:
        StateError: The checkpoint is older than the folder.
    """
    there = max([*numbers(folder), *numbers(waiting(folder))], default=-1)
    known = -1 if begun is None else begun
    if there > known:
        raise StateError(
            f"output folder {folder} holds batch {there} of this checkpoint, which is at {_at(begun)}: it is"
            f" an old copy; use the newest one, or take batch={known + 1} and all later batches out of the"
            " folder (the job makes their rows again, if its inputs still hold what they read), or use a new"
            " checkpoint and output folder"
        )


def publish(
    folder: Path, batch: int, files: Sequence[str], mark: str, synced: bool = False, hidden: bool = False
) -> None:
    """Make the staged files of a batch visible; do nothing if an earlier attempt has.

    Args:
        folder: The output folder.
        batch: The number of the batch.
        files: Names of the staged files that count.
        mark: A digest of what the batch has read.
        synced: Whether the result survives a power cut.
        hidden: Whether the batch waits for others instead (`gather`).
    """
    target, staged = (waiting(folder) if hidden else folder) / f"batch={batch}", staging(folder, batch)
    if files and not is_there(target, mark):
        ready = fresh(folder, batch)
        for number, name in enumerate(files):
            (staged / name).rename(ready / named(number, mark, name))
        fault.point("staged", batch)
        show(ready, target, mark, synced)
        fault.point("published", batch)
    discard(folder, batch)


def waiting(folder: Path) -> Path:
    """Return the folder where batches wait for others."""
    return folder / ".waiting"


def numbers(folder: Path) -> list[int]:
    """Return the numbers of the batches in the folder."""
    return [int(f.name[6:]) for f in folder.glob("batch=*") if f.name[6:].isdigit()]


def named(number: int, mark: str, like: str) -> str:
    """Return the name of a batch's file, with the suffix of `like`."""
    return f"part-{number:05d}-{mark}{Path(like).suffix}"


def marks(target: Path) -> set[str]:
    """Return the marks of the batch in a folder: one, or none if an older version has written it."""
    return {found[1] for f in target.iterdir() if (found := _MARKED.match(f.name))}


def is_there(target: Path, mark: str) -> bool:
    """Return whether the batch is in the folder `target`.

    Raises:
        StateError: The folder holds another batch, which has read something else.
    """
    if not target.exists():
        return False
    if marks(target) - {mark}:
        raise StateError(
            f"{target} is another batch than the one that this checkpoint has run: the checkpoint is an old"
            " copy, or another copy of it writes there too; use the newest one, or a new checkpoint and"
            " output folder"
        )
    return True


def fresh(folder: Path, batch: int) -> Path:
    """Make a new folder, not shared with others, to collect a batch in."""
    ready = folder / ".staging" / f"ready-{batch}-{uuid.uuid4().hex}"
    ready.mkdir(parents=True)
    return ready


def show(ready: Path, target: Path, mark: str, synced: bool) -> None:
    """Publish `ready` as `target` by one rename; if another driver was first, its folder stays."""
    if synced:
        sync([ready])
    if not target.parent.exists():  # the folder where batches wait
        target.parent.mkdir(exist_ok=True)
        if synced:
            sync([target.parent.parent])
    try:
        ready.rename(target)
    except OSError:  # not empty
        if not is_there(target, mark):
            raise
        shutil.rmtree(ready)
    if synced:
        sync([target.parent])


def discard(folder: Path, batch: int) -> None:
    """Delete what attempts of a batch have staged and nobody needs."""
    shutil.rmtree(staging(folder, batch), ignore_errors=True)


def sweep(folder: Path, name: str) -> None:
    """Delete a hidden folder, moving it away first.

    A process that still moves files out of it then fails, instead of moving only some of them.
    """
    with contextlib.suppress(FileNotFoundError):
        (folder / name).rename(folder / f".swept-{uuid.uuid4().hex}")
    for swept in folder.glob(".swept-*"):
        shutil.rmtree(swept, ignore_errors=True)


def _at(begun: int | None) -> str:
    return "its beginning" if begun is None else f"batch {begun}"


def _make(folder: Path, synced: bool) -> None:
    new = [f for f in (folder, *folder.parents) if not f.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    if synced:
        sync(f.parent for f in new)
