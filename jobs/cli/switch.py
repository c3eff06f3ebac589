"""`streamjoin switch`: a job goes on with the spec of its fork.

    A.yaml        B.yaml              A.yaml, by one rename
    spec: old     spec: new     ─►    spec: new, but with A's checkpoint, outputs and dead letters

It is A's checkpoint that goes on, behind A's last batch, and it writes where A wrote: so no row is lost or there twice,
whatever the fork has read, and nothing of its results has to be brought over. The fork has shown that the state can follow
the new spec; its checkpoint and its results are of no more use.

Law: the file is the old one or the new one. Killed at any moment, the command may be given again; given again, it changes
nothing.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

from jobs.cli import words
from jobs.cli.compare import behind
from jobs.cli.denied import telling
from jobs.cli.fork import written
from jobs.cli.summary import near
from joinlib import fault
from joinlib.checkpoint.history import History
from joinlib.checkpoint.identity import begun, identity_of, origin_of, owner_id, refusals
from joinlib.checkpoint.lock import Lock, without_jvm
from joinlib.checkpoint.planned import plan_of
from joinlib.deploy import KIND
from joinlib.errors import SpecError, StateError
from joinlib.files import whole
from joinlib.registered import load
from joinlib.sink.publish import owner_of
from joinlib.spec.document import Document, Place
from joinlib.spec.load import parse, text_of
from joinlib.spec.model import StreamJoin
from joinlib.spec.output import Output

_SPEC: Place = ("spec",)


def switch(file: Path, new: Path) -> str:
    """Replace the spec in `file` by that of its fork in the file `new`; return several lines for people.

    Raises:
        StreamJoinError: The job runs, or cannot go on so; then nothing was changed.
    """
    first, fork = load(file), load(new)
    before = text_of(file)
    after = _switched(before, text_of(new), first, fork)
    if after is None or file.resolve().parent != new.resolve().parent:
        why = (
            "in one folder"
            if after
            else "in one style of YAML, and without references into other parts of a file"
        )
        raise SpecError(
            f"{new}: can take the place of the spec in {file} only if both are written {why}; edit {file}"
        )
    target = _target(after, file, new, fork)
    if after == before:
        return f"{file} has the spec of {new} already; `streamjoin run {file}` goes on with it"
    _check_fork(first, fork)
    with telling(first), closing(_Alone(first.spec.checkpoint.folder)):
        batch, left = _check_state(first, target), list(_left(first, fork))
        place = file.resolve()
        with whole(place, hidden=True, synced=True) as aside:
            aside.write_text(after, encoding="utf-8")
            aside.chmod(place.stat().st_mode & 0o777)
            fault.point("switching", batch)
        fault.point("switched", batch)
    line = f"{file} has the spec of {new} now; `streamjoin run {file}` goes on behind batch {batch}"
    return "\n".join([line, *left])


def _target(text: str, file: Path, new: Path, fork: StreamJoin) -> StreamJoin:
    """Return the job as it goes on; columns that come from a registry are those with which the fork was loaded."""
    try:
        target = parse(text, str(file), file.absolute().parent)
    except SpecError as error:
        raise SpecError(
            f"the spec of {new} does not fit the outputs of {file}; it would be\n{error}"
        ) from error
    known = fork.spec.inputs
    inputs = {
        name: given.model_copy(update={"arrow_schema": known[name].arrow_schema})
        for name, given in target.spec.inputs.items()
    }
    return target.model_copy(update={"spec": target.spec.model_copy(update={"inputs": inputs})})


class _Alone:
    """Holds runs off, until it is closed."""

    def __init__(self, checkpoint: Path) -> None:
        self._lock = Lock(checkpoint)
        try:
            without_jvm(checkpoint, patience_s=0)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._lock.release()


def _check_fork(first: StreamJoin, fork: StreamJoin) -> None:
    folders = first.spec.checkpoint.folder, fork.spec.checkpoint.folder
    for folder in folders:
        if not begun(folder):
            raise SpecError(
                f"{near(folder)} holds no checkpoint; begin the fork by `streamjoin fork A --as B`"
            )
    origin = origin_of(folders[1])
    if origin is None or origin["id"] != identity_of(folders[0]):
        raise SpecError(
            f"{near(folders[1])} is not a fork of {near(folders[0])}; a job is switched to its own fork"
        )


def _check_state(first: StreamJoin, target: StreamJoin) -> int:
    """Return the batch behind which the job goes on with its new spec.

    Raises:
        SpecError: It cannot.
        StateError: Its checkpoint is damaged.
    """
    folder = first.spec.checkpoint.folder
    pipeline = plan_of(target)
    if changes := refusals(folder, pipeline):
        what = "\n".join(f"  - {change}" for change in changes)
        raise SpecError(
            f"sql: the state of {near(folder)} does not fit the new spec:\n{what}\nUndo the change"
        )
    identity = identity_of(folder)
    ours = {None, identity, *(owner_id(identity, name) for name in target.spec.results)}
    for place, _, written_to in written(target):
        if owner_of(written_to) not in ours:
            raise SpecError(
                f"{'.'.join(place)}: {near(written_to)} belongs to the fork, and the first job has none there; name a new"
                " folder in the fork's file, and switch again"
            )
    history = History(folder, len(pipeline.stateful))
    history.check()
    if not (done := history.batches()):
        raise StateError(
            f"checkpoint {near(folder)} has no batch that is done; run the job once more, and switch again"
        )
    return done[0]


def _left(first: StreamJoin, fork: StreamJoin) -> Iterator[str]:
    """Yield what is to be said of the fork."""
    with suppress(StateError):  # a log has forgotten what it read
        if rows := behind(first, fork):
            yield f"the fork has not read {words.rows(rows)} that the job has: of them, results were not compared"
    folders = ", ".join(near(folder) for _, _, folder in written(fork))
    yield f"nothing needs the fork any more: stop it, and remove {folders}"


# --- the text ------------------------------------------------------------------------------------


def _switched(text: str, new: str, first: StreamJoin, fork: StreamJoin) -> str | None:
    """Return the text with the spec of the text `new`, but for what stays; None if it cannot be written into it."""
    old, other = Document(text, KIND), Document(new, KIND)
    kept = dict(_kept(first, fork, old, other))
    spec = Document(
        other.with_values({place: _text(old, place, value) for place, value in kept.items()}), KIND
    )
    after = old.with_values({_SPEC: spec.written(_SPEC)})
    wanted: Any = deepcopy(old.value)
    wanted["spec"] = deepcopy(_at(other, _SPEC))
    for (*path, last), value in kept.items():
        node = wanted
        for step in path:
            node = node[step]
        node[last] = value
    return after if _value(after) == wanted else None


def _value(text: str) -> object:
    from yaml import YAMLError

    try:
        return Document(text, KIND).value
    except YAMLError:
        return None


def _kept(first: StreamJoin, fork: StreamJoin, old: Document, new: Document) -> Iterator[tuple[Place, Any]]:
    """Yield what stays as the first job has it: where it keeps its state, and where it writes."""
    places: list[Place] = [("spec", "checkpoint")]
    for name, output in fork.spec.results.items():
        if (before := first.spec.results.get(name)) is None:
            continue
        place: Place = ("spec", "outputs", name) if name else ("spec", "output")
        if _in_files(before) and _in_files(output):
            places.append((*place, "files", "path"))
        else:
            sql = {"sql": _at(new, place)["sql"]} if name else {}
            yield place, {**_at(old, place), **sql}
    if first.spec.dead_letters and fork.spec.dead_letters:
        places.append(("spec", "deadLetters", "path"))
    for name, given in fork.spec.inputs.items():
        was = first.spec.inputs.get(name)
        if was and was.kafka and was.kafka.dead_letters and given.kafka and given.kafka.dead_letters:
            places.append(("spec", "inputs", name, "kafka", "deadLetters", "path"))
    for place in places:
        yield place, _at(old, place)


def _in_files(output: Output) -> bool:
    return output.files is not None


def _text(document: Document, place: Place, value: object) -> str:
    """Return a value as YAML: as it is written, if that is one line by itself, and else as JSON, which YAML is too."""
    written_there = document.written(place)
    one_line = "\n" not in written_there and (not isinstance(value, dict) or written_there.startswith("{"))
    return written_there if one_line and _at(document, place) == value else json.dumps(value)


def _at(document: Document, place: Place) -> Any:
    value: Any = document.value
    for step in place:
        value = value[step] if isinstance(value, Mapping) else None
    return value
