"""Begins a second checkpoint at a batch of the first, by references: no stored row is copied.

    state/STAGE/UNIT/*.arrow, tables/T/V/*                      hard links to what the batch's manifests and offset name
    state/manifests/N, spark/offsets/N-1 and N, spark/commits/N,
    sources/NAME.jsonl, NAME.schemas, partitions                copies, which are small
    timeline/*                                                  hard links, of the last two files copies up to the batch
    streamjoin.json, spark/metadata                             identities of its own

Law: whatever one job does from then on, the other does not see. Segments and versions never change, and who deletes
one deletes its own name for it. The first job may run meanwhile: what a batch names is kept for some batches after it,
and if it is gone all the same, the next batch is taken. The new folder appears by one rename.

Cost: O(files) + O(bytes of manifests and logs).
"""

import errno
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from joinlib.checkpoint import batches, timeline
from joinlib.checkpoint.history import History
from joinlib.checkpoint.identity import identity_of, inherit, name_of, set_units, units_of
from joinlib.checkpoint.timeline import TimelineKeeper
from joinlib.errors import WAY_BACK, NotReady, SpecError, StateError
from joinlib.files import sync
from joinlib.model.stage import Pipeline
from joinlib.state import manifests
from joinlib.state.location import state_folder, unit_folder
from joinlib.state.manifest import decode

_TRIES = 5
Ends = Callable[[int], Mapping[str, Mapping[str, int]]]


def fork(
    history: History, target: Path, name: str, pipeline: Pipeline, ends: Ends, *, synced: bool = False
) -> int:
    """Begin the checkpoint `target` at the newest batch of another one that is done; return the batch.

    Args:
        history: The other checkpoint.
        target: A folder that is not there, or is empty.
        name: The name of the new job.
        pipeline: Its plan, which can go on from that state.
        ends: Says where the other job's outputs end behind a batch.
        synced: Whether the new checkpoint survives a power cut.

    Raises:
        SpecError: There is no batch that is done, or the folder is in use, or on another disk.
        StateError: The other checkpoint is damaged.
        NotReady: Its job goes on too fast.
    """
    for _ in range(_TRIES):
        done = history.batches()
        if not done:
            raise SpecError(
                f"checkpoint {history.checkpoint} has no batch that is done, so there is no state to fork; run the"
                " new spec by itself"
            )
        try:
            _forked(history, done[0], target, name, pipeline, ends, synced)
        except (FileNotFoundError, StateError) as error:
            if history.batches()[:1] == done[:1]:  # the job has not gone on: something is damaged
                if isinstance(error, FileNotFoundError):
                    raise StateError(f"{error.filename} is missing; {WAY_BACK}") from error
                raise
        else:
            return done[0]
    raise NotReady(
        f"checkpoint {history.checkpoint} goes on faster than it can be forked; stop the job, and try again"
    )


def _forked(
    history: History, batch: int, target: Path, name: str, pipeline: Pipeline, ends: Ends, synced: bool
) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
    try:
        for source in _referenced(history, batch):
            _link(source, aside / source.relative_to(history.checkpoint))
        for source in _copied(history, batch):
            _copy(source, aside / source.relative_to(history.checkpoint))
        _remember(history, batch, aside)
        batches.identify(aside / "spark", synced=False)  # all is synced below
        read = batches.offset(aside / "spark", batch)["inputs"]
        first = history.checkpoint
        known = {"id": identity_of(first), "name": name_of(first)}
        origin = {**known, "batch": batch, "inputs": read, "ends": ends(batch)}
        inherit(aside, name, pipeline, origin, synced)
        set_units(aside, units_of(history.checkpoint), synced)  # its first run divides them, if it has others
        if synced:
            sync([aside, *aside.rglob("*")])  # segments too: the other job may not sync its own
        _appear(aside, target, synced)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _referenced(history: History, batch: int) -> Iterator[Path]:
    """Yield the files that both checkpoints have from now on."""
    for stage in range(history.operators):
        for unit, saved in manifests.everything(history.states, batch, stage).items():
            folder = unit_folder(state_folder(history.states, stage), unit)
            yield from (folder / name for name in sorted(decode(saved).files))
    for table, version in batches.offset(history.spark, batch).get("tables", {}).items():
        folder = history.checkpoint / "tables" / table / f"{version:08d}"
        yield from sorted(f for f in folder.rglob("*") if f.is_file())


def _copied(history: History, batch: int) -> Iterator[Path]:
    """Yield the files of which each checkpoint has its own."""
    batches.check_done(history.spark, batch)
    yield from batches.logged(history.spark, batch)
    yield from manifests.folder(history.states, batch).glob("[0-9]*")
    yield from (history.checkpoint / "sources").glob("*.jsonl")
    yield from (history.checkpoint / "sources").glob("*.schemas/*.json")
    yield from history.checkpoint.glob(batches.PARTITIONS)


def _remember(history: History, batch: int, aside: Path) -> None:
    """Give the new checkpoint what is known of the batches up to its own."""
    files = timeline.files(history.checkpoint)
    for number, file in enumerate(files):
        put = _link if number < len(files) - 2 else _copy
        put(file, aside / file.relative_to(history.checkpoint))
    TimelineKeeper(history.checkpoint, history.operators, into=aside).keep(before=batch + 1)


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno == errno.EPERM:
            raise SpecError(
                f"{source.parent}: this user may not share the stored rows; fork as the user to whom they belong, on a"
                " file system that has hard links"
            ) from error
        if error.errno != errno.EXDEV:
            raise
        raise SpecError(
            f"checkpoint.path: {target.parent} is on another disk than {source.parent}, where stored rows cannot be"
            " shared; name a folder on the same disk"
        ) from error


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _appear(aside: Path, target: Path, synced: bool) -> None:
    try:
        aside.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        raise SpecError(f"checkpoint.path: {target} is in use; name a new folder for the fork") from error
    if synced:
        sync([target.parent])
