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
    sweep(folder, ".staging")


def check_age(folder: Path, begun: int | None) -> None:
    """Refuses a checkpoint that is older than the folder. begun: the latest batch that it knows."""
    there = max([*numbers(folder), *numbers(waiting(folder))], default=-1)
    known = -1 if begun is None else begun
    if there > known:
        raise StateError(
            f"output folder {folder} holds batch {there} of this checkpoint, which is at {_at(begun)}: it is an old copy;"
            f" use the newest one, or take batch={known + 1} and all later batches out of the folder (the job makes their rows"
            " anew, if its inputs still hold what they read), or use a new checkpoint and output folder"
        )


def publish(
    folder: Path, batch: int, files: Sequence[str], mark: str, synced: bool = False, hidden: bool = False
) -> None:
    """Makes the staged files of a batch visible; does nothing if an earlier attempt has.

    mark: says what the batch has read. hidden: it only waits for others, see `gather`.
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
    """Where batches wait for others."""
    return folder / ".waiting"


def numbers(folder: Path) -> list[int]:
    """Of the batches there."""
    return [int(f.name[6:]) for f in folder.glob("batch=*") if f.name[6:].isdigit()]


def named(number: int, mark: str, like: str) -> str:
    """A file of a batch, in the format of another one."""
    return f"part-{number:05d}-{mark}{Path(like).suffix}"


def marks(target: Path) -> set[str]:
    """Of the batch in a folder: one, or none if an older version has written it."""
    return {found[1] for f in target.iterdir() if (found := _MARKED.match(f.name))}


def is_there(target: Path, mark: str) -> bool:
    """Whether a batch is. Raises if it is another one."""
    if not target.exists():
        return False
    if marks(target) - {mark}:
        raise StateError(
            f"{target} is another batch than the one that this checkpoint has run: the checkpoint is an old copy, or another"
            " copy of it writes there too; use the newest one, or a new checkpoint and output folder"
        )
    return True


def fresh(folder: Path, batch: int) -> Path:
    """A new folder of its own to gather a batch in."""
    ready = folder / ".staging" / f"ready-{batch}-{uuid.uuid4().hex}"
    ready.mkdir(parents=True)
    return ready


def show(ready: Path, target: Path, mark: str, synced: bool) -> None:
    """By one rename; if another driver was first, what it has stays."""
    if synced:
        sync([ready])
    target.parent.mkdir(exist_ok=True)
    try:
        ready.rename(target)
    except OSError:  # not empty
        if not is_there(target, mark):
            raise
        shutil.rmtree(ready)
    if synced:
        sync([target.parent])


def discard(folder: Path, batch: int) -> None:
    """What attempts of a batch have staged and nobody needs."""
    shutil.rmtree(staging(folder, batch), ignore_errors=True)


def sweep(folder: Path, name: str) -> None:
    """Removes a hidden folder of it, out of the way first: who moves something of it meanwhile fails, and moves no part."""
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
