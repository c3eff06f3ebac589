"""`streamjoin restore`: back to an earlier batch whose state and results are intact.

    without --to-batch   list the batches to which the job can go back; nothing is changed
    with                 drop all after that batch, including results; the next run reads its input again

Files of results are withdrawn. Those in a topic cannot be: its readers have seen the rows,
and would see them twice.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from jobs.cli import words
from jobs.cli.denied import telling
from jobs.cli.summary import near
from joinlib.checkpoint import batches
from joinlib.checkpoint.history import History, results
from joinlib.checkpoint.identity import identity_of
from joinlib.checkpoint.lock import Lock, held_off, without_jvm
from joinlib.checkpoint.planned import plan_of
from joinlib.errors import SpecError, StateError
from joinlib.sink.publish import numbers, owner_of
from joinlib.spec.model import StreamJoin
from joinlib.spec.output import Output, field_of
from joinlib.state.location import local_folder, state_folder
from joinlib.why.progress import check_query


def restore(document: StreamJoin, batch: int | None) -> str:
    """Go back to `batch`, or list the batches if it is None; return several lines for people.

    Raises:
        StreamJoinError: It cannot go back to `batch`; then nothing was changed.
    """
    checkpoint = document.spec.checkpoint.folder
    if not (checkpoint / "streamjoin.json").exists():
        raise SpecError(f"{near(checkpoint)} holds no checkpoint: nothing to go back to")
    pipeline = plan_of(document)
    check_query(checkpoint, pipeline)
    history = History(checkpoint, len(pipeline.stateful))
    if batch is None:
        with held_off(checkpoint):
            return _listed(history, document)
    with telling(document):
        return _alone(history, document, batch)


def _alone(history: History, document: StreamJoin, batch: int) -> str:
    """Go back while no run is alive."""
    lock = Lock(history.checkpoint)
    try:
        without_jvm(history.checkpoint, patience_s=0)
        return _back(history, document, batch)
    finally:
        lock.release()


def _listed(history: History, document: StreamJoin) -> str:
    return "\n".join(_lines(history, _refused(document)))


def _lines(history: History, refused: str) -> Iterator[str]:
    known: set[str] = set()
    whole = []
    for batch in history.batches():
        damage = history.damage(batch, known)
        if not damage:
            whole.append(batch)
        yield f"batch {batch:<6} {damage.partition(';')[0] or 'whole'}"
    if refused:
        yield refused
    elif whole:
        yield f"the newest whole batch: `streamjoin restore FILE --to-batch {whole[0]}` goes back to it"
    else:
        yield "no batch is whole; restore the checkpoint and its output from a copy, or start with new ones"


def _back(history: History, document: StreamJoin, batch: int) -> str:
    if refused := _refused(document):
        raise SpecError(refused)
    going = history.going_back()
    there = [b for b in history.batches() if going is None or b <= going]
    if batch not in there:
        found = ", ".join(map(str, there)) or "none"
        raise SpecError(f"--to-batch: batch {batch} is not kept, or not done; there are {found}")
    for name, output in document.spec.results.items():
        if wrong := _elsewhere(history, name, output, batch) or _torn(output, batch):
            raise SpecError(wrong)
    if damage := history.damage(batch, set()):
        raise StateError(f"batch {batch} is not whole: {damage}")
    outputs = [Path(o.files.path) for o in document.spec.results.values() if o.files]
    withdrawn = len({folder.name for output in outputs for folder in results(output, batch)})
    latest = batches.begun(history.spark)
    history.forget(batch, outputs)
    for stage in range(history.operators):
        shutil.rmtree(local_folder(state_folder(history.states, stage)), ignore_errors=True)
    return (
        f"{near(history.checkpoint)} is at batch {batch}; the latest begun was {latest}, and results of"
        f" {words.counted(withdrawn, 'batches')} were withdrawn. The next run reads on from there"
    )


def _elsewhere(history: History, name: str, output: Output, batch: int) -> str:
    """Return why later results are not in the folder that the spec names; empty if they can only be there.

    They would stay where they are, and their rows would come out a second time.
    """
    if output.files is None or batch == batches.begun(history.spark):
        return ""
    folder = Path(output.files.path)
    owner = owner_of(folder)
    if owner == identity_of(history.checkpoint):
        return ""
    if not folder.exists():
        why = "is missing"
    else:
        why = "belongs to no checkpoint" if owner is None else "belongs to another checkpoint"
    return (
        f"spec.{field_of(name)}.files.path: {near(folder)} {why}, so the results of {near(history.checkpoint)} behind batch"
        f" {batch} cannot be withdrawn; name the folder that has them, or start with a new checkpoint and output"
    )


def _torn(output: Output, batch: int) -> str:
    """Return why a folder of later results cannot be withdrawn; empty if it can."""
    files = output.files
    if files is None or files.compact is None:
        return ""
    seen = numbers(Path(files.path))
    if batch in seen or batch >= max(seen, default=-1):
        return ""
    return (
        f"--to-batch: output.files.compact has put results of batch {batch} into one folder with those of"
        f" later batches; go back to a batch that ends a folder of {near(Path(files.path))}:"
        f" {', '.join(map(str, sorted(seen)[-8:]))}"
    )


def _refused(document: StreamJoin) -> str:
    """Return why results cannot be withdrawn at all; empty if they can."""
    for output in document.spec.results.values():
        if output.kafka is not None:
            where, new = f"topic {output.kafka.topic}", "topic"
            break
        if output.postgres is not None:
            where, new = f"table {output.postgres.table}", "table"
            break
    else:
        return ""
    return (
        f"the results are in {where}, from where they cannot be withdrawn, so that those of a"
        " batch that runs again would be there twice: restore the newest copy of the checkpoint, or start"
        f" with a new checkpoint and a new {new}"
    )
