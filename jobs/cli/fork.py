"""`streamjoin fork`: a second job from the state of a first one, which may go on beside it.

Law: neither job can do anything to the other. They have no folder in common, and no input that one of them would take
away from the other.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from jobs.cli.denied import telling
from jobs.cli.ends import End, is_told
from jobs.cli.ends import ends as ends_of
from jobs.cli.summary import near
from joinlib.checkpoint.fork import fork as begin
from joinlib.checkpoint.history import History
from joinlib.checkpoint.identity import begun, refusals
from joinlib.checkpoint.planned import plan_of
from joinlib.errors import SpecError
from joinlib.spec.base import Problem
from joinlib.spec.inputs import Input
from joinlib.spec.model import StreamJoin
from joinlib.spec.output import Output, field_of


def fork(first: StreamJoin, new: StreamJoin) -> str:
    """Begin the checkpoint of the spec `new` with the state of `first`; return a line for people.

    Raises:
        StreamJoinError: They would meet, or the state does not fit the new spec; then nothing was written.
    """
    source, target = first.spec.checkpoint.folder, new.spec.checkpoint.folder
    if problem := next(_meeting(first, new), None):
        raise SpecError(f"{'.'.join(map(str, problem.at))}: {problem.message}")
    if not begun(source):
        raise SpecError(
            f"{near(source)} holds no checkpoint: there is no state to fork; run the new spec by itself"
        )
    history = History(source, len(plan_of(first).stateful))
    history.check()
    pipeline = plan_of(new, source)
    if changes := refusals(source, pipeline):
        what = "\n".join(f"  - {c}" for c in changes)
        raise SpecError(
            f"sql: the state of {near(source)} does not fit the new spec:\n{what}\nUndo the change, or run the new"
            " spec by itself, over all that its inputs still hold."
        )
    noted = dict[str, End]()

    def ends(batch: int) -> dict[str, End]:
        noted.clear()
        noted.update(ends_of(first, batch))
        return noted

    with telling(new):
        batch = begin(history, target, new.metadata.name, pipeline, ends, synced=new.spec.checkpoint.sync)
    line = (
        f"{near(target)} begins behind batch {batch} of {near(source)}, and shares its segments; each goes on by"
        " itself"
    )
    return "\n".join([line, *_unknown(first, noted)])


def _unknown(first: StreamJoin, noted: Collection[str]) -> Iterator[str]:
    """Yield a line for each output whose rows `compare` will not be able to tell."""
    for name, output in first.spec.results.items():
        if is_told(output) and name not in noted:
            where = f"topic {output.kafka.topic}" if output.kafka else "the table"
            yield (
                f"{field_of(name)}: the first job was writing to {where}, so `compare` cannot tell what comes from now on;"
                " to compare, stop it, remove the fork, and fork again"
            )


def _meeting(first: StreamJoin, new: StreamJoin) -> Iterator[Problem]:
    """Yield what the jobs would have in common."""
    yield from _folders(first, new)
    for name, output in new.spec.results.items():
        yield from _output(_place(name), output)
    for name, given in new.spec.inputs.items():
        yield from _input(name, first.spec.inputs.get(name), given)


def _folders(first: StreamJoin, new: StreamJoin) -> Iterator[Problem]:
    for place, _, folder in written(new):
        for _, what, other in written(first):
            if folder == other or folder in other.parents or other in folder.parents:
                yield Problem(
                    place,
                    f"{near(folder)} meets the {what} of the first job, {near(other)}; use a new folder",
                )
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            yield Problem(place, f"{near(folder)} is in use; name a new folder for the fork")


def written(job: StreamJoin) -> Iterator[tuple[tuple[str, ...], str, Path]]:
    """Yield the folders that a job writes: the field, what is there, and where that is."""
    yield ("checkpoint", "path"), "checkpoint", job.spec.checkpoint.folder
    for name, output in job.spec.results.items():
        if output.files:
            yield (*_place(name), "files", "path"), f"output {name}".rstrip(), Path(output.files.path)
    if job.spec.dead_letters:
        yield ("deadLetters", "path"), "dead letters", Path(job.spec.dead_letters.path)
    for name, given in job.spec.inputs.items():
        if given.kafka and given.kafka.dead_letters:
            place = ("inputs", name, "kafka", "deadLetters", "path")
            yield place, f"dead letters of input {name}", Path(given.kafka.dead_letters.path)


def _place(output: str) -> tuple[str, ...]:
    return ("outputs", output) if output else ("output",)


def _output(place: tuple[str, ...], output: Output) -> Iterator[Problem]:
    if output.kafka or output.postgres:
        what = "kafka" if output.kafka else "postgres"
        said = "takes rows that cannot be withdrawn; write the fork's results to files, by which they are compared"
        yield Problem((*place, what), said)


def _input(name: str, before: Input | None, now: Input) -> Iterator[Problem]:
    place = ("inputs", name)
    if before is None or not now.is_stream:
        return  # an input that is new changes the state, which is refused as such
    if _source(before) != _source(now):
        yield Problem(
            place, "is read from another place than by the first job, whose positions the fork goes on from"
        )
    for given, whose in ((before, "the first job"), (now, "the fork")):
        if given.files and given.files.done != "keep":
            said = f"is {given.files.done}, by which {whose} takes files away from the other job; set keep in both"
            yield Problem((*place, "files", "done"), said)
    if now.postgres:
        yield Problem(
            (*place, "postgres"), "is read through a replication slot, which only one job can follow"
        )


def _source(given: Input) -> object:
    """Return what the positions of an input are in."""
    if given.kafka:
        return given.kafka.names
    return (given.files.path, given.files.format) if given.files else given.generator
