"""`streamjoin compare`: do two jobs, one of them a fork of the other, have the same results?

    A   … batch 7 ─┬─ 8 ── 9 ── 10 ── 11        the rows of 8 to 11 and of 8 to 9 are compared, where the inputs
    B              └─ 8 ─────── 9               were read equally far behind 7; columns that one of them lacks are not

Batches differ, since each job composes its own: what an input was read to is compared, not its number. Results that
change are compared as what they come to. Results that wait for the watermark may come a batch later in one of the jobs.
Cost: a pass over the results behind the fork, in memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from jobs.cli import result_files, words
from jobs.cli.cases.differ import Difference, difference
from jobs.cli.shell.contents import Contents
from jobs.cli.summary import near
from joinlib.checkpoint import batches
from joinlib.checkpoint.identity import begun, identity_of, origin_of
from joinlib.compiled import Compiled, compiled
from joinlib.errors import SpecError, StateError
from joinlib.sink.changelog import described
from joinlib.sink.publish import numbers
from joinlib.source import StreamInput, opened
from joinlib.spec.model import StreamJoin
from joinlib.spec.output import OutputFiles

_PAIRED = 1000  # rows of each side, among which the nearest is looked for
Offset = Mapping[str, Any]
Read = frozenset[tuple[object, ...]]


@dataclass(frozen=True)
class ComparedResults:
    """What two jobs have in common. `outputs`: by name, the rows compared and how they differ."""

    head: str
    outputs: Mapping[str, tuple[int, Difference | None, Sequence[str]]] = field(default_factory=dict)

    @property
    def equal(self) -> bool:
        return all(found is None for _, found, _ in self.outputs.values())

    @property
    def text(self) -> str:
        """Several lines for people: `-` is a row of A alone, `+` one of B alone."""
        lines = [self.head]
        for name, (rows, found, left_out) in self.outputs.items():
            title = f"output {name}: " if name else ""
            if left_out:
                lines.append(f"{title}not compared, of one job alone or of two types: {', '.join(left_out)}")
            if found is None:
                lines.append(f"{title}equal, {words.rows(rows)}")
            else:
                lines.append(f"{title}different, first in {_first(found)}")
                lines += [f"  {line}" for line in found.lines]
        return "\n".join(lines)


def _first(found: Difference) -> str:
    if found.row is None:
        return "a row that A has not"
    if found.column is None:
        return "a row that B has not"
    return f"column {found.column} of a row"


def compared(one: StreamJoin, other: StreamJoin) -> ComparedResults:
    """Compare the results of two jobs since one was forked from the other.

    Raises:
        SpecError: Neither is a fork of the other, or their results are not files.
        StateError: They have no place in common at which the inputs were read equally far.
    """
    sides = _Side(one, "A"), _Side(other, "B")
    start = _parted(*sides)
    for side in sides:
        side.start = start
    ends = _common(*sides)
    if start[0] in ends:
        raise StateError(
            f"there is nothing to compare yet: behind batch {start[0]}, where one was forked from the other, they have"
            " no batch by which both have read the same; let both read what is there, by `streamjoin run FILE"
            " --until-done`, and compare again"
        )
    names = [name for name in sides[0].results if name in sides[1].results]
    found = {name: _output(name, sides, ends) for name in names}
    told = (f"{side.name}: batches {start[0] + 1} to {end}" for side, end in zip(sides, ends, strict=True))
    return ComparedResults(", ".join(told) + ", by which both have read the same", found)


class _Side:
    """One of the jobs."""

    def __init__(self, document: StreamJoin, name: str) -> None:
        self.document, self.name = document, name
        self.folder = document.spec.checkpoint.folder
        if not begun(self.folder):
            raise SpecError(f"{name}: {near(self.folder)} holds no checkpoint; run the job first")
        self.plan: Compiled = compiled(document, 1)
        self.results = {result.name: result for result in self.plan.pipeline.results}
        self.start: tuple[int, Offset] = (-1, {})

    def ends(self) -> dict[int, tuple[Read, bool]]:
        """Return how far the inputs were read by the end of each batch, and whether they were closed.

        Raises:
            StateError: A log has forgotten what was read behind the fork.
        """
        spark, inputs = self.folder / "spark", opened(self.plan.source.sources, self.plan.source.logs)
        ends = {b: batches.offset(spark, b) for b in batches.all_done(spark) if b >= self.start[0]}
        try:
            return {b: (self._read(inputs, end["inputs"]), bool(end["closed"])) for b, end in ends.items()}
        except StateError as error:
            raise StateError(
                f"{self.name}: {near(self.folder)} no longer knows what was read since the fork; fork again ({error})"
            ) from error

    def _read(self, inputs: Mapping[str, StreamInput], end: Mapping[str, int]) -> Read:
        """Return how much was read behind the fork: by file and row group, or by topic and partition."""
        read: dict[tuple[object, ...], int] = {}
        for name, known in inputs.items():
            for piece in known.slices(self.start[1].get(name, 0), end[name]):
                where = (name, piece.path.removeprefix(str(self._root(name))), piece.group)
                read[where] = read.get(where, 0) + piece.stop - piece.start
        return frozenset((*where, size) for where, size in read.items())

    def _root(self, name: str) -> Path | str:
        files = self.document.spec.inputs[name].files
        return files.path if files else ""

    def files(self, name: str, end: int) -> list[Path]:
        """Return the result files of an output, from the fork to the end of a batch.

        Raises:
            SpecError: The results are not files, or those of later batches are among them.
        """
        written = self._written(name)
        there = sorted(batch for batch in numbers(Path(written.path)) if self.start[0] < batch)
        if written.compact and end not in there and any(batch > end for batch in there):
            raise SpecError(
                f"{self.name}: output.files.compact has put results up to batch {end} into a folder with later"
                " ones; remove it from both jobs to compare them, or stop both and compare again"
            )
        folders = (Path(written.path) / f"batch={batch}" for batch in there if batch <= end)
        return [file for folder in folders for file in sorted(folder.glob("part-*"))]

    def columns(self, name: str, files: Iterable[Path]) -> dict[str, pa.DataType]:
        """Return the columns of an output that all of these files have: an earlier spec may have written some."""
        schema = self.plan.pipeline.stages[self.results[name].stage].schema
        known = [set(result_files.columns(file, self._written(name))) for file in files]
        return {f.name: f.type for f in schema if all(f.name in names for names in known)}

    def contents(self, name: str, files: Iterable[Path], columns: pa.Schema) -> Contents:
        """Return what these files come to."""
        schema = described(columns) if self.document.spec.results[name].adds_columns else columns
        found = Contents()
        for file in files:
            found = found.after(result_files.rows(file, self._written(name), schema))
        return found

    def _written(self, name: str) -> OutputFiles:
        files = self.document.spec.results[name].files
        if files is None:
            raise SpecError(f"{self.name}: only results in files are compared; write them to output.files")
        return files


def _parted(one: _Side, other: _Side) -> tuple[int, Offset]:
    """Return behind which batch one was forked from the other, and how far the inputs had been read by then."""
    for fork, first in ((other, one), (one, other)):
        origin = origin_of(fork.folder)
        if origin is not None and origin["id"] == identity_of(first.folder):
            return int(origin["batch"]), origin["inputs"]
    raise SpecError(
        f"neither {near(one.folder)} nor {near(other.folder)} is a fork of the other; begin one by `streamjoin fork A"
        " --as B`"
    )


def _common(one: _Side, other: _Side) -> tuple[int, int]:
    """Return the last batch of each by which the inputs were read equally far."""
    theirs = {read: batch for batch, read in other.ends().items()}
    for batch, read in sorted(one.ends().items(), reverse=True):
        if read in theirs:
            return batch, theirs[read]
    raise StateError(
        "the jobs have no batch in common by which they have read the same; let both read what is there, by"
        " `streamjoin run FILE --until-done`, and compare again"
    )


def _output(
    name: str, sides: tuple[_Side, _Side], ends: tuple[int, int]
) -> tuple[int, Difference | None, Sequence[str]]:
    """Return how many rows of an output were compared, the difference, and the columns of one side alone."""
    files = [side.files(name, end) for side, end in zip(sides, ends, strict=True)]
    one, other = (side.columns(name, some) for side, some in zip(sides, files, strict=True))
    both = pa.schema([(column, kind) for column, kind in one.items() if other.get(column) == kind])
    alone = sorted({*one, *other} - {*both.names})
    if not both.names:
        raise SpecError(f"the results have no column in common: {', '.join(alone)}")
    found = [side.contents(name, some, both) for side, some in zip(sides, files, strict=True)]
    mine, theirs = found[0].minus(found[1])
    return found[0].count, difference(both.names, mine.plain(_PAIRED), theirs.plain(_PAIRED)), alone
