"""The driver's end of a file output: whole batches only, each exactly once.

    .staging/batch=7/part-*        written by attempts, of which some died; each has its own on the disk
    .staging/ready-7-…/            just the files that the batch's receipts name; no two publishers share one
    batch=7/part-00000-MARK.csv    by one rename of the folder, which fails if it exists
    .swept-…/                      what was staged when the folder was claimed, on its way out

Any reader of the folder sees whole batches only, also while the job runs. A batch without rows leaves no folder. What is
`synced` survives a power cut: a folder's names are on the disk before it is renamed, and its own name after.

A batch that is there already is the same batch if its mark is: files' names say what the batch has read. Those after an old
copy of a checkpoint are composed anew, and would be taken for what is there, or come again beside it: both are refused.
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
from joinlib.spark.task import staging

_OWNER = "_streamjoin.json"
_MARKED = re.compile(r"part-\d+-([0-9a-f]{16})\b")


def claim(folder: Path, checkpoint_id: str, synced: bool = False) -> None:
    """Takes the folder for this checkpoint and clears what attempts that died have staged."""
    _make(folder, synced)
    owner = folder / _OWNER
    if not owner.exists():
        if any(folder.glob("batch=*")):
            raise SpecError(f"output folder {folder} holds batches of something else; use an empty folder")
        with whole(owner, hidden=True, synced=synced) as aside:
            aside.write_text(json.dumps({"checkpoint": checkpoint_id}))
    if json.loads(owner.read_text())["checkpoint"] != checkpoint_id:
        raise SpecError(
            f"output folder {folder} belongs to another checkpoint; use an empty folder, or the checkpoint that wrote it"
        )
    _sweep(folder)


def check_age(folder: Path, begun: int | None) -> None:
    """Refuses a checkpoint that is older than the folder. begun: the latest batch that it knows."""
    there = max((int(f.name[6:]) for f in folder.glob("batch=*") if f.name[6:].isdigit()), default=-1)
    known = -1 if begun is None else begun
    if there > known:
        raise StateError(
            f"output folder {folder} holds batch {there} of this checkpoint, which is at {_at(begun)}: it is an old copy;"
            f" use the newest one, or take batch={known + 1} and all later batches out of the folder (the job makes their rows"
            " anew, if its inputs still hold what they read), or use a new checkpoint and output folder"
        )


def publish(folder: Path, batch: int, files: Sequence[str], mark: str, synced: bool = False) -> None:
    """Makes the staged files of a batch visible; does nothing if an earlier attempt has. mark: says what the batch has read."""
    target, staged, ready = (
        folder / f"batch={batch}",
        staging(folder, batch),
        folder / ".staging" / f"ready-{batch}-{uuid.uuid4().hex}",
    )
    if files and not _is_there(target, mark):
        ready.mkdir(parents=True)
        for number, name in enumerate(files):
            (staged / name).rename(ready / f"part-{number:05d}-{mark}{Path(name).suffix}")
        if synced:
            sync([ready])
        fault.point("staged", batch)
        try:
            ready.rename(target)
        except OSError:  # not empty: another driver was first
            if not _is_there(target, mark):
                raise
            shutil.rmtree(ready)
        if synced:
            sync([folder])
        fault.point("published", batch)
    shutil.rmtree(staged, ignore_errors=True)


def _is_there(target: Path, mark: str) -> bool:
    """Whether a batch is. Raises if it is another one; versions before marks have left names without."""
    if not target.exists():
        return False
    marks = {found[1] for f in target.iterdir() if (found := _MARKED.match(f.name))}
    if marks - {mark}:
        raise StateError(
            f"{target} is another batch than the one that this checkpoint has run: the checkpoint is an old copy, or another"
            " copy of it writes there too; use the newest one, or a new checkpoint and output folder"
        )
    return True


def _at(begun: int | None) -> str:
    return "its beginning" if begun is None else f"batch {begun}"


def _make(folder: Path, synced: bool) -> None:
    new = [f for f in (folder, *folder.parents) if not f.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    if synced:
        sync(f.parent for f in new)


def _sweep(folder: Path) -> None:
    """Removes what is staged, out of the way first: who is about to publish some of it fails, and does not publish a part."""
    with contextlib.suppress(FileNotFoundError):
        (folder / ".staging").rename(folder / f".swept-{uuid.uuid4().hex}")
    for swept in folder.glob(".swept-*"):
        shutil.rmtree(swept, ignore_errors=True)
