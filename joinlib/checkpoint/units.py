"""Lets a checkpoint go on with more or fewer units (`join.units`): its state is divided anew, once, before the job starts.

    new segments      beside the old ones; manifests in CHECKPOINT/dividing
    one rename        CHECKPOINT/divided: from here on the division is finished, whatever happens
    state/manifests   those of the new units replace all others, so no earlier batch can be restored
    streamjoin.json   says how many units there are
    swept             units that are no more; of the others, each deletes old segments in its next batch

Law: whenever the process or the machine stops, the job goes on with all of the old units or with all of the new ones.

A batch that was cut off has rows on their way to old units, and perhaps transactions: it is run again with these first
(`checkpoint.planned`), and the state is divided at the next start.
"""

import logging
import shutil
from pathlib import Path

from joinlib import fault
from joinlib.checkpoint import batches
from joinlib.checkpoint.history import History
from joinlib.checkpoint.identity import begun, refusals, set_units, units_of
from joinlib.checkpoint.timeline import TimelineKeeper
from joinlib.files import sync
from joinlib.model.stage import Pipeline
from joinlib.model.tuning import Tuning
from joinlib.state import epochs, manifests
from joinlib.state.location import local_folder, state_folder, unit_folder
from joinlib.state.manifest import decode
from joinlib.state.manifests import Manifests

log = logging.getLogger("joinlib.checkpoint")
_DIVIDING, _DIVIDED = "dividing", "divided"
_UNITS = "units"  # a file in both: how many there are now


def follow(checkpoint: Path, pipeline: Pipeline, tuning: Tuning) -> None:
    """Divide the state among the units of a plan that fits it in everything else. The caller holds the lock.

    Cost: a pass over the state, where the number differs.

    Raises:
        StateError: The newest batch is damaged.
    """
    if not begun(checkpoint):
        return
    finish(checkpoint, tuning.sync)
    was = units_of(checkpoint)
    if was == pipeline.units or refusals(checkpoint, pipeline):  # a plan that is refused changes nothing
        return
    History(checkpoint, len(pipeline.stateful)).check()
    if (batch := batches.done(checkpoint / "spark")) is None:
        return  # nothing is stored yet
    TimelineKeeper(checkpoint, len(pipeline.stateful)).keep(before=batch + 1)  # the manifests go
    divide(checkpoint, batch, pipeline, was, tuning)
    finish(checkpoint, tuning.sync)


def divide(checkpoint: Path, batch: int, pipeline: Pipeline, was: int, tuning: Tuning) -> None:
    """Write the state behind a batch as that of other units, aside, and declare it the one that counts.

    Raises:
        StateError: A manifest or a segment is missing or damaged.
    """
    from joinlib.checkpoint.divided import (
        Division,
        divided,
    )  # few starts need the kernels of state before Spark

    states, now = checkpoint / "state", pipeline.units
    aside, indexes = checkpoint / _DIVIDING, local_folder(checkpoint / _DIVIDING)
    log.info("the state behind batch %d is divided: join.units was %d and is %d", batch, was, now)
    epoch = epochs.take(states, tuning.sync)
    aside.mkdir()
    try:
        for number, stage in enumerate(pipeline.stateful):
            state = state_folder(states, number)
            old = {unit: decode(saved) for unit, saved in manifests.everything(states, batch, number).items()}
            new, fresh = {}, list[Path]()
            for unit in range(now) if old else ():
                made = divided(stage, old, Division(was, now), unit, state, indexes, tuning)
                new[unit] = made.encode()
                fresh += [unit_folder(state, unit) / name for name in made.files]
                fault.point("divided", unit)
            Manifests(aside, number, 0, 1, epoch, tuning.sync).write(batch, new, fresh)
    finally:
        shutil.rmtree(indexes, ignore_errors=True)
    (aside / _UNITS).write_text(f"{now}\n")
    epochs.check(states, epoch)
    if tuning.sync:
        sync([aside / _UNITS, aside])
    aside.rename(checkpoint / _DIVIDED)
    if tuning.sync:
        sync([checkpoint])


def finish(checkpoint: Path, synced: bool) -> None:
    """Finish a division that counts; forget one that does not. The caller holds the lock."""
    states, done = checkpoint / "state", checkpoint / _DIVIDED
    if (checkpoint / _DIVIDING).exists():
        shutil.rmtree(checkpoint / _DIVIDING)
        _sweep(states, units_of(checkpoint))
    if not done.exists():
        return
    units = int((done / _UNITS).read_text())
    for batch in manifests.kept_batches(done):
        for old in manifests.kept_batches(states):
            shutil.rmtree(manifests.folder(states, old))
        fault.point("replacing", batch)
        manifests.folder(done, batch).rename(manifests.folder(states, batch))
        if synced:
            sync([states / "manifests"])
        fault.point("replaced", batch)
    set_units(checkpoint, units, synced)
    _sweep(states, units)
    shutil.rmtree(done)


def _sweep(states: Path, units: int) -> None:
    """Delete the segments of units that are none."""
    for folder in states.glob("[0-9]*/[0-9]*"):
        if int(folder.name) >= units:
            shutil.rmtree(folder)
