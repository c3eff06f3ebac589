"""The driver's end of a file output: whole batches only, each exactly once.

    .staging/batch=7/part-*        written by attempts, of which some died
    .staging/ready-7-…/            just the files that the batch's receipts name; no two publishers share one
    batch=7/                       by one rename, which fails if it exists

Any reader of the folder sees whole batches only, also while the job runs. A batch without rows leaves no folder.
"""

import json
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from joinlib import fault
from joinlib.errors import SpecError
from joinlib.spark.task import staging

_OWNER = "_streamjoin.json"


def claim(folder: Path, checkpoint_id: str) -> None:
    """Takes the folder for this checkpoint and clears what attempts that died have staged."""
    folder.mkdir(parents=True, exist_ok=True)
    owner = folder / _OWNER
    if not owner.exists():
        if any(folder.glob("batch=*")):
            raise SpecError(f"output folder {folder} holds batches of something else; use an empty folder")
        owner.write_text(json.dumps({"checkpoint": checkpoint_id}))
    if json.loads(owner.read_text())["checkpoint"] != checkpoint_id:
        raise SpecError(
            f"output folder {folder} belongs to another checkpoint; use an empty folder, or the checkpoint that wrote it"
        )
    shutil.rmtree(folder / ".staging", ignore_errors=True)


def publish(folder: Path, batch: int, files: Sequence[str]) -> None:
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
        fault.point("staged", batch)
        try:
            ready.rename(target)
        except OSError:  # not empty: another driver was first, with the same rows
            if not target.exists():
                raise
            shutil.rmtree(ready)
        fault.point("published", batch)
    shutil.rmtree(staged, ignore_errors=True)
