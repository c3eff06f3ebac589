"""The driver's end of a file output: whole batches only, each exactly once.

    .staging/batch=7/part-*        written by attempts, of which some died; each has its own on the disk
    .staging/ready-7-…/            just the files that the batch's receipts name; no two publishers share one
    batch=7/                       by one rename, which fails if it exists
    .swept-…/                      what was staged when the folder was claimed, on its way out

Any reader of the folder sees whole batches only, also while the job runs. A batch without rows leaves no folder. What is
`synced` survives a power cut: a folder's names are on the disk before it is renamed, and its own name after.
"""

import contextlib
import json
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from joinlib import fault
from joinlib.errors import SpecError
from joinlib.files import sync, whole
from joinlib.spark.task import staging

_OWNER = "_streamjoin.json"


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


def publish(folder: Path, batch: int, files: Sequence[str], synced: bool = False) -> None:
    """Makes the staged files of a batch visible; does nothing if an earlier attempt has."""
    target, staged, ready = (
        folder / f"batch={batch}",
        staging(folder, batch),
        folder / ".staging" / f"ready-{batch}-{uuid.uuid4().hex}",
    )
    if files and not target.exists():
        ready.mkdir(parents=True)
        for name in files:
            (staged / name).rename(ready / name)
        if synced:
            sync([ready])
        fault.point("staged", batch)
        try:
            ready.rename(target)
        except OSError:  # not empty: another driver was first, with the same rows
            if not target.exists():
                raise
            shutil.rmtree(ready)
        if synced:
            sync([folder])
        fault.point("published", batch)
    shutil.rmtree(staged, ignore_errors=True)


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
