"""The rules over the whole spec. Each problem says where it is and how to fix it."""

import os.path
from collections.abc import Iterator
from itertools import combinations, permutations
from pathlib import Path
from typing import TYPE_CHECKING

from joinlib.spec.base import Problem

if TYPE_CHECKING:
    from joinlib.spec.model import Spec
    from joinlib.spec.output import KafkaOutput, Output, PostgresOutput

Place = tuple[str | int, ...]


def problems(spec: "Spec") -> Iterator[Problem]:
    """Yield all problems, in the order of the rules."""
    yield from _names(spec)
    yield from _retention(spec)
    yield from _units(spec)
    yield from _letters(spec)
    yield from _paths(spec)
    yield from _done(spec)
    yield from _targets(spec)


def _names(spec: "Spec") -> Iterator[Problem]:
    """Reject names that differ only in case: SQL does not distinguish `orders` from `Orders`."""
    for left, right in combinations(spec.inputs, 2):
        if left.casefold() == right.casefold():
            yield Problem(("inputs", right), f"is the same name as {left!r} in SQL; rename one")
    for left, right in combinations(spec.functions, 2):
        if left.casefold() == right.casefold():
            yield Problem(("functions", right), f"is the same name as {left!r} in SQL; rename one")
    for number, view in enumerate(spec.views):
        for other in (*spec.inputs, *list(spec.views)[:number]):
            if view.casefold() == other.casefold():
                what = "an input" if other in spec.inputs else "another view"
                yield Problem(("views", view), f"is the name of {what} in SQL, {other!r}; rename one")


def _retention(spec: "Spec") -> Iterator[Problem]:
    """Demand an event time on every stream if there is a retention, which compares event times."""
    if spec.join.retention_us is None:
        return
    for name, source in spec.inputs.items():
        if source.is_stream and source.event_time is None:
            yield Problem(
                ("inputs", name),
                "join.retention needs eventTime on every stream; add it, or remove retention",
            )


def _units(spec: "Spec") -> Iterator[Problem]:
    """Demand a unit for each core: a core without one would idle for the life of the checkpoint."""
    if spec.executors is None:
        return
    cores = spec.executors.max * spec.executors.cores
    if spec.join.units < cores:
        few = f"{spec.join.units} is less than executors.max x executors.cores, {cores}"
        yield Problem(("join", "units"), f"{few}; write {next_power_of_two(cores)} or more")


def _paths(spec: "Spec") -> Iterator[Problem]:
    """Reject overlapping folders if one is written. Two inputs may read the same folder."""
    inputs: list[tuple[Place, str]] = [
        (("inputs", name, "files", "path"), _normal(source.files.path))
        for name, source in spec.inputs.items()
        if source.files is not None
    ]
    places = [*inputs, (("checkpoint", "path"), _normal(spec.checkpoint.folder))]
    outputs = _outputs(spec)
    places += [((*place, "files", "path"), _normal(o.files.path)) for place, o in outputs.items() if o.files]
    letters = {
        _normal(source.kafka.dead_letters.path): ("inputs", name, "kafka", "deadLetters", "path")
        for name, source in spec.inputs.items()
        if source.kafka is not None and source.kafka.dead_letters is not None
    }
    places += [(place, path) for path, place in letters.items()]  # inputs may share one
    if spec.dead_letters is not None:
        places.append((("deadLetters", "path"), _normal(spec.dead_letters.path)))
    places += [
        (("inputs", name, "files", "archive"), _normal(source.files.archive))
        for name, source in spec.inputs.items()
        if source.files is not None and source.files.archive is not None
    ]
    for (left, left_path), (right, right_path) in combinations(places, 2):
        if left_path == right_path and left[-2:] == right[-2:] == ("files", "path") and right[0] == "inputs":
            continue
        if _contains(left_path, right_path) or _contains(right_path, left_path):
            yield Problem(
                right, f"{right_path} and {'.'.join(map(str, left))} {left_path} overlap; use folders apart"
            )


def _letters(spec: "Spec") -> Iterator[Problem]:
    """Demand a folder for dead letters where some are kept, and only there."""
    asked: list[Place] = [
        ("inputs", name, field)
        for name, source in spec.inputs.items()
        for field, value in (("onError", source.on_error), ("onLate", source.on_late))
        if value == "deadLetter"
    ]
    asked += [(*place, "onError") for place, o in _outputs(spec).items() if o.on_error == "deadLetter"]
    if asked and spec.dead_letters is None:
        yield Problem(
            asked[0], "is deadLetter, but there is no folder for such rows; add deadLetters: {path: ...}"
        )
    if spec.dead_letters is not None and not asked:
        yield Problem(
            ("deadLetters",),
            "takes rows of onError: deadLetter or onLate: deadLetter, which nothing says; add one, or remove it",
        )


def _outputs(spec: "Spec") -> "dict[Place, Output]":
    return {("outputs", name) if name else ("output",): output for name, output in spec.results.items()}


def _targets(spec: "Spec") -> Iterator[Problem]:
    """Demand a topic and a table for each output: rows of two would be one result to their readers."""
    for (left, one), (right, other) in combinations(_outputs(spec).items(), 2):
        if one.kafka and other.kafka and _topic(one.kafka) == _topic(other.kafka):
            yield Problem(
                (*right, "kafka", "topic"), f"is the topic of {'.'.join(map(str, left))} too; use another"
            )
        if one.postgres and other.postgres and _table(one.postgres) == _table(other.postgres):
            yield Problem(
                (*right, "postgres", "table"), f"is the table of {'.'.join(map(str, left))} too; use another"
            )


def _topic(kafka: "KafkaOutput") -> tuple[str, str]:
    return kafka.bootstrap_servers, kafka.topic


def _table(postgres: "PostgresOutput") -> tuple[str | int | None, ...]:
    return postgres.uri_env, postgres.host, postgres.port, postgres.database, postgres.table


def _done(spec: "Spec") -> Iterator[Problem]:
    """Demand done: keep of an input whose folder another input reads too."""
    given = [(name, source.files) for name, source in spec.inputs.items() if source.files is not None]
    for (left, one), (right, other) in permutations(given, 2):
        if one.done != "keep" and _normal(one.path) == _normal(other.path):
            yield Problem(
                ("inputs", left, "files", "done"),
                f"must be keep: {right} reads the same folder; use keep, or a folder for each of them",
            )


def _normal(path: os.PathLike[str]) -> str:
    return os.path.normpath(Path(path).absolute())


def _contains(outer: str, inner: str) -> bool:
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def next_power_of_two(value: int) -> int:
    """Return the smallest power of two that is at least `value`."""
    return 1 << (value - 1).bit_length()
